"""The session store beside bare SQLite on the same disk: commits, groups, loads, and kill -9.

`bench/store.py` says more about it; here are the figures with a bar.
"""

import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.echo import BOTH
from bench.place import placed
from bench.store import ROWS, SIZE, _many, bare, make_batch, make_body, make_info
from dragoman.engine.events import decode_body
from dragoman.store.sqlite import SqliteStore
from dragoman.transports.loop import run

from .rows import Row, compared, held_to

KILLS, SESSIONS = 25, 4
_INSERT = "INSERT INTO events (session, seq, at, kind, body) VALUES (?, ?, ?, ?, ?)"


def measure(folder: str, rounds: int, quick: bool) -> list[Row]:
    """Every figure of the store."""
    place = Path(folder, "stored")
    place.mkdir()
    rows = run(_commits(place, rounds, 20 if quick else 60))
    for per_turn in (ROWS, 1):
        rows += run(_groups(place, per_turn, 2 if quick else 3, 0.3 if quick else 0.8))
    rows += run(_loads(place, rounds * 5))
    rows += _kills(place, 5 if quick else KILLS)
    return rows


async def _commits(folder: Path, rounds: int, turns: int) -> list[Row]:
    """p50 of one turn after the other, against executemany into a bare table."""
    ours: list[float] = []
    theirs: list[float] = []
    store = SqliteStore(folder / "turn.db")
    epoch = await store.create(make_info("s"), "bench")
    connection = bare(folder / "bare.db")
    body = make_body(SIZE)
    seq = 1
    for round in range(rounds + 1):
        for one_core in BOTH:  # a commit is a hop to the store's thread and back
            with placed(one_core, os.getpid()):
                mine: list[float] = []
                plain: list[float] = []
                for _ in range(turns):
                    batch = make_batch("s", epoch, seq, ROWS, body)
                    rows = [(1, one.seq, one.at, one.kind, one.body) for one in batch.entries]
                    seq += ROWS
                    began = time.perf_counter()
                    await store.append(batch)
                    mine.append(time.perf_counter() - began)
                    began = time.perf_counter()
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(_INSERT, rows)
                    connection.execute("COMMIT")
                    plain.append(time.perf_counter() - began)
                if round:
                    ours.append(statistics.median(mine) * 1e6)
                    theirs.append(statistics.median(plain) * 1e6)
    await store.close()
    connection.close()
    return [
        compared("store", f"commit of a turn of {ROWS} events of {SIZE} B, p50", ours,
                 "bare executemany", theirs, "us", "<= 2.0", digits=0)
    ]  # fmt: skip


async def _groups(folder: Path, per_turn: int, rounds: int, seconds: float) -> list[Row]:
    """Turns per second of 32 sessions with FULL durability, with and without grouping."""
    rates: dict[int, list[float]] = {1: [], 256: []}
    body = make_body(SIZE)
    for round in range(rounds):
        for group, found in rates.items():
            path = folder / f"group-{per_turn}-{round}-{group}.db"
            store = SqliteStore(path, synchronous="FULL", group=group)
            turns, _ = await _many(store, per_turn, body, seconds)
            found.append(turns / seconds)
            await store.close()
    events = "an event" if per_turn == 1 else f"{per_turn} events"
    return [
        compared("store", f"FULL, 32 sessions, turns of {events} of {SIZE} B, grouped", rates[256],
                 "one by one", rates[1], "per s", ">= 4.0", digits=0)
    ]  # fmt: skip


