"""Every command that waits ends at a signal and at a closed terminal, and leaves nothing behind."""

import ctypes
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.living import Living
from tests.cli.test_everyday import new_session

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and sub-reapers"),
    pytest.mark.slow,
]

WITHIN = 60  # only tells a hang
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
# The terminal on standard input is the one whose Ctrl-C and end are this process's.
_TAKE = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
HELLO = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
ENDED = {
    signal.SIGINT: (130, -signal.SIGINT),
    signal.SIGTERM: (143, -signal.SIGTERM),
    signal.SIGHUP: (129, -signal.SIGHUP),
}


@dataclass(frozen=True)
class Waiting:
    """A command, and how it is known that it waits."""

    words: str
    ready: str = ""  # is printed then; empty: it has called the mute listener
    lone: bool = False  # without a daemon
    types: str = ""  # what it is told first
    presses: int = 1  # of Ctrl-C until it ends
    asks: bool = False  # by Python's `input`
    served: tuple[int, ...] = ()  # signals that are a usual way to leave it, with 0
    heeds: tuple[int, ...] = ()  # signals that do not end it
    config: str = ""
    outlives: tuple[int, ...] = ()  # signals after which a child of the user's own goes on


CHILDREN = "(it has children)"
_MUTE_MCP = '[mcp.mute]\nurl = "http://127.0.0.1:{port}/mcp"\n'
_FLEET = '[fleet]\nname = "n"\ndatabase = "postgresql://x@127.0.0.1:{port}/x"\n'
_COUNT = "count slowly to 3000"
CASES = {
    "run": Waiting(f"run|{_COUNT}", r"\b2\b", lone=True),
    "run in a daemon": Waiting(f"run|{_COUNT}", r"\b2\b"),
    "run a command": Waiting("run|--approve|all|run echo be''gun; sleep 1000", "begun", lone=True),
    "run asks": Waiting('run|write "x" to a.txt', r"\[n\]o", lone=True),
    "run asks in a daemon": Waiting('run|write "x" to a.txt', r"\[n\]o"),
    "tail": Waiting("sessions|tail|SESSION|-f", "what is dragoman"),
    "send": Waiting(f"sessions|send|SESSION|{_COUNT}", r"\b2\b"),
    "send asks": Waiting('sessions|send|SESSION|write "x" to a.txt', r"\[n\]o"),
    "approvals": Waiting("approvals|--watch", r"waiting for approvals|\[n\]o"),
    "tap": Waiting("tap", "listening"),
    "logs": Waiting("logs|-f", "ready"),
    "login": Waiting("login", "Number or name:", lone=True, asks=True),
    "login key": Waiting("login|anthropic", "not shown", lone=True, asks=True),
    "mcp login": Waiting("mcp|login|mute", lone=True, config=_MUTE_MCP),
    "pair": Waiting("pair", lone=True),
    "status": Waiting("status", lone=True),
    "open": Waiting("open", lone=True),
    "open browser": Waiting("open", "browsing", outlives=(signal.SIGTERM,)),
    "acp": Waiting("acp", "protocolVersion.*agentCapabilities", types=HELLO),
    "acp alone": Waiting("acp", "protocolVersion.*agentCapabilities", lone=True, types=HELLO),
    "speak": Waiting("speak|zeroclaw", "result", lone=True, types=HELLO),
    "rpc": Waiting("rpc|--provider|demo", "response", lone=True, types='{"type":"get_state"}'),
    "acp-bridge": Waiting("acp-bridge", "agentCapabilities", types=HELLO),
    "self-test": Waiting("self-test", "the daemon starts", lone=True),
    "doctor": Waiting("doctor|--attack", CHILDREN, lone=True),
    "fleet": Waiting("fleet", lone=True, config=_FLEET),
    "store copy": Waiting("store|copy|DB|postgresql://x@127.0.0.1:{port}/x", lone=True),
    "daemon": Waiting(
        "daemon|--no-gateway", "ready", lone=True, served=(signal.SIGINT, signal.SIGTERM),
        heeds=(signal.SIGHUP,),  # it reads its configuration again
    ),
    "plain": Waiting("--plain", r"/help tells", presses=2, served=(signal.SIGINT, signal.SIGHUP)),
    "replay": Waiting(
        "replay|TALK|--socket|SOCK", "ready:", lone=True,
        served=(signal.SIGINT, signal.SIGTERM),  # its code tells how the talk went
    ),
}  # fmt: skip


class Mute:
    """Somebody who takes connections, at a port or a path, and says nothing."""

    def __init__(self, path: str) -> None:
        self._at_path = socket.socket(socket.AF_UNIX)
        self._at_port = socket.create_server(("127.0.0.1", 0))
        self.port = self._at_port.getsockname()[1]
        if path:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            self._at_path.bind(path)
            self._at_path.listen()
        self._called: list[socket.socket] = []

    def wait(self) -> None:
        """Until somebody has called and asked for something."""
        found = select.select([self._at_path, self._at_port], [], [], WITHIN)[0]
        assert found, "nobody has called"
        called, _ = found[0].accept()
        self._called.append(called)
        called.settimeout(WITHIN)
        assert called.recv(1, socket.MSG_PEEK)

    def close(self) -> None:
        for one in (*self._called, self._at_path, self._at_port):
            one.close()


