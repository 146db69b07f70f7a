"""WebSocket through the gateway, beside gorilla (Go) and `ws` (Node): round trips and batches."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from bench.echo import BOTH, REFS, Client, Load, Target, build_go, compare

from .dialects import INITIALIZE
from .host import daemon
from .peers import NODE
from .rows import Row, compared
from .starts import DRAGOMAN

_STATUS = b'{"jsonrpc":"2.0","id":12,"method":"status","params":{}}'
_ONE, _BATCH = Load("one at a time", 1, 1, 3000), Load("64 in flight", 1, 64, 100, BOTH)
# Where Debian's golang-github-gorilla-websocket-dev puts its source.
_GORILLA = Path("/usr/share/gocode/src/github.com/gorilla/websocket")
_FRAMES = "Node http + frames by hand"
_BARS = {
    "gorilla": ("<= 1.3", "<= 0.8"),
    "Node ws": ("<= 1.2", ""),
    _FRAMES: ("<= 1.2", ""),  # in place of ws; it does less
}


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def _serving(command: list[str], port: int) -> Iterator[int]:
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


def _commands(folder: str, notes: list[str]) -> dict[str, list[str]]:
    """Every peer that can be run here; PORT and the folder of Node's modules are added."""
    found: dict[str, list[str]] = {}
    packages = {"github.com/gorilla/websocket": _GORILLA}
    gorilla = build_go(folder, "go_ws", packages) if _GORILLA.is_dir() else None
    if gorilla:
        found["gorilla"] = [gorilla]
    else:
        notes.append("gorilla/websocket is not installed (make setup-tools), or no Go: skipped")
    node = shutil.which("node")
    if node is None:
        notes.append("WebSocket peers in Node need Node: skipped")
    elif (NODE / "ws").is_dir():
        found["Node ws"] = [node, str(REFS / "node_ws.js")]
    else:
        notes.append("ws is not installed (make setup-node): a leaner Node server takes its place")
        found[_FRAMES] = [node, str(REFS / "node_frames.js")]
    return found


def measure(folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """`status` over /rpc; the peers parse a request and answer with two words."""
    client = Client(folder, "wsclient")
    if not client.compiled:
        return [], ["WebSocket measures need a C compiler: skipped"]
    notes: list[str] = []
    home = os.path.join(folder, "gateway")
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(daemon(home, ["hello"], "[gateway]\nport = 0\n", True))
        ours = Target("ours", _address(home), _STATUS, host.pid, (INITIALIZE,))
        peers = []
        for name, command in _commands(folder, notes).items():
            port = _port()
            pid = stack.enter_context(_serving([*command, str(port), str(NODE)], port))
            peers.append(Target(name, f"{port}/", _STATUS, pid))
        compare([ours, *peers], client, (_ONE, _BATCH), rounds)
    rows = []
    for peer in peers:
        bars = _BARS[peer.name]
        for load, what, word, unit, bar in (
            (_ONE, "p50", "round trip", "us", bars[0]),
            (_ONE, "cpu", "cpu", "us cpu", ""),
            (_BATCH, "cpu", "cpu", "us cpu", bars[1]),
        ):
            mine, theirs = (
                [getattr(sample, what) for sample in target.samples[load.name]]
                for target in (ours, peer)
            )
            name = f"WebSocket /rpc status, {load.name}, {word}"
            rows.append(compared("gateway", name, mine, peer.name, theirs, unit, bar))
    return rows, notes


def _address(home: str) -> str:
    """Port and target of our gateway's /rpc, with a token."""
    made = subprocess.run(
        [DRAGOMAN, "token", "new", "--config-dir", home],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    address = json.loads(Path(home, "data", "gateway.json").read_text())["address"]
    return f"{urlsplit(address).port}/rpc?token={made.stdout.split()[-1]}"
