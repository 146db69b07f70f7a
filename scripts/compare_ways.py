#!/usr/bin/env python3
"""What each short way costs beside the whole one that it stands for, and each trick at the start.

    scripts/compare_ways.py            all rows, about two minutes

Both ways of a row run in turns in one process (or as processes, for those of the start), and the
best of many rounds counts. docs/decisions/0073 has the figures that the comments in the code name.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.dialects.test_quick import HELLO, REGISTER  # noqa: E402
from tests.store.making import make_batch, make_info  # noqa: E402

from dragoman.engine.content import Text  # noqa: E402
from dragoman.engine.events import TextDelta, Who  # noqa: E402
from dragoman.engine.host import OpenSpec  # noqa: E402
from dragoman.engine.inbox import Inbox  # noqa: E402
from dragoman.engine.info import SessionQuery  # noqa: E402
from dragoman.store import writer  # noqa: E402
from dragoman.store.sqlite import SqliteStore  # noqa: E402
from dragoman.testing.host import memory_door  # noqa: E402
from dragoman.testing.script import Scripted, say  # noqa: E402
from dragoman.transports.memory import Client  # noqa: E402

ROUNDS = 15
ME = Who("bench", id="c1")


def row(name: str, short: float, whole: float, unit: str) -> None:
    print(f"| {name} | {short:.2f} {unit} | {whole:.2f} {unit} | {whole / short:.2f} |", flush=True)


def both(short: Callable[[], Any], whole: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """The best time of each, in seconds."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for place, run in enumerate((short, whole)):
            began = perf_counter()
            run()
            best[place] = min(best[place], perf_counter() - began)
    return best


# --- quick answers ---


async def quick_answers() -> None:
    asked: dict[str, tuple[list[Any], dict[str, Any], str]] = {
        "zeroclaw": ([HELLO], {"jsonrpc": "2.0", "method": "status", "id": 7}, "status"),
        "humanlayer": ([], {"jsonrpc": "2.0", "method": "health", "id": 7}, "health"),
        "openclawos": (
            [REGISTER],
            {"id": "a", "type": "request", "timestamp": 1, "method": "app.heartbeat", "params": {}},
            "app.heartbeat",
        ),
        "zot": ([], {"type": "ping", "id": "a"}, "ping"),
    }
    for name, (first, request, method) in asked.items():
        desk = import_module(f"dragoman.dialects.{name}").Desk(memory_door(Scripted([])))
        client = Client(desk.hearer)
        if first:
            client.send(*[json.dumps(one).encode() for one in first])
        line = json.dumps(request).encode()
        many = [line] * 100
        hearer = client.pump.hearer

        def run(client: Client = client, many: list[bytes] = many) -> None:
            for _ in range(20):
                client.send(*many)
                client.wire.out.clear()
                client.wire.writes.clear()

        if name == "zot":

            def whole(hearer: Any = hearer, many: list[bytes] = many, client: Any = client) -> None:
                for _ in range(20):
                    hearer.shell.hear(many)
                    client.pump.flush()
                    client.wire.out.clear()
                    client.wire.writes.clear()
        else:
            verb = import_module(f"dragoman.dialects.{name}.verbs").VERBS[method]

            def whole(verb: Any = verb, run: Callable[[], None] = run) -> None:
                kept, verb.quick = verb.quick, None
                try:
                    run()
                finally:
                    verb.quick = kept

        short, long = both(run, whole)
        row(f"{name} `{method}`", short / 2000 * 1e6, long / 2000 * 1e6, "µs")


async def lists(folder: Path) -> None:
    """humanlayer's `listSessions` and the door's list, known and read, with 100 sessions."""
    door = memory_door(Scripted([]), store=SqliteStore(folder / "lists.db"))
    for _ in range(100):
        await door.open(OpenSpec(cwd="/"), ME)
    query = SessionQuery()
    await door.list(query)
    best = [float("inf"), float("inf")]
    for _ in range(50):
        began = perf_counter()
        assert door.listed(query) is not None
        best[0] = min(best[0], perf_counter() - began)
        began = perf_counter()
        await door.list(query)
        best[1] = min(best[1], perf_counter() - began)
    row("a list of 100 sessions, known or read", *(one * 1e6 for one in best), "µs")
    desk = import_module("dragoman.dialects.humanlayer").Desk(door)
    await desk.session_rows.rows()
    best = [float("inf"), float("inf")]
    for _ in range(50):
        await desk.session_rows.rows()
        began = perf_counter()
        assert desk.session_rows.line() is not None
        best[0] = min(best[0], perf_counter() - began)
        began = perf_counter()
        await desk.session_rows.rows()
        best[1] = min(best[1], perf_counter() - began)
    row("humanlayer `listSessions`, without and with a look", *(one * 1e6 for one in best), "µs")
    await desk.close()
    await door._host.store.close()


# --- the store and the turn ---