async def _loads(folder: Path, rounds: int) -> list[Row]:
    """A history of 1,000 messages, against a select of 1,000 rows of a bare table."""
    path = folder / "load.db"
    store = SqliteStore(path)
    epoch = await store.create(make_info("s"), "bench")
    batch = make_batch("s", epoch, 1, 1000, make_body(1000))
    await store.append(batch)
    plain = bare(folder / "load-bare.db")
    plain.executemany(_INSERT, [(1, e.seq, e.at, e.kind, e.body) for e in batch.entries])
    own = sqlite3.connect(path)
    select = "SELECT seq, at, kind, body FROM events WHERE session = 1 ORDER BY seq"
    taken: dict[str, list[float]] = {"read": [], "decoded": [], "bare": [], "own": []}
    for _ in range(rounds):
        for name, connection in (("bare", plain), ("own", own)):
            began = time.perf_counter()
            connection.execute(select).fetchall()
            taken[name].append((time.perf_counter() - began) * 1e3)
        for one_core in BOTH:
            with placed(one_core, os.getpid()):
                began = time.perf_counter()
                entries = await store.entries("s")
                taken["read"].append((time.perf_counter() - began) * 1e3)
                for entry in entries:
                    decode_body(entry.body)
                taken["decoded"].append((time.perf_counter() - began) * 1e3)
    own.close()
    plain.close()
    await store.close()
    words = "load of 1,000 messages"
    label = "select of 1,000 rows"
    return [
        compared("store", f"{words}, decoded", taken["decoded"], label, taken["bare"], "ms",
                 "<= 2.5"),
        compared("store", words, taken["read"], label, taken["bare"], "ms"),
        compared("store", words, taken["read"], "select of the store's own rows", taken["own"],
                 "ms"),
    ]  # fmt: skip


# Sessions that commit turns for ever, and say which were acknowledged.
_CHILD = """
import asyncio, os, sys
from msgspec.structs import replace
from bench.store import make_batch, make_body
from dragoman.engine.ports import Batch
from dragoman.store.sqlite import SqliteStore

async def live(store, name, rows, body):
    epoch = await store.take(name, str(os.getpid()), lambda owner: False)
    seq = (await store.info(name)).last_seq
    while True:
        made = make_batch(name, epoch, seq + 1, rows, body)
        seq += rows
        info = replace(made.info, last_seq=seq)
        await store.append(Batch(name, epoch, made.entries, info))
        os.write(1, f"{name} {seq}\\n".encode())

async def main(path, sessions):
    store = SqliteStore(path)
    body = make_body(300)
    os.write(1, b"ready 0\\n")
    await asyncio.gather(*(live(store, f"s{n}", 7, body) for n in range(int(sessions))))

asyncio.run(main(*sys.argv[1:]))
"""


def _kills(folder: Path, times: int) -> list[Row]:
    """kill -9 at any moment of constant commits."""
    path = folder / "killed.db"
    lost = torn = corrupt = 0
    run(_created(path))
    acked = {f"s{n}": 0 for n in range(SESSIONS)}
    chance = random.Random(11)
    for _ in range(times):
        _killed(path, acked, chance)
        with sqlite3.connect(path) as connection:
            corrupt += connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok"
        connection.close()
        missing, partial = run(_looked_at(path, acked))
        lost += missing
        torn += partial
    words = f"kill -9, {times} times"
    return [
        held_to("store", f"{words}: turns acknowledged and lost", [lost], "turns", "<= 0",
                digits=0, note=f"{sum(acked.values()) // 7} acknowledged"),
        held_to("store", f"{words}: turns in part", [torn], "turns", "<= 0", digits=0),
        held_to("store", f"{words}: database corrupt", [corrupt], "times", "<= 0", digits=0),
    ]  # fmt: skip


async def _created(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(SESSIONS):
        await store.create(make_info(f"s{number}"), "parent")
    await store.close()


def _killed(path: Path, acked: dict[str, int], chance: random.Random) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(path), str(SESSIONS)],
        stdout=subprocess.PIPE, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert child.stdout is not None
    if child.stdout.readline() != b"ready 0\n":
        raise RuntimeError("the store's child did not start")
    said = [child.stdout.readline() for _ in range(chance.randrange(1, 60))]
    time.sleep(chance.random() * 0.003)
    child.send_signal(signal.SIGKILL)
    said += child.stdout.read().splitlines(keepends=True)
    child.stdout.close()
    child.wait()
    for line in said:
        if line.endswith(b"\n"):
            name, number = line.split()
            acked[name.decode()] = int(number)


async def _looked_at(path: Path, acked: dict[str, int]) -> tuple[int, int]:
    """How many turns are missing that were acknowledged, and how many are there in part."""
    store = SqliteStore(path)
    lost = torn = 0
    for name, number in acked.items():
        numbers = [entry.seq for entry in await store.entries(name)]
        info = await store.info(name)
        lost += max(0, number - len(numbers) + 6) // 7
        whole = numbers == list(range(1, len(numbers) + 1)) and len(numbers) % 7 == 0
        torn += not whole or info is None or info.last_seq != len(numbers)
    await store.close()
    return lost, torn
