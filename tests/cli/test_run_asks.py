"""`dragoman run` in a real terminal: a question is paged whole, and nothing hides in it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from tests.daemon.running import call, say, script

HIDDEN = "\x08\u202e\u200b\u00a0\U000e0041"
BIG = "".join(f"line {n} of what is lost\n" for n in range(120_000))
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "long": (call("bash", command="touch " + "x" * 200 + " " + "y" * 39_700 + " END"), " END"),
    "overwrite": (call("write", path="kept.txt", content="new\n"), "-precious"),
    "large": (call("write", path="big.txt", content="new\n"), "-line 119999 of what is lost"),
    "escape": (call("write", path="a\x1b[2Jb.txt", content="x"), "a<ESC>[2Jb.txt"),
    "override": (
        call("bash", command="touch \u202etxt.exe a\u200bb"),
        "<U+202E>txt.exe a<U+200B>b",
    ),
}


class Terminal:
    """The command in a terminal of 24 lines."""

    def __init__(self, top: Path, turns: list[dict[str, Any]]) -> None:
        config = top / "c"
        config.mkdir(mode=0o700)
        (config / "config.toml").write_text(script(top, turns))
        self.main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "run", "--config-dir", str(config), "go"],
            cwd=top / "work", env=env, stdin=side, stdout=side, stderr=side,
            start_new_session=True,
        )  # fmt: skip
        os.close(side)
        self.seen = ""

    def until(self, *patterns: str) -> str:
        """Read until one of these is what was said last."""
        limit = time.monotonic() + 200
        while time.monotonic() < limit:
            for pattern in patterns:
                if re.search(f"{pattern}$", self.seen[-1_000:].rstrip("\r\n ")):
                    return pattern
            if not select.select([self.main], [], [], 1)[0]:
                continue
            try:
                self.seen += os.read(self.main, 1 << 16).decode(errors="replace")
            except OSError:
                return "end"
        raise AssertionError(self.seen[-2000:])

    def type(self, text: str) -> None:
        os.write(self.main, text.encode())


@pytest.mark.parametrize("case", CASES)
def test_a_question_is_paged_whole_before_yes_counts(tmp_path: Path, case: str) -> None:
    turn, expected = CASES[case]
    work = tmp_path / "work"
    work.mkdir()
    (work / "kept.txt").write_text("precious\n")
    (work / "big.txt").write_text(BIG)
    terminal = Terminal(tmp_path, [turn, say("done")])
    more, yes = r"\[n\]o:", r"\[a\]lways…, \[n\]o:"
    found = terminal.until(yes, more)
    if case in ("long", "large"):
        assert found == more and expected not in terminal.seen
        terminal.seen = ""
        terminal.type("y\n")  # it was not seen yet: the same page again
        assert terminal.until(yes, more) == more
        assert not list(work.glob("x*")) and (work / "big.txt").read_text() == BIG
        terminal.seen = ""
        terminal.type("e\n")
        assert terminal.until(yes) == yes
    assert expected in terminal.seen.replace("\r\n", "") or expected in terminal.seen
    assert not set(HIDDEN) & set(terminal.seen) and "\x1b[2J" not in terminal.seen
    terminal.type("n\n")
    terminal.until("done.*", "end")
    terminal.process.wait(30)
    os.close(terminal.main)
    assert (work / "kept.txt").read_text() == "precious\n"
    assert sorted(os.listdir(work)) == ["big.txt", "kept.txt"]


def test_whoever_cancels_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    terminal = Terminal(tmp_path, [call("write", path="a.txt", content="x"), say("done")])
    terminal.until(r"\[n\]o:")
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("end")
    assert terminal.process.wait(30) == 130
    os.close(terminal.main)
    assert "you cancelled it" in terminal.seen
    assert "elsewhere" not in terminal.seen and "by the host" not in terminal.seen


@pytest.mark.parametrize(
    ("flags", "told"),
    [([], "Denied: nobody could be asked."), (["--approve", "none"], "Denied by user.")],
)
def test_the_model_learns_whether_anybody_could_be_asked(
    tmp_path: Path, flags: list[str], told: str
) -> None:
    config = tmp_path / "c"
    config.mkdir(mode=0o700)
    work = tmp_path / "work"
    work.mkdir()
    turns = [call("write", path="a.txt", content="x"), say("done")]
    (config / "config.toml").write_text(script(tmp_path, turns))
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "run", "--config-dir", str(config), *flags, "go"],
        cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and told in done.stderr, done.stderr
    assert not os.listdir(work)


def test_a_server_that_fails_is_told_of_once(tmp_path: Path) -> None:
    """Without a daemon the log is where the notes are printed: it said the same before them."""
    config = tmp_path / "c"
    config.mkdir(mode=0o700)
    broken = '\n[mcp.broken]\ncommand = "/nowhere/at-all"\n'
    (config / "config.toml").write_text(script(tmp_path, [say("done")]) + broken)
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "run", "--config-dir", str(config), "go"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    notes = [one for one in done.stderr.splitlines() if "broken" in one]
    if len(notes) > 1:  # a machine with too much to do
        assert "is still on its way" in notes.pop(0)
    (note,) = notes
    assert note.startswith("  MCP server broken") and " warning mcp " not in done.stderr
