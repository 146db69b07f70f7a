"""ZeroClaw's own terminal, unmodified, where it is installed (`cargo install zerocode`)."""

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from tests.tui.panes import Home, Pane

FOUND = [path for path in (shutil.which("zerocode"),) if path]
pytestmark = [pytest.mark.terminal, pytest.mark.timeout(180)]


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home()
    yield made
    made.close()


@pytest.fixture
def pane(home: Home) -> Iterator[Pane]:
    """It, beside a daemon; it would go on without its terminal, for ever."""
    begin = "dragoman daemon --background && echo $$ > pid"
    made = home.open(f"{begin} && ZEROCLAW_SOCKET={home.socket} exec {FOUND[0]}", 150, 45)
    yield made
    with contextlib.suppress(ProcessLookupError):
        os.kill(int((home.work / "pid").read_text()), signal.SIGKILL)


def _next(pane: Pane, times: int) -> None:
    """On to a later one of its pages."""
    for _ in range(times):
        pane.press("M-Right")


@pytest.mark.parametrize("program", FOUND)
def test_a_first_hour(home: Home, pane: Pane, program: str) -> None:
    pane.wait("Dashboard", "Server", "Agents", "● default", "(you)")
    _next(pane, 2)
    pane.wait("Saved sessions")
    pane.press("Escape")
    pane.wait("Type to chat")
    pane.type("count to 5")
    pane.press("Enter")
    pane.wait("1 2 3 4 5")
    pane.type("write hello.txt with calm words")
    pane.press("Enter")
    pane.wait("Approval Required", "file_write", "+calm words")
    assert not (home.work / "hello.txt").exists()
    pane.press("Enter")
    pane.wait("Created", "1 | + calm words", gone="Approval Required")
    assert (home.work / "hello.txt").read_text() == "calm words"
    with home.host() as host:
        (row,) = [one for one in host.call("dragoman/sessions")["sessions"] if one["turns"]]
        assert row["query"] == "count to 5" and row["turns"] == 2
        host.call("dragoman/prompt", {"session_id": row["id"], "text": "count to 3"})
    pane.wait("another client asks] count to 3", "1 2 3")
    _next(pane, 2)
    pane.wait("Logs (")
    _next(pane, 1)
    pane.wait("Diagnostics", "0 errors")
    _next(pane, 1)
    pane.wait("Model provider", "Risk profile")
