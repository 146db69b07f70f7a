"""Whole turns that are stored: the daemon beside Go and Node servers that append JSONL.

Every turn is driven by the same C program, so many turns to a session on every side. What differs:
the peers keep nothing in memory, append two lines per turn (four with a tool) and never sync; the
daemon keeps the conversation, gives all of it to its model with each prompt, runs the tool, and
commits events and their effects before it answers.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

from bench.echo import BOTH, REFS, build, build_go, cpu_ns
from bench.place import placed

from .host import Line, Running, daemon, greeted, serving, settled
from .rows import Row, compared

TURNS = 25  # of each session: a conversation of middle length, then a fresh one
_SAY = {"type": "say", "text": "some text ", "deltas": 1}
_PLAN = {"type": "call", "name": "plan", "args": {"entries": [{"content": "x"}]}}
# what the model does; what the peers call it; a word of the first update
_KINDS: dict[str, tuple[str, list[object]]] = {
    "50 deltas": ("turns", [{"parts": [_SAY, {"type": "wait", "seconds": 0}] * 50}]),
    "a tool call": ("calls", [{"parts": [_PLAN]}, "done"]),
}
_DELTAS = "50 deltas"
_BARE = "bare uvloop, SQLite"  # no engine at all: what is left for one
_NO_MODEL = "Go without a model"  # it makes the deltas where it writes them: a floor, not a peer


@dataclass
class _Taken:
    rate: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)


def measure(folder: str, rounds: int) -> tuple[list[Row], list[str]]:
    """Turns per second and CPU on 16 connections, time to the first delta on one."""
    driver = build("prompts", folder)
    if driver is None:
        return [], ["turns beside peers need a C compiler: skipped"]
    go, node = build_go(folder, "go_streams"), shutil.which("node")
    rows: list[Row] = []
    for number, (kind, (mode, script)) in enumerate(_KINDS.items()):
        commands: dict[str, list[str]] = {}
        if go:
            commands["Go"] = [go, mode]
            if mode == "turns":
                commands[_NO_MODEL] = [go, "loop"]
        if mode == "turns":
            commands[_BARE] = [sys.executable, str(REFS / "bare_turns.py")]
        if node:
            commands["Node"] = [node, str(REFS / "node_streams.js"), mode]
        place = os.path.join(folder, f"prompts{number}")
        os.makedirs(place)
        rows += _rows(kind, _take(driver, place, commands, script, kind == _DELTAS, rounds))
    return rows, [] if go else ["the Go turns were not built: skipped"]


def _take(
    driver: str,
    folder: str,
    commands: dict[str, list[str]],
    script: list[object],
    alone: bool,
    rounds: int,
) -> dict[str, _Taken]:
    found = {name: _Taken() for name in ("ours", *commands)}
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(daemon(os.path.join(folder, "ours"), script))
        peers = {}
        for name, command in commands.items():
            path = os.path.join(folder, f"{name}.sock")
            run = [*command, path, os.path.join(folder, f"{name}.jsonl")]
            peers[name] = (path, stack.enter_context(serving(run, path)))

        def drive(name: str, links: int, one_core: bool) -> tuple[int, float, float, float]:
            pid = host.pid if name == "ours" else peers[name][1]
            opened = _ours(host, links) if name == "ours" else _theirs(peers[name][0], links)
            settled(pid)
            with placed(one_core, pid):
                return _drive(driver, opened, pid)

        for round in range(rounds + 1):
            for name, taken in found.items():
                for one_core in BOTH:
                    turns, took, _, spent = drive(name, 16, one_core)
                    if round:
                        taken.rate.append(turns / took)
                        taken.cpu.append(spent / turns)
                # On one core a server that never rests, as Go, writes many deltas before its client
                # may read the first; on two the other servers lose. Each has both.
                for one_core in BOTH if alone else ():
                    first = drive(name, 1, one_core)[2]
                    if round:
                        taken.first.append(first)
    return found


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


def _drive(driver: str, opened: _Opened, pid: int) -> tuple[int, float, float, float]:
    """Turns, seconds, us to the first delta, us of CPU."""
    descriptors = [line.socket.fileno() for line, _ in opened]
    for line, _ in opened:
        line.socket.setblocking(True)
    before = cpu_ns(pid)
    done = subprocess.run(
        [driver, str(TURNS), "some text", '"stopReason"', *map(str, descriptors)],
        input=b"".join(prompt for _, prompt in opened),
        capture_output=True, timeout=60, pass_fds=descriptors, check=True,
    )  # fmt: skip
    spent = (cpu_ns(pid) - before) / 1000
    for line, _ in opened:
        line.close()
    turns, took, first = done.stdout.split()
    return int(turns), float(took), float(first), spent


def _rows(kind: str, found: dict[str, _Taken]) -> list[Row]:
    ours = found.pop("ours")
    rows = []
    for name, theirs in found.items():
        label = name if name == _BARE else f"{name}, JSONL"
        many = f"turns of {kind}, 16 sessions of {TURNS}"
        rows.append(
            compared("turns", f"{many}, committed", ours.rate, label, theirs.rate, "per s",
                     digits=0, pick="most")
        )  # fmt: skip
        rows.append(
            compared("turns", f"{many}, committed, cpu", ours.cpu, label, theirs.cpu, "us cpu",
                     digits=0)
        )  # fmt: skip
        if ours.first:
            rows.append(
                compared("turns", "prompt to first delta, 1 connection", ours.first, name,
                         theirs.first, "us", digits=0)
            )  # fmt: skip
    return rows
