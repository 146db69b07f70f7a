"""Sudden ends: the daemon is killed, comes back, is started again; nothing typed is lost."""

import os
import pty
import select
import signal
import subprocess
import time

import pytest
from tests.tui.panes import WITHIN, Home


def test_the_daemon_dies_the_terminal_says_so_goes_on_and_keeps_what_was_typed(home: Home) -> None:
    pane = home.open('dragoman "say before the crash"')
    pane.wait("  before the crash", "● ready")
    pane.type("half a sentence")
    pane.wait("› half a sentence")
    first = home.pid()
    os.kill(first, signal.SIGKILL)
    pane.wait("the daemon went away; what you typed is kept", "› half a sentence")
    pane.wait("connected again", "● ready", "› half a sentence")
    assert home.pid() != first
    pane.press("C-c")
    pane.say("say after the crash")
    shown = pane.wait("  before the crash", "  after the crash", "● ready")
    assert shown.count("› say before the crash") == 1


def test_a_turn_that_ran_is_shown_once_and_as_interrupted_after_a_crash(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("count slowly to 900")
    pane.wait("1 2 3 4 5 6")
    os.kill(home.pid(), signal.SIGKILL)
    shown = pane.wait("connected again", "interrupted", "● ready")
    assert shown.count("› count slowly to 900") == 1


def test_a_question_survives_the_daemon_and_is_answered_after(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("run touch survived")
    pane.wait("waits for your answer")
    os.kill(home.pid(), signal.SIGKILL)
    pane.wait("connected again")
    pane.wait("touch survived", " y  yes")
    pane.press("y")
    pane.wait("● bash touch survived")


def test_a_daemon_that_was_stopped_stays_so_until_it_is_needed(home: Home) -> None:
    pane = home.open('dragoman "say before the stop"')
    pane.wait("  before the stop", "● ready")
    first = home.pid()
    done = subprocess.run(
        ["dragoman", "stop"], env=home.env(), cwd=home.work, capture_output=True, timeout=WITHIN
    )
    assert done.returncode == 0, done.stderr
    pane.wait("the daemon was stopped; a prompt starts it again")
    assert not os.path.exists(home.socket)
    pane.say("say after the stop")
    pane.wait("connected again", "  before the stop", "  after the stop", "● ready")
    assert home.pid() != first


@pytest.mark.parametrize(
    ("words", "drawn", "code"),
    [(["dragoman"], b"demo", -signal.SIGHUP), (["dragoman", "--plain"], b"/help tells", 0)],
    ids=["screen", "plain"],
)
def test_a_terminal_that_goes_away_without_a_signal_ends_it(
    home: Home, words: list[str], drawn: bytes, code: int
) -> None:
    """So it is under `sudo` or `su`: the signal goes to who leads the session."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        words, stdin=its, stdout=its, stderr=its, cwd=home.work, start_new_session=True,
        env={**home.env(), "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(its)
    try:
        seen, limit = b"", time.monotonic() + WITHIN
        while drawn not in seen:
            assert time.monotonic() < limit, seen
            if select.select([ours], [], [], 1)[0]:
                seen += os.read(ours, 65_536)
        os.close(ours)
        assert process.wait(WITHIN) == code
    finally:
        process.kill()
        process.wait()


def test_ctrl_z_goes_to_the_shell_and_fg_comes_back(home: Home) -> None:
    pane = home.open("PS1='shell> ' bash --norc --noprofile -i")
    pane.wait("shell>")
    pane.type("sh -c dragoman\n")
    pane.wait("● ready")
    pane.type("half a sentence")
    pane.wait("› half a sentence")
    pane.press("C-z")
    pane.wait("Stopped", "shell>", gone="● ready")
    pane.resize(80, 24)
    pane.type("echo here $((40 + 2))\n")
    pane.wait("here 42")
    pane.type("fg\n")
    pane.wait("● ready", "› half a sentence")
    pane.type(" more")
    pane.wait("› half a sentence more")
    pane.press("C-_")
    pane.wait("● ready", gone="sentence more")


def test_ctrl_z_where_no_shell_waits_stops_nothing(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.press("C-z")
    pane.wait("no shell waits here")
    pane.say("say still there")
    pane.wait("  still there")
