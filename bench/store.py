"""What the session store costs, as ratios to bare SQLite on the same disk in the same process.

Run: python bench/store.py [--quick]
"""

import argparse
import asyncio
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.events import (
    Kept,
    Spoke,
    StatusChanged,
    TurnBegan,
    TurnEnded,
    decode_body,
    encode_body,
)
from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.engine.ports import Batch, Entry
from dragoman.store.known import HOT
from dragoman.store.rows import INFO_COLUMNS, info_values
from dragoman.store.sqlite import SqliteStore

ROWS, SIZE = 20, 2000  # events of a turn, bytes of one


def make_info(session: str, at: int = 1, **other: object) -> SessionInfo:
    values: dict[str, object] = {"cwd": "/p", "status": "idle", **other}
    return SessionInfo(
        id=session,
        agent="main",
        model="demo/demo",
        mode="full",
        created_at=at,
        updated_at=at,
        query="please fix the parser",
        **values,  # type: ignore[arg-type]
    )


def make_body(size: int) -> bytes:
    return encode_body(Spoke("t1", 1, (Text("x" * (size - 80)),), "end_turn"))


def make_batch(session: str, epoch: int, first: int, rows: int, body: bytes) -> Batch:
    entries = [Entry(seq, seq, "spoke", body) for seq in range(first, first + rows)]
    return Batch(session, epoch, entries, make_info(session, first))


def bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute(
        "CREATE TABLE events (gseq INTEGER PRIMARY KEY, session INTEGER, seq INTEGER, at INTEGER,"
        " kind TEXT, body BLOB, UNIQUE (session, seq))"
    )
    return connection


def micros(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1e6


async def turn_commit(folder: Path, rounds: int) -> None:
    """One turn after the other: the store against executemany into a bare table."""
    store = SqliteStore(folder / "turn.db")
    epoch = await store.create(make_info("s"), "bench")
    connection = bare(folder / "bare.db")
    body = make_body(SIZE)
    best: list[tuple[float, float, float]] = []
    seq = 1
    for _ in range(7):
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(rounds):
            batch = make_batch("s", epoch, seq, ROWS, body)
            rows = [(1, entry.seq, entry.at, entry.kind, entry.body) for entry in batch.entries]
            seq += ROWS
            began = time.perf_counter()
            await store.append(batch)
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO events (session, seq, at, kind, body) VALUES (?, ?, ?, ?, ?)", rows
            )
            connection.execute("COMMIT")
            theirs.append(time.perf_counter() - began)
        best.append((micros(ours) / micros(theirs), micros(ours), micros(theirs)))
    ratio, mine, plain = min(best)
    print(
        f"turn commit p50 ({ROWS} x {SIZE} B): {mine:.0f} us, bare executemany {plain:.0f} us,"
        f" ratio {ratio:.2f} (bar 2.0)"
    )
    await store.close()
    connection.close()


def sync_cost(folder: Path) -> float:
    """Microseconds of a small write with fdatasync: what grouping saves per turn with FULL."""
    times: list[float] = []
    with (folder / "sync").open("wb", buffering=0) as out:
        for _ in range(100):
            began = time.perf_counter()
            out.write(b"x" * 4096)
            os.fdatasync(out.fileno())
            times.append(time.perf_counter() - began)
    return micros(times)


async def group_commit(folder: Path, seconds: float) -> None:
    """32 sessions at once, with and without grouping."""
    print(f"write and fdatasync of 4 KB on this disk: {sync_cost(folder):.0f} us")
    body = make_body(SIZE)
    for synchronous in ("FULL", "NORMAL"):
        for rows in (ROWS, 1):
            rates: dict[int, list[float]] = {1: [], 256: []}
            per_commit = 0.0
            for number in range(6):
                group = (1, 256)[number % 2]
                path = folder / f"group-{synchronous}-{rows}-{number}.db"
                store = SqliteStore(path, synchronous=synchronous, group=group)
                turns, before = await _many(store, rows, body, seconds)
                rates[group].append(turns / seconds)
                if group > 1:
                    per_commit = turns / (store.commits - before)
                await store.close()
            alone, grouped = max(rates[1]), max(rates[256])
            bar = " (bar 4)" if synchronous == "FULL" else ""
            print(
                f"group commit {synchronous}, 32 sessions, {rows} rows: {grouped:.0f} turns/s,"
                f" one by one {alone:.0f}, gain {grouped / alone:.1f}x{bar},"
                f" {per_commit:.1f} turns per commit"
            )


