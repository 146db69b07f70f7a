"""Round trips over WebSocket through the gateway, beside Node servers."""

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from bench.echo import REFS, cpu_ns

from .dialects import _INITIALIZE
from .host import daemon
from .peers import NODE
from .rows import Row
from .starts import DRAGOMAN

_STATUS = b'{"jsonrpc":"2.0","id":12,"method":"status","params":{}}'
_TURNS = 3_000


def frame(text: bytes) -> bytes:
    """A masked text frame."""
    key = b"\x01\x02\x03\x04"
    body = bytes(byte ^ key[at & 3] for at, byte in enumerate(text))
    size = len(text)
    head = struct.pack("!BB", 0x81, 0x80 | size) if size < 126 else struct.pack(
        "!BBH", 0x81, 0xFE, size)  # fmt: skip
    return head + key + body


class Socket:
    """A blocking client for one request at a time."""

    def __init__(self, host: str, port: int, target: str) -> None:
        self.socket = socket.create_connection((host, port), 20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(
            f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            got = self.socket.recv(1)
            if not got:
                raise ConnectionError("the server closed the connection")
            head += got
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode())

    def ask(self, framed: bytes) -> bytes:
        """Send a frame; returns the one that answers it."""
        self.socket.sendall(framed)
        got = self.socket.recv(1 << 16)
        while len(got) < 4 or len(got) < _size(got):
            got += self.socket.recv(1 << 16)
        return got

    def close(self) -> None:
        self.socket.close()


def _size(data: bytes) -> int:
    short = data[1] & 0x7F
    return short + 2 if short < 126 else int.from_bytes(data[2:4], "big") + 4


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def _node(command: list[str], port: int) -> Iterator[int]:
    process = subprocess.Popen(command)
    try:
        limit = time.monotonic() + 15
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            if time.monotonic() > limit or process.poll() is not None:
                raise RuntimeError(f"{command} does not listen")
            time.sleep(0.01)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def measure(folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """`status` over /rpc; best p50 and best CPU of interleaved rounds."""
    node = shutil.which("node")
    if node is None:
        return [], ["WebSocket peers need Node: skipped"]
    notes = []
    peers = {"Node http + frames by hand": [node, str(REFS / "node_frames.js")]}
    if (NODE / "ws").is_dir():
        peers["Node ws"] = [node, str(REFS / "node_ws.js")]
    else:
        notes.append("the ws package is not installed: a leaner Node server takes its place")
    home = os.path.join(folder, "gateway")
    times: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(daemon(home, ["hello"], "[gateway]\nport = 0\n", True))
        links = {"ours": (_ours(home), host.pid)}
        for name, command in peers.items():
            port = _port()
            pid = stack.enter_context(_node([*command, str(port), str(NODE)], port))
            links[name] = (Socket("127.0.0.1", port, "/"), pid)
        links["ours"][0].ask(frame(_INITIALIZE))
        for round in range(rounds + 1):
            for name, (link, pid) in links.items():
                before = cpu_ns(pid)
                p50 = _times(link)
                if round:
                    times.setdefault(name, []).append(p50)
                    costs.setdefault(name, []).append((cpu_ns(pid) - before) / 1000 / _TURNS)
        for link, _ in links.values():
            link.close()
    rows = []
    for what, taken, unit, bar in (
        ("round trip", times, "us", "<= 1.2"), ("cpu", costs, "us cpu", "")):  # fmt: skip
        mine = taken["ours"]
        for name in peers:
            theirs = min(taken[name])
            rows.append(
                Row("gateway", f"WebSocket /rpc status, {what}", f"{min(mine):.2f} {unit}",
                    f"{name} {theirs:.2f}", min(mine) / theirs, bar,
                    f"{min(mine):.2f}-{max(mine):.2f} {unit}")
            )  # fmt: skip
    return rows, notes


def _ours(home: str) -> Socket:
    made = subprocess.run(
        [DRAGOMAN, "token", "new", "--config-dir", home],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    address = json.loads(Path(home, "data", "gateway.json").read_text())["address"]
    where = urlsplit(address)
    assert where.hostname and where.port
    return Socket(where.hostname, where.port, f"/rpc?token={made.stdout.split()[-1]}")


def _times(link: Socket) -> float:
    framed = frame(_STATUS)
    found = []
    for _ in range(_TURNS):
        start = time.perf_counter()
        link.ask(framed)
        found.append((time.perf_counter() - start) * 1e6)
    found.sort()
    return found[len(found) // 2]
