"""The official ACP SDKs' agents behind the same client."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.echo import LOADS, REFS, Client, Target, compare, wait_for

from .dialects import ACP
from .host import Running
from .rows import Row, compared

NODE = Path(__file__).parents[2] / "tests" / "interop" / "node" / "node_modules"
_LIST = b'{"jsonrpc":"2.0","id":12,"method":"session/list","params":{}}'


@contextlib.contextmanager
def _agents(folder: str, notes: list[str]) -> Iterator[list[Target]]:
    commands: dict[str, list[str]] = {}
    try:
        import acp  # noqa: F401

        commands["ACP Python SDK"] = [sys.executable, str(REFS / "acp_python.py")]
    except ImportError:
        notes.append("the ACP Python SDK is not installed: skipped")
    node = shutil.which("node")
    if node and (NODE / "@agentclientprotocol" / "sdk").is_dir():
        commands["ACP TypeScript SDK"] = [node, str(REFS / "acp_node.mjs")]
    else:
        notes.append("the ACP TypeScript SDK is not installed (make setup-node): skipped")
    running, targets = [], []
    try:
        for name, command in commands.items():
            path = os.path.join(folder, f"{name.split()[1]}.sock")
            process = subprocess.Popen([*command, path, str(NODE)], stderr=subprocess.DEVNULL)
            running.append(process)
            wait_for(path, process)
            targets.append(Target(name, path, _LIST, process.pid, (ACP,)))
        yield targets
    finally:
        for process in running:
            process.kill()
            process.wait()


def measure(host: Running, folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """ACP `session/list`, ours (a page of the store) against theirs (which answer nothing)."""
    notes: list[str] = []
    rows: list[Row] = []
    loads = LOADS[:2]
    with _agents(folder, notes) as peers:
        ours = Target("acp session/list", host.path("acp.sock"), _LIST, host.pid, (ACP,))
        compare([ours, *peers], Client(folder), loads, rounds)
        bars = {"ACP TypeScript SDK": "<= 0.5", "ACP Python SDK": "<= 0.25"}
        for peer in peers:
            for load, what, word, unit in (
                (loads[0], "p50", "round trip", "us"), (loads[1], "cpu", "cpu", "us cpu"),
            ):  # fmt: skip
                mine, theirs = (
                    [getattr(sample, what) for sample in target.samples[load.name]]
                    for target in (ours, peer)
                )
                name = f"acp session/list, {load.name}, {word}"
                rows.append(compared("peers", name, mine, peer.name, theirs, unit, bars[peer.name]))
    return rows, notes
