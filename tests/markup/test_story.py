"""Sessions as documents: what is in them, and that nothing said in a session takes them over."""

from html.parser import HTMLParser
from typing import Any

from dragoman.cli.screen import Screen
from dragoman.markup.document import document as html
from dragoman.markup.markdown import markdown
from dragoman.markup.story import story

INFO: dict[str, Any] = {
    "id": "s1",
    "agent": "default",
    "model": "demo/demo",
    "cwd": "/w",
    "created_at": 0,
    "origin": "acp",
    "status": "idle",
    "turns": 1,
    "usage": {"input": 10, "output": 5},
    "cost": 0.5,
    "title": "a <b>title</b> | with *marks*",
    "query": "",
}
EVIL = "</p><script>alert(1)</script>"


def told(kind: str, **fields: Any) -> dict[str, Any]:
    return {"session": "s1", "seq": 1, "gseq": 1, "at": 0, "event": {"type": kind, **fields}}


def text(said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": said}]


EVENTS = [
    told("opened", agent="default", cwd="/w", model="demo/demo", mode="supervised"),
    told("turn_began", turn="t", content=text(f"hello {EVIL}"), by={"dialect": "zot"}),
    told(
        "spoke",
        turn="t",
        step=1,
        stop="tool_use",
        content=[
            {"type": "thinking", "text": "hm"},
            {"type": "text", "text": "**I** will look."},
            {"type": "tool_call", "id": "c", "name": "read", "args": {"path": "a"}},
        ],
    ),
    told(
        "asked",
        ask={
            "id": "a", "session": "s", "at": 1, "kind": "tool", "title": "Approve read?",
            "summary": EVIL,
        },  # fmt: skip
    ),
    told("settled", ask_id="a", verdict="allow", by={"dialect": "humanlayer", "name": "Ann"}),
    told("call_started", turn="t", call_id="c", name="read"),
    told("call_ended", turn="t", call_id="c", name="read", outcome="done",
         content=text("```\nfenced\n```\n" + "x\n" * 20)),
    told("planned", entries=[{"content": "one", "status": "completed"}]),
    told("noted", level="error", title="A server broke", text="down"),
    told("turn_ended", turn="t", outcome="failed", stop="error", error="no more"),
]  # fmt: skip


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_has_everything_and_no_scripts() -> None:
    page = html(INFO, EVENTS)
    reader = Reader()
    reader.feed(page)
    assert "script" not in reader.tags and "b" not in reader.tags
    for said in (EVIL, "I will look.", "Approve read?", "Ann (humanlayer)", "fenced", "no more",
                 "[x] one", "A server broke", "$0.5000"):  # fmt: skip
        assert said in reader.text
    assert "details" in reader.tags  # long results are folded
    assert "default-src 'none'" in page


def test_markdown_keeps_code_in_its_fence_and_names_plain() -> None:
    text = markdown(INFO, EVENTS)
    assert text.startswith("# a \\<b\\>title\\</b\\> \\| with \\*marks\\*\n")
    assert "\n````\n```\nfenced" in text and text.count("````") == 2
    assert "> hello </p>" in text
    assert "**I** will look." in text
    assert "**Answered: allow, by Ann (humanlayer)**" in text


def test_the_story_is_in_order() -> None:
    kinds = [part.kind for part in story(EVENTS)]
    assert kinds == ("user thought agent call asked asked result plan note note".split())


def test_a_screen_shows_every_event_and_steers_no_terminal(capsys: Any) -> None:
    screen = Screen(numbered=True)
    for one in EVENTS:
        screen.show(one)
    screen.show(told("text_delta", turn="t", text="red \x1b[31m alert \x07"))
    screen.show(told("presence", clients=[]))
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\x07" not in said
    for word in ("zot: hello", "▸ read", "Approve read?", "allow by Ann", "failed: no more"):
        assert word in said
