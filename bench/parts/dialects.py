"""Requests: every dialect of a real daemon beside the reference servers, in one interleaved run."""

import json
import os
import socket

from bench.echo import LOADS, Client, Target, best, compare, references

from .host import Running, greeted
from .rows import Row

_REGISTER = json.dumps(
    {
        "id": "r", "type": "request", "timestamp": 1, "method": "app.register",
        "params": {"manifest": {"id": "@bench/app@@@", "name": "b", "version": "1.0.0",
                                "type": "app", "main": "x", "protocol": {"version": "1.0"},
                                "capabilities": {}}},
    }
).encode()  # fmt: skip
_INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
_ACP = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,'
    b'"clientCapabilities":{},"clientInfo":{"name":"bench","version":"1"}}}'
)


def targets(host: Running) -> list[Target]:
    """The quick verb of each dialect."""

    def rpc(method: str) -> bytes:
        return b'{"jsonrpc":"2.0","id":12,"method":"%s","params":{}}' % method.encode()

    heartbeat = b'{"id":"h1","type":"request","timestamp":1,"method":"app.heartbeat","params":{}}'
    asked: tuple[tuple[str, str, bytes, tuple[bytes, ...]], ...] = (
        ("zeroclaw status", "daemon.sock", rpc("status"), (_INITIALIZE,)),
        ("openclawos heartbeat", "kernel.sock", heartbeat, (_REGISTER,)),
        ("humanlayer health", "humanlayer.sock", rpc("health"), ()),
        ("zot ping", "any.sock", b'{"id":"9","type":"ping"}', ()),
        ("acp session/list", "acp.sock", rpc("session/list"), (_ACP,)),
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
        found = {peer.name: peer for peer in peers}
        names = ("C epoll echo", "Node net", "asyncio streams", "Go encoding/json")
        floor, node, streams, go = (found.get(name) for name in names)
        # The floor moves the same bytes: an echo of what we answer.
        floors = {t.name: Target("C", floor.path, _answer(t), floor.pid) for t in ours if floor}
        shown = [peer for peer in peers if peer.name in names]
        compare([*shown, *floors.values(), *ours], client, rounds=rounds)
    rows: list[Row] = []
    for target in ours:
        rows += _rows(target, floors.get(target.name), node, streams, go)
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


# load -> what is compared, and its bar
_Bars = dict[str, tuple[tuple[str, str], ...]]
_C: _Bars = {"one at a time": (("p50", "<= 2.0"),), "32 in flight": (("cpu", "<= 12"),)}
_GO: _Bars = {
    "one at a time": (("p50", "<= 1.25"),),
    "32 in flight": (("cpu", "<= 0.4"), ("rate", ">= 2.0")),
    "64 connections": (("cpu", "<= 1.0"),),
}
_NODE: _Bars = {
    "one at a time": (("p50", "<= 1.0"),),
    "32 in flight": (("cpu", "<= 0.5"), ("rate", ">= 2.0")),
    "64 connections": (("cpu", "<= 1.0"),),
}
_STREAMS: _Bars = {"32 in flight": (("cpu", "<= 0.5"),)}
_WORDS = {"p50": ("round trip", "us"), "cpu": ("cpu", "us cpu"), "rate": ("rate", "per ms")}
_SLOW = {"acp session/list"}  # reads the store: compared for information


def _rows(
    ours: Target,
    floor: Target | None,
    node: Target | None,
    streams: Target | None,
    go: Target | None,
) -> list[Row]:
    rows = []
    for load in LOADS:
        mine = best(ours, load.name)
        quick = ours.name not in _SLOW
        peers = (
            (floor, "C echo", _C),
            (go, "Go", _GO),
            (node, "Node net", _NODE),
            (streams, "asyncio", _STREAMS),
        )
        for peer, label, bars in peers:
            if peer is None:
                continue
            theirs = best(peer, load.name)
            for what, bar in bars.get(load.name, ()):
                word, unit = _WORDS[what]
                value, other = getattr(mine, what), getattr(theirs, what)
                scale = 1000 if what == "rate" else 1
                rows.append(
                    Row(
                        "requests",
                        f"{ours.name}, {load.name}, {word}",
                        f"{value / scale:.2f} {unit}",
                        f"{label} {other / scale:.2f}",
                        value / other,
                        bar if quick else "",
                        _spread(ours, load.name, what),
                    )
                )
    return rows


def _spread(target: Target, load: str, what: str) -> str:
    scale = 1000 if what == "rate" else 1
    values = sorted(getattr(sample, what) / scale for sample in target.samples[load])
    return f"{values[0]:.2f}-{values[-1]:.2f} {_WORDS[what][1]}"


def listing(host: Running, folder: str, sessions: int = 1000) -> list[Row]:
    """humanlayer `listSessions` with many sessions, per session listed."""
    line = greeted(host)
    have = line.call("status").get("activeSessions", 0)
    for _ in range(max(0, sessions - int(have))):
        line.call("session/new", agentAlias="default", cwd="/")
    line.close()
    client = Client(folder)
    request = b'{"jsonrpc":"2.0","id":12,"method":"listSessions","params":{}}'
    target = Target("listSessions", host.path("humanlayer.sock"), request, host.pid)
    from bench.echo import Load

    load = Load("one at a time", 1, 1, 50)
    compare([target], client, (load,), rounds=3)
    found = best(target, load.name)
    return [
        Row(
            "requests",
            f"humanlayer listSessions, {sessions} sessions",
            f"{found.cpu / 1000:.2f} ms cpu",
            "per session listed, us",
            found.cpu / sessions,
        )
    ]
