"""Round trips on standard input and output: `dragoman rpc` beside `cat` and a Go program."""

import os
import shutil
import subprocess

from bench.echo import build, build_go
from bench.place import on_one_core

from .rows import Row, compared
from .starts import DRAGOMAN

_PING = b'{"id":"9","type":"ping"}\n'
_CALL = b'{"jsonrpc":"2.0","id":12,"method":"ping","params":{}}\n'


def measure(folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """Best p50 of interleaved rounds; the driver is C."""
    driver = build("stdio", folder)
    if driver is None:
        return [], ["stdio round trips need a C compiler: skipped"]
    go = build_go(folder, "go_streams")
    env = {**os.environ, "DRAGOMAN_CONFIG_DIR": os.path.join(folder, "pipes")}
    cases = {"dragoman rpc": ([DRAGOMAN, "rpc", "--provider", "demo"], _PING)}
    cat = shutil.which("cat")
    if cat:
        cases["cat"] = ([cat], _PING)
    if go:
        cases["Go"] = ([go, "stdio"], _CALL)
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (command, request) in cases.items():
            with on_one_core():  # the driver and the program it starts
                done = subprocess.run(
                    [driver, "2000", *command],
                    input=request, env=env, capture_output=True, timeout=60, check=True,
                )  # fmt: skip
            taken[name].append(float(done.stdout.split()[0]))
    mine = taken["dragoman rpc"]
    rows = [
        compared("stdio", "dragoman rpc, ping, round trip", mine, name, taken[name], "us", bar)
        for name, bar in (("cat", "<= 2.2"), ("Go", "<= 1.3"))
        if name in taken
    ]
    return rows, [] if go else ["the Go stdio program was not built: skipped"]
