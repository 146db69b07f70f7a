"""What the session store costs, as ratios to bare SQLite on the same disk in the same process.

Run: python bench/store.py [--quick]
"""

import argparse
import asyncio
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from dragoman.engine.content import Text
from dragoman.engine.events import Spoke, decode_body, encode_body
from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.engine.ports import Batch, Entry
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


async def load(folder: Path, rounds: int) -> None:
    """A history of 1,000 messages: the store against a raw select of the same rows."""
    path = folder / "load.db"
    store = SqliteStore(path)
    epoch = await store.create(make_info("s"), "bench")
    await store.append(make_batch("s", epoch, 1, 1000, make_body(1000)))
    connection = sqlite3.connect(path)
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
        f" raw select {min(raw) * 1e3:.2f} ms,"
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
                        extra={"run_id": f"r{n}", "key": f"k{n}"},
                    )
                ),
            )
            for n in range(count)
        )
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f"INSERT INTO sessions ({', '.join(columns)}) VALUES ({marks})", rows
        )

    await store._writer.run(insert)
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
