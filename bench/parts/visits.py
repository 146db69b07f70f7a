"""Short connections: connect, one answered request, close; beside the Go reference."""

import os
import subprocess

from bench.echo import REQUEST, build, build_go

from .host import Running, serving
from .rows import Row

_HEALTH = b'{"jsonrpc":"2.0","id":12,"method":"health","params":{}}'


def measure(host: Running, folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """The best rate of interleaved rounds."""
    driver, go = build("visits", folder), build_go(folder)
    if driver is None or go is None:
        return [], ["accept rates need a C compiler and Go: skipped"]
    path = os.path.join(folder, "visits.sock")
    rates: dict[str, list[float]] = {"ours": [], "Go": []}
    with serving([go, path], path):
        cases = (("ours", host.path("humanlayer.sock"), _HEALTH), ("Go", path, REQUEST))
        for _ in range(rounds):
            for name, where, request in cases:
                done = subprocess.run(
                    [driver, where, "500"],
                    input=request, capture_output=True, timeout=60, check=True,
                )  # fmt: skip
                rates[name].append(float(done.stdout))
    mine, theirs = max(rates["ours"]), max(rates["Go"])
    return [
        Row("requests", "connections accepted, answered once, closed", f"{mine:.0f} per s",
            f"Go {theirs:.0f}", mine / theirs, ">= 1.0",
            f"{min(rates['ours']):.0f}-{mine:.0f} per s")
    ], []  # fmt: skip