async def _many(store: SqliteStore, rows: int, body: bytes, seconds: float) -> tuple[int, int]:
    done = 0
    names = [f"s{n}" for n in range(32)]
    epochs = [await store.create(make_info(name), "bench") for name in names]
    before = store.commits
    end = time.perf_counter() + seconds

    async def live(name: str, epoch: int) -> None:
        nonlocal done
        seq = 1
        while time.perf_counter() < end:
            await store.append(make_batch(name, epoch, seq, rows, body))
            seq += rows
            done += 1

    await asyncio.gather(*(live(*pair) for pair in zip(names, epochs, strict=True)))
    return done, before


def writer_time(store: SqliteStore) -> float:
    """Microseconds of CPU that the store's writing thread has used."""
    thread = store.writer._thread.native_id
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) / 1e3


def spin(micros: float) -> None:
    """Be busy for so long, as the loop is with everything that is not the store."""
    end = time.thread_time_ns() + int(micros * 1e3)
    while time.thread_time_ns() < end:
        pass


def turn_batch(session: str, epoch: int, first: int, began: bool, text: str) -> Batch:
    """What a plain turn commits first (the prompt) or last (the answer and the end)."""
    at = time.time_ns() // 1_000_000
    facts: list[Kept]
    if began:
        facts = [
            TurnBegan("t1", (Text("please fix the parser"),)),
            StatusChanged("idle", "running"),
        ]
    else:
        facts = [
            Spoke("t1", 1, (Text(text),), "end_turn"),
            TurnEnded("t1", "completed", "end_turn", text),
            StatusChanged("running", "idle"),
        ]
    entries = [
        Entry(seq, at, str(type(fact).__struct_config__.tag), encode_body(fact))
        for seq, fact in enumerate(facts, first)
    ]
    status = "running" if began else "idle"
    info = make_info(session, 1, status=status, result=text, last_seq=entries[-1].seq)
    return Batch(session, epoch, entries, msgspec.structs.replace(info, updated_at=at))


async def turns(folder: Path, sessions: int, work: float, rounds: int, seconds: float) -> None:
    """Plain turns of two commits each, on a loop that is busy with other things in between."""
    store = SqliteStore(folder / f"turns-{sessions}-{work}.db")
    names = [f"session-{n:04}" for n in range(sessions)]
    epochs = [await store.create(make_info(name), "bench") for name in names]
    chance = random.Random(1)
    found: list[tuple[float, float, float]] = []
    waits: list[float] = []
    seqs = dict.fromkeys(names, 1)
    done = 0

    async def live(name: str, epoch: int, end: float) -> None:
        nonlocal done
        while time.perf_counter() < end:
            for began in (True, False):
                batch = turn_batch(name, epoch, seqs[name], began, "an answer " * 50)
                start = time.perf_counter()
                await store.post(batch)
                waits.append(time.perf_counter() - start)
                seqs[name] += len(batch.entries)
                for _ in range(chance.randrange(1, 8)):  # so that sessions do not march in step
                    spin(work / 8)
                    await asyncio.sleep(0)
            done += 1

    for _ in range(rounds):
        done, commits = 0, store.commits
        waits.clear()
        before, end = writer_time(store), time.perf_counter() + seconds
        await asyncio.gather(*(live(*pair, end) for pair in zip(names, epochs, strict=True)))
        each = (writer_time(store) - before) / done
        found.append((each, 2 * done / (store.commits - commits), micros(waits)))
    each, together, _ = min(found)
    wait = min(one[2] for one in found)
    median = statistics.median(one[0] for one in found)
    words = "session" if sessions == 1 else "sessions"
    print(
        f"plain turns, {sessions} {words}, {work:.0f} us of other work each: {each:.0f} us of the"
        f" writer's CPU per turn (median of rounds {median:.0f}),"
        f" {together:.1f} batches per commit, a commit is awaited {wait:.0f} us"
    )
    await store.close()


async def load(folder: Path, rounds: int) -> None:
    """A history of 1,000 messages in turns of 5 events: the store against a bare select."""
    store = SqliteStore(folder / "load.db")
    epoch = await store.create(make_info("s"), "bench")
    connection = bare(folder / "load-bare.db")
    for first in range(1, 1001, 5):
        batch = make_batch("s", epoch, first, 5, make_body(1000))
        await store.append(batch)
        connection.executemany(
            "INSERT INTO events (session, seq, at, kind, body) VALUES (1, ?, ?, ?, ?)",
            [(entry.seq, entry.at, entry.kind, entry.body) for entry in batch.entries],
        )
    raw: list[float] = []
    read: list[float] = []
    decoded: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        connection.execute(
            "SELECT seq, at, kind, body FROM events WHERE session = 1 ORDER BY seq"
        ).fetchall()
        raw.append(time.perf_counter() - began)
        began = time.perf_counter()
        entries = await store.entries("s")
        read.append(time.perf_counter() - began)
        for entry in entries:
            decode_body(entry.body)
        decoded.append(time.perf_counter() - began)
    print(
        f"load 1,000 messages: {min(read) * 1e3:.2f} ms, decoded {min(decoded) * 1e3:.2f} ms,"
        f" bare select {min(raw) * 1e3:.2f} ms,"
        f" ratio {min(read) / min(raw):.2f}, decoded {min(decoded) / min(raw):.2f} (bar 2.5)"
    )
    connection.close()
    await store.close()


