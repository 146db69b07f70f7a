"""A loop that holds much and commits without rest: its longest stall; what an idle session keeps.

In this process, on the SQLite store.
"""

import asyncio
import gc
import os
import time
import tracemalloc
from uuid import uuid4

from bench.engine import ME, Paced
from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.door import Door
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Batch, Entry
from dragoman.engine.state import State
from dragoman.store.sqlite import SqliteStore, open_store
from dragoman.testing.host import MODEL, host_of, memory_door
from dragoman.transports.loop import run, settle_memory

from .rows import Row, held_to

SESSIONS, MESSAGES = 200, 1_000
_TICK = 0.001


def measure(folder: str, seconds: float, tries: int = 3) -> list[Row]:
    """The stall is the best of some tries: a neighbour on the machine stalls us too."""
    stalls, resident, turns = run(_stalls(os.path.join(folder, "resident.db"), seconds, tries))
    size = run(_idle(os.path.join(folder, "idle.db"), 1_000))
    return [
        held_to("loop",
                f"longest stall, {resident:,} resident messages, commits, one full collection",
                stalls, "ms", "<= 25", digits=1, note=f"{turns} turns committed"),
        held_to("memory", "bookkeeping of an idle session, live: state, session, hub, lists",
                [size], "B", "<= 1024", digits=0, note="traced Python memory"),
    ]  # fmt: skip


async def _stalls(path: str, seconds: float, tries: int) -> tuple[list[float], int, int]:
    store, _ = open_store(path)
    assert isinstance(store, SqliteStore)
    names = [await _long(store, number) for number in range(SESSIONS)]
    door = memory_door(Paced(20), store=store)  # type: ignore[arg-type]
    settle_memory()
    for name in names:
        await door.load(name)
    resident = sum(len(s.state.messages) for s in host_of(door).live.values())
    busy = [(await door.open(OpenSpec(cwd="/"), ME)).id for _ in range(8)]
    stalls, turns = [], 0
    for _ in range(tries):
        ending = time.monotonic() + seconds
        ticking = asyncio.create_task(_tick(ending))
        # Full collections come seldom and at any time: let each try meet one.
        asyncio.get_running_loop().call_later(seconds / 2, gc.collect)
        turns += sum(await asyncio.gather(*(_turns(door, name, ending) for name in busy)))
        stalls.append(await ticking)
    await host_of(door).stop()
    await store.close()
    return stalls, resident, turns


async def _turns(door: Door, session: str, ending: float) -> int:
    done = 0
    while time.monotonic() < ending:
        await (await door.prompt(session, (Text("question " * 20),), ME)).done
        done += 1
    return done


async def _tick(ending: float) -> float:
    """The longest lateness of a 1 ms timer, in ms."""
    worst = 0.0
    while (now := time.monotonic()) < ending:
        await asyncio.sleep(_TICK)
        worst = max(worst, time.monotonic() - now - _TICK)
    return worst * 1000


async def _long(store: SqliteStore, number: int) -> str:
    """Store a session of many messages."""
    state = State(str(uuid4()))
    now = time.time_ns() // 1_000_000
    epoch = await store.create(state.info(), "fill")
    bodies: list[ev.Kept] = [ev.Opened("default", "/", MODEL.ref, "full")]
    for turn in range(MESSAGES // 2):
        name = f"trn_{number}_{turn}"
        bodies += [
            ev.TurnBegan(name, (Text(f"question {turn} " * 10),)),
            ev.Spoke(name, 1, (Text(f"answer {turn} " * 40),), "end_turn"),
            ev.TurnEnded(name, "completed", "end_turn", "answer"),
        ]
    entries = []
    for body in bodies:
        seq = state.apply(body, now)
        kind = str(type(body).__struct_config__.tag)
        entries.append(Entry(seq, now, kind, ev.encode_body(body)))
    await store.append(Batch(state.id, epoch, entries, state.info()))
    await store.give(state.id, epoch)
    return state.id


async def _idle(path: str, count: int) -> float:
    """Bytes that each live session adds, after it was opened and left alone."""
    store, _ = open_store(path)
    door = memory_door(Paced(3), store=store)  # type: ignore[arg-type]
    for _ in range(50):
        await door.open(OpenSpec(cwd="/"), ME)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(count):
            await door.open(OpenSpec(cwd="/"), ME)
        gc.collect()
        size = (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
    await host_of(door).stop()
    await store.close()
    return size
