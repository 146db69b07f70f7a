"""Connections: opened and held by the thousand, and short ones; beside Go, Node and C."""

import contextlib
import os
import shutil
import subprocess

from bench.echo import BOTH, REFS, REQUEST, build, build_go
from bench.place import placed

from .host import Running, serving, settled
from .rows import Row, compared

_HEALTH = b'{"jsonrpc":"2.0","id":12,"method":"health","params":{}}'
_HELD, _SHORT = 4_000, 150  # connections; rounds of 16 visits
# what is driven: its words, its argument, the bar against Go
_WAYS = {
    "arrivals": (f"{_HELD:,} connections accepted and held", _HELD, ">= 1.0"),
    "visits": ("connections accepted, answered once, closed", _SHORT, ""),
}


def measure(host: Running, folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """The best rate of interleaved rounds, on one core and on all of them."""
    floor, go, node = build("echo", folder), build_go(folder), shutil.which("node")
    drivers = {way: build(way, folder) for way in _WAYS}
    if not all(drivers.values()):
        return [], ["accept rates need a C compiler: skipped"]
    commands = {
        "Go": [go] if go else None,
        "Node net": [node, str(REFS / "node_net.js")] if node else None,
        "C epoll echo": [floor] if floor else None,
    }
    rates: dict[tuple[str, str], list[float]] = {}
    with contextlib.ExitStack() as stack:
        cases = {"ours": (host.path("humanlayer.sock"), host.pid, _HEALTH)}
        for number, (name, command) in enumerate(commands.items()):
            if command:
                path = os.path.join(folder, f"visits{number}.sock")
                pid = stack.enter_context(serving([*command, path], path))
                cases[name] = (path, pid, REQUEST)
        for round in range(rounds + 1):
            for way, driver in drivers.items():
                for name, (path, pid, request) in cases.items():
                    for one_core in BOTH:
                        with placed(one_core, pid):
                            done = subprocess.run(
                                [str(driver), path, str(_WAYS[way][1])],
                                input=request, capture_output=True, timeout=60, check=True,
                            )  # fmt: skip
                        settled(pid)  # those that left are forgotten before somebody else's turn
                        if round:
                            rates.setdefault((way, name), []).append(float(done.stdout))
    rows = []
    for way, (words, _, bar) in _WAYS.items():
        for name in cases:
            if name != "ours":
                rows.append(
                    compared("requests", words, rates[way, "ours"], name, rates[way, name], "per s",
                             bar if name == "Go" else "", digits=0, pick="most")
                )  # fmt: skip
    return rows, [] if go else ["accept rates of Go were not measured: no toolchain"]
