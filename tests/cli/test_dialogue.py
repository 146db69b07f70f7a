"""A question at a terminal: whole, page by page, and only then answered."""

import pytest

from dragoman.cli.dialogue import Decision, Dialogue
from dragoman.engine.ask import Ask, Change, Scope

LONG = "echo start; " + "x" * 39_970 + "; rm -rf /data/END"


def ask(**values: object) -> Ask:
    given: dict[str, object] = {
        "id": "ask_1", "session": "s", "kind": "tool", "title": "Approve bash?", "at": 0,
        "tool": "bash", "args": {"command": "ls"}, "summary": "$ ls",
        "scopes": (
            Scope("exact", "exact", "this exact command: ls"),
            Scope("prefix", "prefix", "commands that begin with: ls", argv=("ls",)),
        ),
    }  # fmt: skip
    return Ask(**(given | values))  # type: ignore[arg-type]


def whole(dialogue: Dialogue) -> str:
    """All pages, with Enter after each."""
    said = dialogue.prompt()
    while "[y]es" not in said.rsplit("\n", 1)[-1]:
        assert dialogue.typed("") is None
        said += dialogue.prompt()
    return said


@pytest.mark.parametrize(
    ("said", "meant"),
    [("y", "allow"), ("YES\n", "allow"), ("n", "deny"), ("no", "deny")],
)
def test_a_short_one_is_answered_at_once(said: str, meant: str) -> None:
    dialogue = Dialogue(ask(), (80, 24))
    assert "$ ls" in dialogue.prompt()
    assert dialogue.typed(said) == Decision(meant)  # type: ignore[arg-type]


def test_what_is_not_understood_is_asked_again() -> None:
    dialogue = Dialogue(ask(), (80, 24), may_skip=True)
    dialogue.prompt()
    for said in ("", "maybe", "yep", "a\n\n"[3:]):
        assert dialogue.typed(said) is None
        assert "$ ls" in dialogue.prompt()
    assert dialogue.typed("s") == Decision("cancelled", skip=True)


def test_always_names_what_is_remembered_and_for_how_long() -> None:
    dialogue = Dialogue(ask(), (80, 24))
    dialogue.prompt()
    assert dialogue.typed("a") is None
    menu = dialogue.prompt()
    assert "1. this exact command: ls, in this session" in menu
    assert "5. commands that begin with: ls, in this project" in menu
    assert dialogue.typed("5") == Decision("allow_always", scope="prefix", lasts="project")


@pytest.mark.parametrize("said", ["", "0", "7", "y", "\u0665"])
def test_a_wrong_number_remembers_nothing(said: str) -> None:
    dialogue = Dialogue(ask(), (80, 24))
    dialogue.prompt()
    dialogue.typed("a")
    dialogue.prompt()
    decided = dialogue.typed(said)
    assert decided is None or decided.scope in ("prefix",)


@pytest.mark.parametrize("early", ["y", "yes", "a", "always", "1"])
def test_nothing_is_allowed_before_the_last_page(early: str) -> None:
    dialogue = Dialogue(ask(args={"command": LONG}), (80, 24))
    first = dialogue.prompt()
    assert "more lines" in first and "rm -rf" not in first
    assert dialogue.typed(early) is None
    assert dialogue.prompt() == first
    assert dialogue.typed("n") == Decision("deny")


def test_a_long_command_is_shown_to_its_last_character() -> None:
    said = whole(Dialogue(ask(args={"command": LONG}), (80, 24)))
    assert said.replace("\n", "").count("x" * 70) >= 39_900 // 100
    assert "rm -rf /data/END" in said


def test_the_end_may_be_printed_at_once() -> None:
    change = Change("/p/f", "old\n" * 200_000, "new\n" * 200_000)
    dialogue = Dialogue(ask(tool="write", args={}, changes=(change,)), (80, 24))
    assert "more lines" in dialogue.prompt()
    assert dialogue.typed("e") is None
    rest = dialogue.prompt()
    assert rest.count("-old") + rest.count("+new") > 399_900 and "[y]es" in rest


def test_without_a_screen_all_of_it_comes_at_once() -> None:
    assert "rm -rf /data/END" in Dialogue(ask(args={"command": LONG})).prompt()


def test_nothing_in_it_steers_the_terminal() -> None:
    nasty = "ls \x1b[2J\x1b]0;x\x07\r\x08\u202e\u200b\u00a0\U000e0041\x9b1m"
    change = Change(f"/p/{nasty}", nasty, f"{nasty}!")
    said = Dialogue(
        ask(args={"command": nasty, "path": nasty}, title=nasty, reason=nasty, cwd=nasty,
            changes=(change,), scopes=(Scope("exact", "exact", nasty),)), (80, 200),
    )  # fmt: skip
    text = said.prompt()
    said.typed("a")
    text += said.prompt()
    for char in "\x1b\x07\r\x08\u202e\u200b\u00a0\U000e0041\x9b":
        assert char not in text
    assert "<ESC>[2J" in text and "<U+202E>" in text


def test_questions_are_answered_by_number_or_by_words() -> None:
    asked = ask(kind="question", title="Which?", choices=("red", "blue"), args=None, summary="")
    for said, meant in (("2", "blue"), ("3", "3"), ("green", "green")):
        dialogue = Dialogue(asked, (80, 24))
        assert "2. blue" in dialogue.prompt()
        assert dialogue.typed(said) == Decision("answer", meant)
    dialogue = Dialogue(asked, (80, 24))
    dialogue.prompt()
    assert dialogue.typed("") is None and "Which?" in dialogue.prompt()
