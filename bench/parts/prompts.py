"""Turns of 50 deltas that are stored: the daemon beside Go and Node servers that append JSONL.

The peers keep two lines per turn and never sync; the daemon commits events and their effects.
"""

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass, field

from bench.echo import REFS, build, build_go, cpu_ns

from .host import Line, Running, daemon, greeted, serving
from .rows import Row

_SAY = {"type": "say", "text": "some text ", "deltas": 1}
SCRIPT = [{"parts": [_SAY, {"type": "wait", "seconds": 0}] * 50}]


@dataclass
class _Taken:
    rate: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)


def measure(folder: str, rounds: int, seconds: float) -> tuple[list[Row], list[str]]:
    """Turns per second and CPU on 16 connections, time to the first delta on one."""
    driver = build("prompts", folder)
    if driver is None:
        return [], ["turns beside peers need a C compiler: skipped"]
    go, node = build_go(folder, "go_streams"), shutil.which("node")
    commands: dict[str, list[str]] = {}
    if go:
        commands["Go"] = [go, "turns"]
    if node:
        commands["Node"] = [node, str(REFS / "node_streams.js"), "turns"]
    found: dict[str, _Taken] = {name: _Taken() for name in ("ours", *commands)}
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(daemon(os.path.join(folder, "prompted"), list(SCRIPT)))
        peers = {}
        for name, command in commands.items():
            path = os.path.join(folder, f"{name}-turns.sock")
            run = [*command, path, os.path.join(folder, f"{name}.jsonl")]
            peers[name] = (path, stack.enter_context(serving(run, path)))
        for round in range(rounds + 1):
            for name, taken in found.items():
                for links in (16, 1):
                    if name == "ours":
                        opened, pid = _ours(host, links), host.pid
                    else:
                        opened, pid = _theirs(peers[name][0], links), peers[name][1]
                    turns, took, first, spent = _drive(driver, opened, pid, seconds)
                    if not round:
                        continue
                    if links == 1:
                        taken.first.append(first)
                    else:
                        taken.rate.append(turns / took)
                        taken.cpu.append(spent / max(1, turns))
    return _rows(found), [] if go else ["the Go turns were not built: skipped"]


_Opened = list[tuple[Line, bytes]]


def _ours(host: Running, links: int) -> _Opened:
    opened = []
    for _ in range(links):
        line = greeted(host)
        session = line.call("session/new", agentAlias="default", cwd="/")["sessionId"]
        prompt = (
            '{"jsonrpc":"2.0","id":7,"method":"session/prompt",'
            f'"params":{{"sessionId":"{session}","prompt":"go"}}}}\n'
        )
        opened.append((line, prompt.encode()))
    return opened


def _theirs(path: str, links: int) -> _Opened:
    prompt = (
        b'{"jsonrpc":"2.0","id":7,"method":"session/prompt",'
        b'"params":{"sessionId":"0f8fad5b-d9cb-469f-a165-70867728950e","prompt":"go"}}\n'
    )
    return [(Line(path), prompt) for _ in range(links)]


def _drive(
    driver: str, opened: _Opened, pid: int, seconds: float
) -> tuple[int, float, float, float]:
    descriptors = [line.socket.fileno() for line, _ in opened]
    for line, _ in opened:
        line.socket.setblocking(True)
    before = cpu_ns(pid)
    done = subprocess.run(
        [driver, str(seconds), "some text", '"stopReason"', *map(str, descriptors)],
        input=b"".join(prompt for _, prompt in opened),
        capture_output=True, timeout=60, pass_fds=descriptors, check=True,
    )  # fmt: skip
    spent = (cpu_ns(pid) - before) / 1000
    for line, _ in opened:
        line.close()
    turns, took, first = done.stdout.split()
    return int(turns), float(took), float(first), spent


def _rows(found: dict[str, _Taken]) -> list[Row]:
    ours = found.pop("ours")
    rows = []
    for name, theirs in found.items():
        bars = (">= 1.2", "<= 0.8", "<= 1.0") if name == "Go" else ("", "", "<= 1.0")
        told = (
            ("50-delta turns, 16 connections, stored", "rate", max, "per s", bars[0]),
            ("50-delta turn, 16 connections, stored, cpu", "cpu", min, "us cpu", bars[1]),
            ("prompt to first delta, 1 connection", "first", min, "us", bars[2]),
        )
        for what, key, pick, unit, bar in told:
            mine = getattr(ours, key)
            value, other = pick(mine), pick(getattr(theirs, key))
            rows.append(
                Row("turns", what, f"{value:.0f} {unit}", f"{name} {other:.0f}", value / other,
                    bar, f"{min(mine):.0f}-{max(mine):.0f} {unit}")
            )  # fmt: skip
    return rows
