"""The official ACP SDKs' agents behind the same client, and originals found on this machine."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.echo import LOADS, REFS, Client, Target, best, compare, wait_for

from .dialects import _ACP
from .host import Running
from .rows import Row

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
            targets.append(Target(name, path, _LIST, process.pid, (_ACP,)))
        yield targets
    finally:
        for process in running:
            process.kill()
            process.wait()


def measure(host: Running, folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """ACP `session/list`, ours (which reads a store) against theirs (which answer nothing)."""
    notes: list[str] = []
    for name in ("zot", "hld", "zeroclaw"):
        if shutil.which(name) is None:
            notes.append(f"{name} is not on PATH: skipped")
    rows: list[Row] = []
    loads = LOADS[:2]
    with _agents(folder, notes) as peers:
        ours = Target("acp session/list", host.path("acp.sock"), _LIST, host.pid, (_ACP,))
        compare([ours, *peers], Client(folder), loads, rounds)
        bars = {"ACP TypeScript SDK": "<= 0.5", "ACP Python SDK": "<= 0.25"}
        for peer in peers:
            for load, what in ((loads[0], "p50"), (loads[1], "cpu")):
                mine, theirs = (getattr(best(t, load.name), what) for t in (ours, peer))
                rows.append(
                    Row("peers", f"acp session/list, {load.name}, {what}", f"{mine:.2f} us",
                        f"{peer.name} {theirs:.2f}", mine / theirs, bars[peer.name])
                )  # fmt: skip
    return rows, notes
