"""Requests: every dialect of a real daemon beside the reference servers, in one interleaved run."""

import contextlib
import json
import os
import shutil
import socket
from pathlib import Path

from bench.echo import LOADS, REFS, Client, Load, Target, compare, cpu_ns, references

from .host import Line, Running, greeted, serving
from .rows import Row, compared, held_to

_REGISTER = json.dumps(
    {
        "id": "r", "type": "request", "timestamp": 1, "method": "app.register",
        "params": {"manifest": {"id": "@bench/app@@@", "name": "b", "version": "1.0.0",
                                "type": "app", "main": "x", "protocol": {"version": "1.0"},
                                "capabilities": {}}},
    }
).encode()  # fmt: skip
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
ACP = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,'
    b'"clientCapabilities":{},"clientInfo":{"name":"bench","version":"1"}}}'
)


def targets(host: Running) -> list[Target]:
    """The quick verb of each dialect."""

    def rpc(method: str) -> bytes:
        return b'{"jsonrpc":"2.0","id":12,"method":"%s","params":{}}' % method.encode()

    heartbeat = b'{"id":"h1","type":"request","timestamp":1,"method":"app.heartbeat","params":{}}'
    asked: tuple[tuple[str, str, bytes, tuple[bytes, ...]], ...] = (
        ("zeroclaw status", "daemon.sock", rpc("status"), (INITIALIZE,)),
        ("openclawos heartbeat", "kernel.sock", heartbeat, (_REGISTER,)),
        ("humanlayer health", "humanlayer.sock", rpc("health"), ()),
        ("zot ping", "any.sock", b'{"id":"9","type":"ping"}', ()),
        ("acp session/list", "acp.sock", rpc("session/list"), (ACP,)),
    )
    return [
        Target(name, host.path(socket), request, host.pid, greeting)
        for name, socket, request, greeting in asked
    ]


def measure(host: Running, folder: str, rounds: int) -> list[Row]:
    """Round trip, CPU and rate of every dialect against the references."""
    client = Client(folder)
    ours = targets(host)
    where = os.path.join(folder, "refs")
    os.makedirs(where, exist_ok=True)
    with references(where) as peers:
        shown = {peer.name: peer for peer in peers if peer.name in _BARS}
        echo = next((peer for peer in peers if peer.name == _FLOOR), None)
        # The floor moves the same bytes: an echo of what we answer.
        floors = {t.name: Target(_FLOOR, echo.path, _answer(t), echo.pid) for t in ours if echo}
        compare([*shown.values(), *floors.values(), *ours], client, rounds=rounds)
    rows: list[Row] = []
    for target in ours:
        beside = [floors[target.name]] if echo else []
        rows += _rows(target, [*beside, *shown.values()])
    return rows


def _answer(target: Target) -> bytes:
    """What the server says to the request."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        link.connect(target.path)
        said = b""
        for line in (*target.greeting, target.request):
            link.sendall(line + b"\n")
            said = link.recv(1 << 18)
            while not said.endswith(b"\n"):
                said += link.recv(1 << 18)
        return said.rstrip(b"\n").rpartition(b"\n")[2]


_FLOOR = "C epoll echo"
_ONE, _MANY, _WIDE = (load.name for load in LOADS)
# reference -> (load, what is compared, bar)
_FLOOR_BARS = ((_ONE, "p50", "<= 2.0"), (_MANY, "cpu", "<= 12"))
_BARS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "uvloop echo": ((_ONE, "p50", ""), (_MANY, "cpu", "")),
    "Go encoding/json": (
        (_ONE, "p50", "<= 1.25"),
        (_MANY, "cpu", "<= 0.4"),
        (_MANY, "rate", ">= 2.0"),
        (_WIDE, "cpu", "<= 1.0"),
    ),
    "Go, one write per batch": ((_MANY, "cpu", "<= 0.8"),),
    "Node net": (
        (_ONE, "p50", "<= 1.0"),
        (_MANY, "cpu", "<= 0.5"),
        (_MANY, "rate", ">= 2.0"),
        (_WIDE, "cpu", "<= 1.0"),
    ),
    "asyncio streams": ((_ONE, "p50", ""), (_MANY, "cpu", "<= 0.5")),
}
_WORDS = {"p50": ("round trip", "us"), "cpu": ("cpu", "us cpu"), "rate": ("rate", "per ms")}
# Pages of a list, beside references that answer with two words: shown for information. Their peers
# are the official SDKs' agents (`peers.py`), which have bars.
_LISTS = {"acp session/list"}


def _rows(ours: Target, peers: list[Target]) -> list[Row]:
    rows = []
    for peer in peers:
        for load, what, bar in _FLOOR_BARS if peer.name == _FLOOR else _BARS[peer.name]:
            word, unit = _WORDS[what]
            scale = 1000 if what == "rate" else 1
            mine, theirs = (
                [getattr(sample, what) / scale for sample in target.samples[load]]
                for target in (ours, peer)
            )
            rows.append(
                compared("requests", f"{ours.name}, {load}, {word}", mine, peer.name, theirs, unit,
                         "" if ours.name in _LISTS else bar,
                         pick="most" if what == "rate" else "best")
            )  # fmt: skip
    return rows


def listing(host: Running, folder: str, rounds: int, sessions: int = 1000) -> list[Row]:
    """humanlayer `listSessions` with many sessions, beside Node that writes the same list."""
    line = greeted(host)
    have = line.call("status").get("activeSessions", 0)
    for _ in range(max(0, sessions - int(have))):
        line.call("session/new", agentAlias="default", cwd="/")
    line.close()
    request = b'{"jsonrpc":"2.0","id":12,"method":"listSessions","params":{}}'
    ours = Target("listSessions", host.path("humanlayer.sock"), request, host.pid)
    load = Load("one at a time", 1, 1, 40)
    name = f"humanlayer listSessions, {sessions} sessions"
    rows = []
    with contextlib.ExitStack() as stack:
        targets, node = [ours], shutil.which("node")
        if node:
            said, path = os.path.join(folder, "list.json"), os.path.join(folder, "list.sock")
            Path(said).write_bytes(_answer(ours))
            command = [node, str(REFS / "node_list.js"), path, said]
            pid = stack.enter_context(serving(command, path))
            targets.append(Target("Node, the same list", path, request, pid))
        compare(targets, Client(folder), (load,), rounds=rounds)
        for what, word in (("p50", "round trip"), ("cpu", "cpu")):
            values = [[getattr(sample, what) / 1000 for sample in target.samples[load.name]]
                      for target in targets]  # fmt: skip
            unit = "ms" if what == "p50" else "ms cpu"
            rows += [
                compared("requests", f"{name}, {word}", values[0], peer.name, theirs, unit)
                for peer, theirs in zip(targets[1:], values[1:], strict=True)
            ]
    changed = _changed(host, rounds * 5)
    rows.append(held_to("requests", f"{name}, after one of them changed", changed, "ms cpu"))
    return rows


def _changed(host: Running, times: int) -> list[float]:
    """CPU of a list that cannot be the same as the one before, in ms."""
    line = Line(host.path("humanlayer.sock"))
    session = line.call("listSessions")["sessions"][0]["id"]
    taken = []
    for number in range(times):
        line.call("updateSessionTitle", session_id=session, title=f"title {number}")
        before = cpu_ns(host.pid)
        line.call("listSessions")
        taken.append((cpu_ns(host.pid) - before) / 1e6)
    line.close()
    return taken
