"""What is printed: tables, colours, JSON."""

import contextlib
import io
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli import say

IRC = Path(__file__).parents[2] / "examples" / "apps" / "irc"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "terminal", "expected"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": ""}, True, False),
        ({}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colours_only_where_they_belong(
    env: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    stream = Terminal() if terminal else io.StringIO()
    assert say.colours(stream) is expected
    assert say.style("x", "bold", stream=stream) == ("\x1b[1mx\x1b[0m" if expected else "x")


@pytest.mark.parametrize(("key", "code"), [(b"\x03", 130), (b"\x04", 1), (b"\n", 1)])
def test_a_question_that_is_left_ends_its_line_and_changes_nothing(
    key: bytes, code: int, tmp_path: Path
) -> None:
    words = ["-m", "dragoman", "apps", "add", str(IRC), "--config-dir", str(tmp_path)]
    pid, screen = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, *words])
    said = b""
    try:
        while b"[y/N] " not in said:
            said += os.read(screen, 4096)
        os.write(screen, key)
        with contextlib.suppress(OSError):  # how the end of a terminal is told
            while True:
                if not select.select([screen], [], [], 20)[0]:
                    os.write(screen, key)  # it came between the words and the reading of an answer
                elif more := os.read(screen, 4096):
                    said += more
                else:
                    break
    finally:
        os.close(screen)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    asked, _, rest = said.rpartition(b"[y/N] ")
    assert asked and status == code and b"Traceback" not in said and rest.endswith(b"\n")
    assert not (tmp_path / "config.toml").exists()


def test_a_table_lines_up(capsys: pytest.CaptureFixture[str]) -> None:
    say.table(("id", "title"), [("a", "日本"), ("long", None), (3, "x")])
    assert capsys.readouterr().out == "ID    TITLE\na     日本\nlong\n3     x\n"


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    say.table(("id",), [], empty="no sessions")
    assert capsys.readouterr().out == "no sessions\n"


def test_control_characters_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say.table(("title",), [("evil\x1b[2J\nnext",)])
    out = capsys.readouterr().out
    assert "\x1b" not in out and out.count("\n") == 2


@pytest.mark.parametrize(
    ("text", "room", "short"), [("abcdef", 4, "abc…"), ("abc", 3, "abc"), ("日本語", 4, "日…")]
)
def test_cutting(text: str, room: int, short: str) -> None:
    assert say.cut(text, room) == short
    assert say.width(short) <= room


def test_json_writes_structs(capsys: pytest.CaptureFixture[str]) -> None:
    say.json({"a": (1, 2)})
    assert capsys.readouterr().out == '{\n  "a": [\n    1,\n    2\n  ]\n}\n'


def test_rows_fit_a_real_terminal() -> None:
    parent, child = pty.openpty()
    try:
        script = (
            "import fcntl, struct, termios; "
            "fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 30, 0, 0)); "
            "from dragoman.cli import say; say.table(('id', 'text'), [('a', 'w' * 200)])"
        )
        env = {**os.environ, "NO_COLOR": "1"}
        subprocess.run(
            [sys.executable, "-c", script], stdout=child, env=env, timeout=60, check=True
        )
        lines = os.read(parent, 4096).decode().splitlines()
    finally:
        os.close(parent)
        os.close(child)
    assert len(lines) == 2 and all(len(line) <= 30 for line in lines) and lines[1].endswith("…")


FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
TITLES = [
    "plain words that go on and on until the window is full",
    "日本語の題名がとても長いので切られるはずです、本当に",
    f"{FAMILY} {FAMILY} {FAMILY} {FAMILY} {FAMILY} {FAMILY} {FAMILY} {FAMILY}",
    "e\u0301" * 60,
    "हिन्दी में एक लम्बा शीर्षक जो कट जाना चाहिए",
    "한국어 " * 20,
]


