"""Memory of an idle daemon, connection and session, beside bare servers."""

import contextlib
import os
import resource
import shutil
import sys

from bench.echo import REFS, build_go

from .host import Line, Running, daemon, greeted, resident, serving
from .rows import Row, compared, held_to

_BARE = "bare asyncio + msgspec"
_BATCHES = 3


def idle(folder: str, rounds: int) -> list[Row]:
    """Resident memory of fresh servers; then what a session and a connection add to it."""
    node, go = shutil.which("node"), build_go(folder)
    commands = {_BARE: [sys.executable, str(REFS / "bare.py")]}
    if node:
        commands["Node net"] = [node, str(REFS / "node_net.js")]
    if go:
        commands["Go"] = [go]
    fresh: dict[str, list[float]] = {name: [] for name in ("ours", *commands)}
    for round in range(rounds):
        with daemon(os.path.join(folder, f"fresh{round}"), ["hello"]) as host:
            fresh["ours"].append(host.resident() / 1e6)
        for name, command in commands.items():
            path = os.path.join(folder, f"{name[:2]}{round}.sock")
            with serving([*command, path], path) as pid:
                fresh[name].append(resident(pid) / 1e6)
    ours = fresh["ours"]
    rows = [held_to("memory", "idle daemon", ours, "MB", "<= 45", digits=1)]
    for name, bar in ((_BARE, "<= 1.8"), ("Node net", "<= 1.0"), ("Go", "")):
        if name in fresh:
            rows.append(
                compared("memory", "idle daemon", ours, name, fresh[name], "MB", bar, digits=1)
            )
    count = min(1_500, (_files() - 200) // (_BATCHES + 1))
    with daemon(os.path.join(folder, "quiet"), ["hello"]) as host:
        rows.append(
            held_to("memory", "idle session, live", _sessions(host, 500), "KB", "<= 20", worst=True)
        )
        mine = connections(host.path("daemon.sock"), host.pid, count)
    for name, bar in (("Node net", "<= 0.7"), ("Go", "<= 0.5")):
        if name in commands:
            path = os.path.join(folder, f"{name[:2]}.sock")
            with serving([*commands[name], path], path) as pid:
                theirs = connections(path, pid, count)
            rows.append(
                compared("memory", "idle connection", mine, name, theirs, "KB", bar, pick="median")
            )
    return rows


def _sessions(host: Running, count: int) -> list[float]:
    """KB that each live session adds, in batches."""
    line = greeted(host)
    sizes = []
    for batch in range(_BATCHES + 1):
        before = host.resident()
        for _ in range(count):
            line.call("session/new", agentAlias="default", cwd="/")
        if batch:
            sizes.append((host.resident() - before) / count / 1024)
    line.close()
    return sizes


def _files() -> int:
    """How many files a process may open; the daemon's limit too when set before it starts."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections(path: str, pid: int, count: int) -> list[float]:
    """KB per idle connection, in batches; the first of them only lets the heap grow."""
    sizes: list[float] = []
    with contextlib.ExitStack() as held:
        for batch in range(_BATCHES + 1):
            before = resident(pid)
            for _ in range(count):
                held.callback(Line(path).close)
            last = Line(path)  # all of them are accepted once this one is answered
            held.callback(last.close)
            last.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
            last.read()
            if batch:
                sizes.append(max((resident(pid) - before) / count / 1024, 0.01))
    return sizes
