"""Time from the start of a process to its first answer, as multiples of `python3 -c pass`."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from .host import Running, first_answer
from .rows import Row

DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))
_PING = b'{"type":"ping"}'
_ACP = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'


def measure(host: Running, folder: str, rounds: int) -> list[Row]:
    """Interleaved, medians."""
    env = {**os.environ, "DRAGOMAN_CONFIG_DIR": os.path.join(folder, "fresh")}
    here = {**os.environ, "DRAGOMAN_CONFIG_DIR": host.folder}

    def whole(command: list[str], with_env: dict[str, str]) -> float:
        start = time.perf_counter()
        subprocess.run(command, env=with_env, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - start

    cases = {
        "python3 -c pass": lambda: whole([sys.executable, "-c", "pass"], env),
        "dragoman --help": lambda: whole([DRAGOMAN, "--help"], env),
        "dragoman status": lambda: whole([DRAGOMAN, "status"], here),
        "dragoman rpc, first ping": lambda: first_answer([DRAGOMAN, "rpc"], _PING, env),
        "dragoman acp, initialize": lambda: first_answer([DRAGOMAN, "acp"], _ACP, env),
    }
    bars = {
        "dragoman --help": "<= 4.0", "dragoman status": "<= 6.0",
        "dragoman rpc, first ping": "<= 7.0", "dragoman acp, initialize": "<= 8.0",
    }  # fmt: skip
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for run in cases.values():
        run()
    for _ in range(rounds):
        for name, run in cases.items():
            taken[name].append(run() * 1000)
    base = statistics.median(taken["python3 -c pass"])
    return [
        Row(
            "start",
            name,
            f"{statistics.median(values):.1f} ms",
            f"python3 -c pass {base:.1f} ms",
            statistics.median(values) / base,
            bars[name],
            f"{min(values):.0f}-{max(values):.0f} ms",
        )
        for name, values in taken.items()
        if name in bars
    ]
