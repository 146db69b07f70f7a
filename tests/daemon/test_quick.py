"""The protocol document's quick test, literally: two lines pasted through socat in a terminal."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time

from tests.daemon.running import Daemon

LINES = (
    b'{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1},"id":1}\n',
    b'{"jsonrpc":"2.0","method":"status","params":{},"id":2}\n',
)
# What socat does between a terminal and a socket, for machines that have none.
STAND_IN = """
import os, select, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
open_sides = [0, sock]
while True:
    ready, _, _ = select.select(open_sides, [], [])
    if 0 in ready:
        typed = os.read(0, 65536)
        sock.sendall(typed) if typed else sock.shutdown(socket.SHUT_WR)
        open_sides = [0, sock] if typed else [sock]
    if sock in ready:
        os.write(1, sock.recv(65536) or sys.exit())
"""
SOCKET = "$HOME/.zeroclaw/data/daemon.sock"  # few shells expand a ~ behind a colon


def command():
    """As in the document; a socat that was built without readline takes STDIO instead."""
    if not shutil.which("socat"):
        return f"exec '{sys.executable}' -c '{STAND_IN}' {SOCKET}"  # it has no single quotes
    known = subprocess.run(["socat", "-V"], capture_output=True, timeout=60).stdout
    side = "READLINE" if b"#define WITH_READLINE 1" in known else "STDIO"
    return f"exec socat {side} UNIX-CONNECT:{SOCKET}"


def read_answer(terminal, id):
    """The answer among what the terminal shows (it also echoes what is typed)."""
    shown = b""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 65536)
        for row in shown.replace(b"\r", b"").split(b"\n")[:-1]:
            try:
                message = json.loads(row)
            except ValueError:
                continue
            if message.get("id") == id and "result" in message:
                return message["result"]
    raise AssertionError(f"no answer {id} in {shown!r}")


def test_the_two_lines(tmp_path):
    folder = tmp_path / ".zeroclaw"
    folder.mkdir(mode=0o700)
    env = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}
    with Daemon(folder).wait_ready():
        terminal, inside = pty.openpty()
        client = subprocess.Popen(
            command(), shell=True, env=env, stdin=inside, stdout=inside, stderr=inside,
            start_new_session=True,
        )  # fmt: skip
        os.close(inside)
        try:
            os.write(terminal, LINES[0])
            assert read_answer(terminal, 1)["protocolVersion"] == 1
            os.write(terminal, LINES[1])
            status = read_answer(terminal, 2)
            assert status["protocolVersion"] == 1 and status["sessionIds"] == []
            assert status["serverVersion"]
        finally:
            client.kill()
            client.wait(60)
            os.close(terminal)


def test_both_lines_from_a_pipe(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        words = ["socat", "-t5", "STDIO", f"UNIX-CONNECT:{daemon.socket}"]
        if not shutil.which("socat"):
            words = [sys.executable, "-c", STAND_IN, daemon.socket]
        done = subprocess.run(words, input=b"".join(LINES), capture_output=True, timeout=60)
        answers = [json.loads(row) for row in done.stdout.splitlines()]
        assert [one["id"] for one in answers] == [1, 2]
