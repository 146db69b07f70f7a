"""Standard input and output of every kind: pipes, sockets, files, terminals, devices."""

import asyncio
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from dragoman.transports import stdio

PROGRAM = Path(__file__).with_name("stdio_echo.py")
SOURCE = str(Path(__file__).parents[2] / "src")
pytestmark = pytest.mark.parametrize("loop", ["uvloop", "asyncio"])


def start(loop: str, **streams: object) -> subprocess.Popen:
    return subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, str(PROGRAM), loop],
        env={**os.environ, "PYTHONPATH": SOURCE},
        stderr=subprocess.PIPE,
        **streams,
    )


def finish(child: subprocess.Popen) -> bytes:
    """Wait for a clean end; return what went to standard error."""
    try:
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 0, err
    assert b"Traceback" not in err, err
    return err


def test_pipes_and_nothing_but_the_wire_on_stdout(loop):
    child = start(loop, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdin.write(b"a\n")
    child.stdin.flush()
    assert child.stdout.readline() == b">a\n"
    out, err = child.communicate(b"shout\nlast", timeout=60)
    assert out == b">last\nended\n"
    assert child.returncode == 0 and b"Traceback" not in err
    for stray in (b"stray print", b"stray write", b"stray child", b"lost"):
        assert stray in err


def test_pending_output_is_flushed_before_the_end(loop):
    child = start(loop, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, err = child.communicate(b"big 3000000\n" * 3, timeout=60)
    assert len(out) == 3 * 3_000_001 + 6 and out.endswith(b"x\nended\n")
    assert child.returncode == 0, err


def test_files(loop, tmp_path):
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"".join(b"%d\n" % n for n in range(50_000)) + b"no newline")
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        finish(start(loop, stdin=stdin, stdout=stdout))
    lines = sink.read_bytes().split(b"\n")
    assert lines[:2] == [b">0", b">1"] and lines[-3:] == [b">no newline", b"ended", b""]
    assert len(lines) == 50_003


def test_dev_null(loop, tmp_path):
    child = start(loop, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert child.stdout.read() == b"ended\n"
    finish(child)
    child = start(loop, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    child.stdin.write(b"a\n")
    child.stdin.close()
    child.stdin = None
    finish(child)


def test_separate_sockets(loop):
    in_ours, in_theirs = socket.socketpair()
    out_ours, out_theirs = socket.socketpair()
    with in_ours, in_theirs, out_ours, out_theirs:
        child = start(loop, stdin=in_theirs, stdout=out_theirs)
        in_theirs.close()
        out_theirs.close()
        out_ours.settimeout(60)
        in_ours.sendall(b"a\n")
        assert out_ours.recv(100) == b">a\n"
        in_ours.close()
        assert out_ours.recv(100) == b"ended\n"
        assert out_ours.recv(100) == b""
        finish(child)


def test_one_socket_for_both(loop):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = start(loop, stdin=theirs, stdout=theirs)
        theirs.close()
        ours.settimeout(60)
        ours.sendall(b"a\n")
        assert ours.recv(100) == b">a\n"
        ours.shutdown(socket.SHUT_WR)
        assert ours.recv(100) == b"ended\n"
        finish(child)


def test_a_terminal(loop):
    ours, theirs = pty.openpty()
    try:
        child = start(loop, stdin=theirs, stdout=theirs)
        os.close(theirs)
        os.write(ours, b"typed\n")
        seen = b""
        while b">typed" not in seen:
            seen += os.read(ours, 1000)
        os.write(ours, b"\x04")
        while b"ended" not in seen:
            seen += os.read(ours, 1000)
        finish(child)
    finally:
        os.close(ours)


def test_a_reader_that_goes_ends_it_quietly(loop):
    child = start(loop, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.close()
    child.stdout = None
    child.stdin.write(b"big 200000\n")
    child.stdin.flush()
    err = finish(child)
    assert b"BrokenPipe" not in err and b"lost" in err


class Ear:
    """Keeps the lines that it hears."""

    max_line = max_pending = 1 << 24
    limit_counts_newline = False

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.over = asyncio.Event()

    def hear(self, lines: list[bytes]) -> None:
        self.lines += lines

    def overlong(self, size: int) -> None:
        raise AssertionError(size)

    def ended(self) -> None:
        self.over.set()

    def lost(self) -> None:
        self.over.set()


@pytest.mark.parametrize("sockets", [False, True])
def test_what_was_read_before_comes_first(loop, sockets):
    async def play() -> list[bytes]:
        if sockets:
            inside, outside = socket.socketpair()
            stdin, feed = inside.detach(), outside.detach()
        else:
            stdin, feed = os.pipe()
        reader, stdout = os.pipe()
        os.write(feed, b'cond"}\nthird\n')  # it is there before anybody looks
        ear = Ear()
        line = await stdio.serve(lambda _: ear, stdin=stdin, stdout=stdout, first=b'first\n{"se')
        os.close(feed)
        async with asyncio.timeout(60):
            await ear.over.wait()
        line.pump.close()
        await line.gone.wait()
        os.close(reader)
        if sockets:
            os.close(stdin)  # a copy of it was used
        return ear.lines

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(play()) == [b"first", b'{"second"}', b"third"]