async def fill(path: Path, count: int) -> SqliteStore:
    store = SqliteStore(path)
    statuses = ("idle", "completed", "failed", "running")
    columns = ("id", "epoch", "last_seq", "leaf", *INFO_COLUMNS)

    def insert(connection: sqlite3.Connection) -> None:
        rows = (
            (
                f"s{n}",
                1,
                0,
                int(n % 10 == 0),
                *info_values(
                    make_info(
                        f"s{n}",
                        n,
                        cwd=f"/p{n % (count // 50)}",
                        status=statuses[n % 4],
                        archived=n % 3 != 0,
                        extra={
                            "humanlayer": {"run_id": f"r{n}"},
                            "correspondent": {"key": f"k{n}"},
                        },
                    )
                ),
            )
            for n in range(count)
        )
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f"INSERT INTO sessions ({', '.join(columns)}) VALUES ({marks})", rows
        )

    await store.writer.run(insert)
    return store


async def lists(folder: Path, rounds: int) -> None:
    """The same questions to a store with 1,000 and with 100,000 sessions."""
    small = await fill(folder / "small.db", 1_000)
    large = await fill(folder / "large.db", 100_000)

    def query(**words: object) -> Callable[[SqliteStore], Awaitable[object]]:
        asked = SessionQuery(limit=20, **words)  # type: ignore[arg-type]
        return lambda store: store.list(asked)

    questions: dict[str, Callable[[SqliteStore], Awaitable[object]]] = {
        "newest 20": query(),
        "by cwd": query(cwd="/p3"),
        "by status": query(status=("failed",)),
        "by 3 statuses": query(status=("failed", "running", "completed")),
        "not archived": query(archived=False),
        "leaves": query(leaves=True),
        "leaves, not archived": query(leaves=True, archived=False),
        "by text that many have": query(text="parser"),
        "find run_id": lambda store: store.find(run_id="r77"),
        "find key": lambda store: store.find(key="k77"),
        "info": lambda store: store.info("s77"),
    }
    for name, ask in questions.items():
        times: dict[int, list[float]] = {0: [], 1: []}
        for _ in range(rounds):
            for number, store in enumerate((small, large)):
                began = time.perf_counter()
                await ask(store)
                times[number].append(time.perf_counter() - began)
        few, many = micros(times[0]), micros(times[1])
        print(
            f"list {name}: {few:.0f} us at 1,000 sessions, {many:.0f} us at 100,000,"
            f" ratio {many / few:.2f}"
        )
    times = {0: [], 1: []}
    for number in range(HOT):  # the most that wait for their indexes
        name = f"s{number * 1000}"
        epoch = await large.take(name, "bench", lambda owner: False)
        await large.append(turn_batch(name, epoch, 1, True, ""))
    for _ in range(rounds):
        for number, store in enumerate((small, large)):
            began = time.perf_counter()
            await store.list(SessionQuery(limit=20))
            times[number].append(time.perf_counter() - began)
    few, many = micros(times[0]), micros(times[1])
    print(
        f"list newest 20 while {HOT} sessions of 100,000 are busy: {many:.0f} us,"
        f" none of 1,000: {few:.0f} us, ratio {many / few:.2f}"
    )
    began = time.perf_counter()
    await large.list(SessionQuery(text="nothing-has-this"))
    took = (time.perf_counter() - began) * 1e3
    print(f"list by text that none has, 100,000 sessions: {took:.0f} ms")
    await small.close()
    await large.close()


async def main(quick: bool) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        await turn_commit(folder, 40 if quick else 200)
        for sessions, work in ((16, 200), (16, 40), (1, 200), (1, 0)):
            await turns(folder, sessions, work, 3 if quick else 7, 0.3 if quick else 0.8)
        await group_commit(folder, 0.3 if quick else 1.5)
        await load(folder, 20 if quick else 100)
        await lists(folder, 20 if quick else 200)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter, less exact")
    arguments = parser.parse_args()
    try:
        import uvloop
    except ImportError:
        sys.exit(asyncio.run(main(arguments.quick)))
    sys.exit(uvloop.run(main(arguments.quick)))