class Terminal:
    """A command in a terminal that is its own, for Ctrl-C and for good."""

    def __init__(self, living: Living, words: list[str]) -> None:
        self.ours, side = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE, sys.executable, "-m", "dragoman", *words],
            env=living.env, cwd=living.work, stdin=side, stdout=side, stderr=side,
            start_new_session=True,
        )  # fmt: skip
        os.close(side)
        self.said = ""
        self.open = True

    def read(self, until: Callable[[], object]) -> None:
        """What is said goes to `said`, until something holds, or nothing more can come."""
        limit = time.monotonic() + WITHIN
        while not until():
            assert time.monotonic() < limit, f"it hangs: {self.said[-2000:]}"
            if not self.open or not select.select([self.ours], [], [], 0.05)[0]:
                continue
            try:
                self.said += os.read(self.ours, 65536).decode(errors="replace")
            except OSError:
                return  # nobody has the other side any more

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def hang_up(self) -> None:
        if self.open:
            os.close(self.ours)
        self.open = False

    def over(self) -> int:
        self.read(lambda: self.process.poll() is not None)
        return self.process.wait(WITHIN)

    def press_again(self) -> None:
        """Type a second Ctrl-C, as people do, when the first does nothing for a long time.

        Python's `input` misses one that comes between its words and its reading.
        """
        soon = time.monotonic() + 20
        self.read(lambda: self.process.poll() is not None or time.monotonic() > soon)
        if self.process.poll() is None:
            self.type("\x03")


def children(of: int) -> dict[int, str]:
    """All processes below this one, and what they are."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if fields[0] != "Z":
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found: dict[int, str] = {}
    look = [of]
    while look:
        for pid in below.get(look.pop(), ()):
            look.append(pid)
            try:
                found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
    return found


@pytest.fixture(scope="module", autouse=True)
def reaper() -> Iterator[None]:
    """Whoever is left behind becomes a child of this process."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    libc.prctl(_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def short() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="di-", dir="/tmp"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    made = Living(tmp_path_factory.mktemp("s"))
    (made.config / "config.toml").write_text(
        '[agents.default]\nmodel = "demo/demo"\n[gateway]\nport = 0\nrequire_pairing = false\n'
    )
    del made.env["DRAGOMAN_agents__default__model"]
    made.process = made.spawn("daemon")
    assert made.process.stderr is not None
    while (line := made.process.stderr.readline()).strip() != "ready":
        assert line, "the daemon did not start"
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, one) for name, case in CASES.items() for one in ENDED if one not in case.heeds],
    ids=lambda one: one.name if isinstance(one, signal.Signals) else one,
)
def test_it_ends_and_leaves_nothing_behind(
    served: Living, short: Path, name: str, number: signal.Signals
) -> None:
    case = CASES[name]
    home, temporary = short / "h", short / "t"
    home.mkdir()
    temporary.mkdir()
    living = Living(home) if case.lone else served
    living.env["TMPDIR"] = str(temporary)
    browser = short / "browser"
    browser.write_text("#!/bin/sh\necho browsing\nexec sleep 1000\n")
    browser.chmod(0o700)
    living.env["BROWSER"] = f"{browser} %s"
    mute = Mute(living.socket if case.lone and not case.ready else "")
    if case.config:
        (living.config / "config.toml").write_text(case.config.replace("{port}", str(mute.port)))
    words = [_filled(one, served, short, mute) for one in case.words.split("|")]
    before = children(os.getpid())
    terminal = Terminal(living, words)
    try:
        if case.types:
            terminal.type(case.types + "\n")
        if case.ready == CHILDREN:
            terminal.read(lambda: children(terminal.process.pid))
        elif case.ready:
            terminal.read(lambda: re.search(case.ready, terminal.said))
            assert re.search(case.ready, terminal.said), terminal.said
        else:
            mute.wait()
        if number == signal.SIGINT:
            for _ in range(case.presses):
                terminal.type("\x03")
                if case.presses > 1:
                    terminal.read(lambda: "ctrl+c again leaves" in terminal.said)
            if case.asks:
                terminal.press_again()
        elif number == signal.SIGHUP:
            terminal.hang_up()
        else:
            terminal.process.send_signal(number)
        code = terminal.over()
    finally:
        terminal.process.kill()
        terminal.process.wait()
        left = _left(before, number not in case.outlives)
        terminal.hang_up()
        mute.close()
    allowed = (*ENDED[number], *([0] if number in case.served else []))
    assert "Traceback" not in terminal.said, terminal.said
    assert code in allowed, (code, terminal.said)
    assert not left
    assert not list(temporary.iterdir())
    if case.lone:
        assert not [str(one) for one in home.rglob("*") if one.is_socket()] or not case.ready


def _filled(word: str, served: Living, short: Path, mute: Mute) -> str:
    if word == "SESSION":
        return new_session(served, "what is dragoman")
    if word == "DB":
        return str(next(served.config.glob("data/*.db")))
    if word == "SOCK":
        return str(short / "replay.sock")
    if word == "TALK":
        return str(next((Path(__file__).parent.parent / "transcripts" / "acp").glob("*.talk")))
    return word.replace("{port}", str(mute.port))


def _left(before: dict[int, str], wait: bool) -> dict[int, str]:
    """Who is still there that was not before; those are ended, so that the next test has none."""
    limit = time.monotonic() + (WITHIN if wait else 0)
    while left := {k: v for k, v in children(os.getpid()).items() if k not in before}:
        if time.monotonic() > limit:
            break
        time.sleep(0.05)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    while True:  # those that have become ours
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                break
        except ChildProcessError:
            break
    return left if wait else {}
