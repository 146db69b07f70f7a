"""One stream to 100 subscribers in bursts of 16: the daemon beside servers that write each event.

The same text reaches everybody; the daemon may join neighbouring deltas into one line.
"""

import contextlib
import os
import shutil

from bench.echo import REFS, build_go, cpu_ns

from .host import Line, Running, daemon, serving
from .rows import Row, compared
from .streams import _drain, one_turn

SUBSCRIBERS, EVENTS, BURST = 100, 1_600, 16
_SAY = {"type": "say", "text": "some text " * BURST, "deltas": BURST}
SCRIPT = [{"parts": [_SAY, {"type": "wait", "seconds": 0}] * (EVENTS // BURST)}]
_BARS = {"Go write per event": "<= 0.1", "Node write per event": "<= 0.1",
         "Go, all that waits at once": "<= 0.6"}  # fmt: skip


def measure(folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """CPU per source event and subscriber; the best of interleaved rounds."""
    notes = []
    commands: dict[str, list[str]] = {}
    go, node = build_go(folder, "go_streams"), shutil.which("node")
    if go:
        commands["Go write per event"] = [go, "fanout"]
        commands["Go, all that waits at once"] = [go, "drain"]
    else:
        notes.append("the Go fan-out was not built: skipped")
    if node:
        commands["Node write per event"] = [node, str(REFS / "node_streams.js"), "fanout"]
    taken: dict[str, list[float]] = {name: [] for name in ("ours", *commands)}
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(daemon(os.path.join(folder, "fanout"), list(SCRIPT)))
        peers = {}
        for number, (name, command) in enumerate(commands.items()):
            path = os.path.join(folder, f"fanout{number}.sock")
            peers[name] = (path, stack.enter_context(serving([*command, path], path)))
        for _ in range(rounds):
            taken["ours"].append(_ours(host))
            for name, (path, pid) in peers.items():
                taken[name].append(_theirs(path, pid))
    mine = taken.pop("ours")
    rows = [
        compared("streams", f"a delta to each of {SUBSCRIBERS}, bursts of {BURST}", mine, name,
                 values, "us cpu", _BARS[name], digits=3)
        for name, values in taken.items()
    ]  # fmt: skip
    return rows, notes


def _ours(host: Running) -> float:
    return one_turn(host, SUBSCRIBERS, EVENTS) / SUBSCRIBERS


def _theirs(path: str, pid: int) -> float:
    lines = [Line(path) for _ in range(SUBSCRIBERS)]
    before = cpu_ns(pid)
    lines[-1].send({"events": EVENTS})
    _drain(lines, lines[-1])
    spent = (cpu_ns(pid) - before) / 1000
    for line in lines:
        line.close()
    return spent / EVENTS / SUBSCRIBERS