@pytest.mark.parametrize("room", [35, 36, 40, 41, 79])
def test_columns_line_up_and_fit_whatever_is_written_in_them(
    room: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", str(room))
    say.table(("id", "title", "made"), [(f"id-{n}-abcdef", t, "now") for n, t in enumerate(TITLES)])
    head, *lines = capsys.readouterr().out.splitlines()
    for number, line in enumerate(lines):
        assert line.startswith(f"id-{number}-abcdef  ") and line.endswith("now")
        assert cell_len(line) == cell_len(lines[0]) <= room
        assert ("…" in line) != (TITLES[number] in line)
        assert not line.partition("…")[0].endswith("\u200d")
    assert head.index("MADE") == cell_len(lines[0]) - 3


def test_what_is_typed_again_is_never_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    say.table(("agent", "id", "text"), [("somebody", "0123456789", "words")], whole=("id",))
    say.row("0123456789abcdef  ", "words")
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == ["somebody  0123456789", "  words", "0123456789abcdef"]


MEMORIES = [
    ("builtin", "where-it-is-deployed", "core", "3 min ago", "make deploy, and nothing else " * 9),
    ("審査役", "題名の鍵", "conversation", "12 d ago", "日本語の題名がとても長いので切られる" * 9),
    ("builtin", "short", "core", "now", ""),
]


@pytest.mark.parametrize(
    ("room", "heads"),
    [
        (40, ["AGENT    ID", "  CHANGED    CONTENT"]),
        (50, ["AGENT    ID                    CONTENT"]),
        (60, ["AGENT    ID                    CHANGED    CONTENT"]),
        (80, ["AGENT    ID                    KIND          CHANGED    CONTENT"]),
    ],
)
def test_a_column_tells_something_or_is_left_out(
    room: int,
    heads: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", str(room))
    headers = ("agent", "id", "kind", "changed", "content")
    say.table(headers, MEMORIES, whole=("id",), spare=("kind", "changed"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[: len(heads)] == heads
    assert all(cell_len(line) <= room for line in lines)
    for agent, key, *_, content in MEMORIES:
        at = next(n for n, line in enumerate(lines) if line.startswith(agent) and key in line)
        shown = lines[at + len(heads) - 1].rpartition("  ")[2].rstrip("…")
        assert not content or (content.startswith(shown) and cell_len(shown) >= 14)


def test_a_table_is_shown_however_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for room in "123":
        monkeypatch.setenv("COLUMNS", room)
        say.table(("id", "kind"), [("one", "x" * 40)], spare=("kind",))
        assert capsys.readouterr().out == "ID\none\n"


@pytest.mark.parametrize("room", [40, 50, 60, 80])
def test_no_table_is_squeezed_to_nothing(
    room: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(room))
    every = tuple("abcdefgh")
    for spare in (), every[1:], every[3:]:
        for words in "長い値 ", "longer words ", "w":
            say.table(every, [[words * 20 if at else "0123abcd" for at in range(8)]], spare=spare)
    cells = [re.split(" {2,}", line.strip()) for line in capsys.readouterr().out.splitlines()]
    assert "…" not in {cell for line in cells for cell in line}


def test_what_is_typed_again_stands_alone_where_it_fills_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    say.table(("id", "name"), [("i" * 30, "n" * 30)], whole=("name",))
    say.table(("id", "kind"), [("i" * 50, "")], spare=("kind",))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [f"{'i' * 30}  {'n' * 30}", "ID", "  KIND", "i" * 50]


def test_a_line_of_a_list_is_cut_behind_what_is_typed_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "12")
    say.row("abc  ", "日本語日本語")
    assert capsys.readouterr().out == "abc  日本語…\n"


@pytest.mark.parametrize("given", [None, "", "0", "-3", "wide", "٤"])
def test_a_pipe_gets_everything(
    given: "str | None", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if given is not None:
        monkeypatch.setenv("COLUMNS", given)
    say.table(("id", "text"), [("a", "w" * 500)])
    say.row("abc  ", "w" * 500)
    assert "…" not in capsys.readouterr().out


def test_a_question_is_not_said_twice() -> None:
    from dragoman.cli.screen import what

    one = {"id": "a", "session": "s", "kind": "question", "at": 1}
    assert what({**one, "title": "Which colour?", "summary": "Which colour?"}) == "Which colour?"
    assert what({**one, "title": "Which?"}) == "Which?"
    tool = {**one, "kind": "tool", "tool": "bash", "args": {"command": "ls"}}
    said = what({**tool, "title": "Approve bash?", "summary": "ls"})
    assert said.count("ls") == 1 and said.count("bash") == 1
