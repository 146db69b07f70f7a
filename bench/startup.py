"""How long our commands take to start, as multiples of `python3 -c pass`.

Runs are interleaved and medians compared, so a busy machine slows both sides alike.
Usage: python bench/startup.py [--rounds N] [--json]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("dragoman"))
BARS = {"--help": 4.0, "--version": 4.0, "config path": 6.0}


def once(words: list[str], env: dict[str, str]) -> float:
    """Milliseconds from start to exit of one process."""
    began = time.perf_counter()
    subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return (time.perf_counter() - began) * 1000


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Median milliseconds and ratio of every command."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "DRAGOMAN_CONFIG_DIR": folder}
        cases = {"python3 -c pass": [sys.executable, "-c", "pass"]}
        cases |= {name: [COMMAND, *name.split()] for name in BARS}
        taken: dict[str, list[float]] = {name: [] for name in cases}
        for words in cases.values():  # warm the file cache and the .pyc files
            once(words, env)
        for _ in range(rounds):
            for name, words in cases.items():
                taken[name].append(once(words, env))
    base = statistics.median(taken["python3 -c pass"])
    return {
        name: {
            "ms": round(statistics.median(values), 2),
            "ratio": round(statistics.median(values) / base, 2),
            "bar": BARS.get(name, 0.0),
        }
        for name, values in taken.items()
    }


def main() -> int:
    words = sys.argv[1:]
    rounds = int(words[words.index("--rounds") + 1]) if "--rounds" in words else 30
    found = measure(rounds)
    if "--json" in words:
        print(json.dumps(found, indent=2))
    else:
        print(f"{'command':<20}{'median ms':>10}{'ratio':>8}{'bar':>6}")
        for name, row in found.items():
            bar = f"{row['bar']:g}" if row["bar"] else ""
            print(f"{name:<20}{row['ms']:>10.1f}{row['ratio']:>8.2f}{bar:>6}")
    return int(any(row["bar"] and row["ratio"] > row["bar"] for row in found.values()))


if __name__ == "__main__":
    sys.exit(main())