async def groups(folder: Path) -> None:
    """64 sessions that append at once, ten times."""
    gather = writer.gather
    best = [float("inf"), float("inf")]
    for number in range(8):
        for place, way in enumerate((gather, lambda jobs, known: None)):
            writer.gather = way
            store = SqliteStore(folder / f"g{number}-{place}.db", idle=60)
            epochs = {f"s{n}": await store.create(make_info(f"s{n}"), "me") for n in range(64)}
            for name, epoch in epochs.items():
                await store.append(make_batch(name, epoch, 1))
            began = perf_counter()
            for turn in range(10):
                await asyncio.gather(
                    *(store.post(make_batch(n, e, turn + 2)) for n, e in epochs.items())
                )
            best[place] = min(best[place], perf_counter() - began)
            await store.close()
    writer.gather = gather
    row("640 appends, in groups or one by one", *(one * 1e3 for one in best), "ms")


class First:
    """Waits for the first words of an answer."""

    knows = ME.dialect

    def __init__(self) -> None:
        self.at = 0.0

    def speak(self, events: Sequence[Any]) -> None:
        if not self.at and any(type(event.body) is TextDelta for event in events):
            self.at = perf_counter()


async def early(folder: Path) -> None:
    """From a prompt to its first words, and the whole turn."""
    may, never = Inbox._may_begin, lambda self, work: False
    firsts = [float("inf"), float("inf")]
    wholes = [float("inf"), float("inf")]
    store = SqliteStore(folder / "early.db", idle=60)
    door = memory_door(Scripted([say("hello there", deltas=5)], loop=True), store=store)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    for _ in range(200):
        for place, way in enumerate((may, never)):
            Inbox._may_begin = way  # type: ignore[method-assign]
            shape = First()
            watch = await door.watch(sid, ME, shape, lambda said: None)
            began = perf_counter()
            work = await door.prompt(sid, (Text("hi"),), ME)
            await work.done
            wholes[place] = min(wholes[place], perf_counter() - began)
            firsts[place] = min(firsts[place], shape.at - began)
            watch.close()
    Inbox._may_begin = may  # type: ignore[method-assign]
    row("prompt to first words, before or after the commit", *(one * 1e6 for one in firsts), "µs")
    row("the whole turn of it", *(one * 1e6 for one in wholes), "µs")
    await store.close()


# --- the start ---


def spawned(words: list[str], env: dict[str, str], said: bytes = b"") -> float:
    """Seconds until a program is over, or has written its first line when it is asked something."""
    began = perf_counter()
    with subprocess.Popen(
        words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdin and child.stdout
        if not said:
            child.stdin.close()
            child.stdout.read()
            child.wait()
            return perf_counter() - began
        child.stdin.write(said)
        child.stdin.flush()
        assert child.stdout.readline()
        took = perf_counter() - began
        child.stdin.close()
        child.stdout.read()
    return took


def starts(folder: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    env["DRAGOMAN_CONFIG_DIR"] = str(folder / "config")
    python, command = sys.executable, str(Path(sys.executable).with_name("dragoman"))

    def pair(name: str, short: list[str], whole: list[str], rounds: int = 25) -> None:
        found = both(lambda: spawned(short, env), lambda: spawned(whole, env), rounds)
        row(name, found[0] * 1e3, found[1] * 1e3, "ms")

    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    slow = {**env, "DRAGOMAN_log__level": "info"}
    found = both(
        lambda: spawned([command, "acp"], env, hello), lambda: spawned([command, "acp"], slow, hello), 15
    )  # fmt: skip
    row("`dragoman acp` to its greeting, greeter or host", found[0] * 1e3, found[1] * 1e3, "ms")
    run = "import sys; sys.argv = ['dragoman', '{}']; from dragoman.cli.main import {}; {}({})"
    usual, plain = run.format("{0}", "script", "script", ""), run.format("{0}", "main", "main", "")
    for what in ("--help", "status"):
        short = usual.format(what)
        pair(
            f"`{what}`: the end left out", [python, "-c", short], [python, "-c", plain.format(what)]
        )
        pair(
            f"`{what}`: without `typing`",
            [python, "-c", short],
            [python, "-c", f"import typing; {short}"],
        )
    short = usual.format("status")
    pair(
        "`status`: `_socket` alone",
        [python, "-c", short],
        [python, "-c", f"import socket; {short}"],
    )
    where = "from dragoman.dialects.descriptor import entries; import sys; list(entries(sys.path))"
    usual_way = (
        "from importlib.metadata import entry_points; entry_points(group='dragoman.dialects')"
    )
    pair(
        "entry points: from the files or by the library",
        [python, "-c", where],
        [python, "-c", usual_way],
    )
    pair(
        "prctl: by `_ctypes` or `ctypes`",
        [python, "-c", "import _ctypes"],
        [python, "-c", "import ctypes"],
    )
    before = "import dragoman.daemon.main, dragoman.host.compose, dragoman.engine.door"
    rest = "from importlib import import_module; from dragoman.host.after_start import LATER"
    pair(
        "what the first session needs, loaded before it or by it",
        [python, "-c", before],
        [python, "-c", f"{before}; {rest}; [import_module(name) for name in LATER]"],
    )
    pair("(an empty program, twice)", [python, "-c", "pass"], [python, "-c", "pass"])


async def inside(folder: Path) -> None:
    await quick_answers()
    await lists(folder)
    await groups(folder)
    await early(folder)


if __name__ == "__main__":
    print("| row | short way | whole way | whole / short |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(inside(Path(made)))
        starts(Path(made))
