"""The terminal: its first frame, what a delta costs it, how soon a key is drawn, its memory."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from statistics import quantiles

from bench.echo import cpu_ns

from .host import Running, daemon, greeted, resident
from .rows import Row, compared, held_to

_SIZE = (30, 100)
_FAST = 20_000  # deltas as fast as they come
_PACED = 100  # deltas in a second
_KEYS = "бвгджзийклмнптфхцчшщъыэюя"  # letters that no stream here holds
_END = "Ω"  # the last letter of a stream
_ALONE = """
import asyncio, sys
from dragoman.client import connect
async def main():
    async with connect(sys.argv[1]) as host:
        async with host.attach(sys.argv[2]) as stream:
            print("ready", flush=True)
            async for event in stream:
                if type(event.body).__name__ == "TurnEnded":
                    print("end", flush=True)
asyncio.run(main())
"""


class Tty:
    """The terminal in a pseudo-terminal of its own; `screen` is all that it has written."""

    def __init__(self, host: Running, *words: str) -> None:
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            env = {**os.environ, "TERM": "xterm-256color", "HOME": host.folder}
            # A warm machine has what was compiled at the first start, as an installed package has.
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            env["PYTHONPYCACHEPREFIX"] = os.path.join(host.folder, "compiled")
            command = [sys.executable, "-m", "dragoman", "--config-dir", host.folder]
            command[3:3] = ["terminal"]
            os.chdir(host.folder)
            os.execve(sys.executable, [*command, *words], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
        self.screen = b""

    def wait(self, text: str, seconds: float = 30, *, fresh: bool = False) -> float:
        """Read until this is written; returns when that was, in seconds since the start."""
        wanted = text.encode()
        seen = b"" if fresh else self.screen[-65536:]
        limit = time.perf_counter() + seconds
        while wanted not in seen:
            left = limit - time.perf_counter()
            if left <= 0:
                raise TimeoutError(f"the terminal did not write {text!r}")
            if select.select([self.fd], [], [], left)[0]:
                data = os.read(self.fd, 1 << 18)
                self.screen = (self.screen + data)[-(1 << 20) :]
                seen += data
        return time.perf_counter() - self.began

    def drain(self, seconds: float) -> None:
        """Read for a while."""
        limit = time.perf_counter() + seconds
        while (left := limit - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                self.screen = (self.screen + os.read(self.fd, 1 << 18))[-(1 << 20) :]

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@contextlib.contextmanager
def tty(host: Running, *words: str) -> Iterator[Tty]:
    made = Tty(host, *words)
    try:
        yield made
    finally:
        made.close()


def measure(folder: str, rounds: int, quick: bool) -> list[Row]:
    """All figures of the terminal."""
    rows: list[Row] = []
    with daemon(os.path.join(folder, "first"), ["hello"]) as host:
        rows += _first(host, rounds)
        rows.append(_memory(host, 1_000 if quick else 10_000))
    text = "some text " * _FAST + _END
    fast = [{"parts": [{"type": "say", "text": text, "deltas": _FAST}]}]
    with daemon(os.path.join(folder, "fast"), fast) as host:
        rows.append(_cost(host, "a delta of a fast stream", _FAST, 1, ""))
    count = _PACED * (4 if quick else 12)
    slow = [{"parts": [{"type": "say", "text": "some text " * count + _END, "deltas": count,
                        "delay": 1 / _PACED}]}]  # fmt: skip
    with daemon(os.path.join(folder, "paced"), slow) as host:
        rows.append(_cost(host, f"a delta at {_PACED} in a second", count, 2, "<= 3.0"))
        rows.append(_typing(host, count / _PACED))
    # Without a pace it is there before a key can be typed.
    huge = [{"parts": [{"type": "say", "text": "a line of text\n" * 140_000, "deltas": 500,
                        "delay": 0.006}]}]  # fmt: skip
    with daemon(os.path.join(folder, "huge"), huge) as host:
        rows.append(_typing(host, 3.0, "a key's delay while 2 MB come, worst", "<= 250"))
    return rows


def _first(host: Running, rounds: int) -> list[Row]:
    frames, keys = [], []
    for _ in range(rounds + 1):  # the first one warms the files up
        with tty(host) as made:
            frames.append(made.wait("›") * 1000)
            made.type("ж")  # typed ahead: it must not be lost
            keys.append(made.wait("ж") * 1000)
    return [
        held_to("terminal", "the first frame", frames[1:], "ms", "<= 400", digits=0),
        held_to("terminal", "the first key is drawn", keys[1:], "ms", digits=0),
    ]


def _session(host: Running) -> str:
    line = greeted(host)
    found = line.call("dragoman/open", cwd=host.folder)["session"]["id"]
    line.close()
    return str(found)


def _prompt(host: Running, session: str) -> None:
    line = greeted(host)
    line.call("dragoman/prompt", session_id=session, text="go")
    line.close()


def _cost(host: Running, name: str, deltas: int, rounds: int, bar: str) -> Row:
    """CPU of the terminal and of the client library alone, for the same stream."""
    mine, alone = [], []
    for _ in range(rounds):
        session = _session(host)
        with tty(host, "-r", session) as made:
            made.wait("ready")
            made.drain(0.5)
            before = cpu_ns(made.pid)
            child = os.fork()
            if child == 0:
                _prompt(host, session)
                os._exit(0)
            # A fast one may be over before the status line says that it is written.
            made.wait(_END, 120, fresh=True)
            made.drain(0.5)
            mine.append((cpu_ns(made.pid) - before) / 1000 / deltas)
            os.waitpid(child, 0)
        alone.append(_library(host, deltas))
    return compared("terminal", name, mine, "client alone", alone, "us cpu",
                    bar, digits=1)  # fmt: skip


def _library(host: Running, deltas: int) -> float:
    session = _session(host)
    process = subprocess.Popen(
        [sys.executable, "-c", _ALONE, host.path("daemon.sock"), session], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        before = cpu_ns(process.pid)
        _prompt(host, session)
        process.stdout.readline()
        return (cpu_ns(process.pid) - before) / 1000 / deltas
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _typing(host: Running, seconds: float, name: str = "", bar: str = "<= 30") -> Row:
    """How long a key takes to be drawn while text streams: the 99th percentile."""
    session = _session(host)
    delays = []
    with tty(host, "-r", session) as made:
        made.wait("ready")
        child = os.fork()
        if child == 0:
            _prompt(host, session)
            os._exit(0)
        made.wait("writing", fresh=True)
        until = time.perf_counter() + seconds * 0.8
        at = 0
        while time.perf_counter() < until:
            key = _KEYS[at % len(_KEYS)]
            at += 1
            begun = time.perf_counter()
            made.type(key)
            made.wait(key, fresh=True)
            delays.append((time.perf_counter() - begun) * 1000)
            made.drain(0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    worst = quantiles(delays, n=100)[98]
    shown = name or f"a key's delay at {_PACED} deltas in a second, p99"
    note = f"{len(delays)} keys, median {sorted(delays)[len(delays) // 2]:.1f}"
    return held_to("terminal", shown, [worst], "ms", bar, digits=1, note=note)


def _memory(host: Running, messages: int) -> Row:
    """Resident memory after a reader has gone through a long session from end to beginning."""
    session = _session(host)
    line = greeted(host)
    for _ in range(messages // 2):
        line.call("dragoman/prompt", session_id=session, text="a question of some words?")
    line.close()
    with tty(host, "-r", session) as made:
        made.wait("ready")
        made.drain(1)
        empty = resident(made.pid)
        for _ in range(messages // 150 + 4):
            made.type("\x1b[1;5H")  # ctrl+home: the beginning of what was read, then what is before
            made.drain(0.15)
        made.wait("question", fresh=False)
        value = resident(made.pid) / 1e6
    note = f"{empty / 1e6:.0f} with the last page of it"
    return held_to("terminal", f"memory with {messages} messages", [value], "MB", "<= 200",
                   digits=0, note=note)  # fmt: skip
