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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("dragoman"))
BARS = {
    "--help": 4.0,
    "--version": 4.0,
    "config path": 6.0,
    "status": 6.0,  # against a running daemon
    "rpc": 7.0,
    "acp": 8.0,
}
# Servers: a first line, and the time until its answer is there.
MORE = {"rpc": ("--provider", "demo")}
FIRST_LINES = {
    "rpc": b'{"id":"1","type":"ping"}\n',
    "acp": b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n',
}


def once(words: list[str], env: dict[str, str]) -> float:
    """Milliseconds from start to exit of one process."""
    began = time.perf_counter()
    subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return (time.perf_counter() - began) * 1000


def first_answer(words: list[str], line: bytes, env: dict[str, str]) -> float:
    """Milliseconds from start to the first answered line of a server on stdin and stdout."""
    began = time.perf_counter()
    with subprocess.Popen(
        words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin and server.stdout
        server.stdin.write(line)
        server.stdin.flush()
        answer = server.stdout.readline()
        taken = (time.perf_counter() - began) * 1000
        server.stdin.close()
        if server.wait(10) or not answer:
            raise RuntimeError(f"{words} did not answer")
    return taken


def timed(name: str, words: list[str], env: dict[str, str]) -> float:
    line = FIRST_LINES.get(name)
    return once(words, env) if line is None else first_answer(words, line, env)


@contextmanager
def daemon(env: dict[str, str]) -> Iterator[None]:
    """A daemon beside, for commands that ask it."""
    words = [COMMAND, "daemon", "--no-gateway"]
    with subprocess.Popen(words, env=env, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            while (line := process.stderr.readline()).strip() != b"ready":
                if not line:
                    raise RuntimeError("the daemon did not start")
            yield
        finally:
            process.terminate()
            process.wait(20)


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Median milliseconds and ratio of every command."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as beside:
        env = {**os.environ, "DRAGOMAN_CONFIG_DIR": folder}
        # As installed: compiled modules are there, whatever this shell says about writing them.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PYTHONPYCACHEPREFIX"] = os.path.join(folder, "compiled")
        beside.enter_context(daemon(env))
        cases = {"python3 -c pass": [sys.executable, "-c", "pass"]}
        cases |= {name: [COMMAND, *name.split(), *MORE.get(name, ())] for name in BARS}
        taken: dict[str, list[float]] = {name: [] for name in cases}
        for name in cases:  # warm the file cache and the .pyc files
            timed(name, cases[name], env)
        for _ in range(rounds):
            for name in cases:
                taken[name].append(timed(name, cases[name], env))
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
