"""Sessions in PostgreSQL, beside SQLite and beside plain inserts of the same rows."""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from bench.store import make_body, make_info
from dragoman.engine.info import SessionQuery
from dragoman.engine.ports import Batch, Entry, Store
from dragoman.fleet.desk import Desk, owner_name
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.changes import Node
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.postgres import Server

from .rows import Row, compared, held_to

SESSIONS, EVENTS, SIZE = 64, 4, 400  # batches at once, events of one, bytes of an event
ORPHANS = 1000
FILL = 20_000  # sessions made by one statement
# Where the rows of events go without a fence: with their keys, and with the least of a key.
PLAIN_TABLES = {
    "plain": "CREATE TABLE plain (LIKE events INCLUDING ALL)",
    "bare": "CREATE TABLE bare (gseq bigint PRIMARY KEY, session bigint, seq bigint, at bigint,"
    " kind text, body bytea)",
}
_PLAIN = (
    "INSERT INTO {} (gseq, session, seq, at, kind, body) SELECT * FROM unnest($1::bigint[],"
    " $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[])"
)
_FILL = """
INSERT INTO sessions (id, epoch, last_seq, updated_at, created_at, status, archived, leaf, agent,
    cwd, origin, words, info)
SELECT 'cold' || n, 1, 0, n, n, 'idle', false, true, 'main', '/p', '', '', $3
FROM generate_series($1::bigint, $2::bigint) AS n
"""


def measure(folder: str, rounds: int, quick: bool) -> list[Row]:
    """Every figure of the database."""
    place = Path(folder, "fleet")
    place.mkdir()
    server = Server(durable=True)
    try:
        return asyncio.run(_measure(place, server, rounds, quick))
    finally:
        server.stop()


async def _measure(place: Path, server: Server, rounds: int, quick: bool) -> list[Row]:
    rows = await _appends(await _new(server, "appends"), rounds, 10 if quick else 40)
    rows += await _turns(await _new(server, "turns"), place, rounds, 10 if quick else 40)
    rows += await _claims(await _new(server, "claims"), rounds)
    rows += await _growth(server, rounds, 100_000 if quick else 1_000_000)
    return rows


async def _new(server: Server, name: str) -> str:
    connection = await asyncpg.connect(server.url())
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return server.url(name)


def _batch(session: str, epoch: int, first: int, count: int, body: bytes) -> Batch:
    entries = [Entry(seq, seq, "spoke", body) for seq in range(first, first + count)]
    last = first + count - 1
    info = msgspec.structs.replace(make_info(session), updated_at=first, last_seq=last)
    return Batch(session, epoch, entries, info)


async def _opened(store: Store) -> dict[str, int]:
    body = make_body(SIZE)
    epochs = {}
    for n in range(SESSIONS):
        epochs[f"s{n}"] = await store.create(make_info(f"s{n}"), "bench")
        await store.append(_batch(f"s{n}", epochs[f"s{n}"], 1, EVENTS, body))
    return epochs


class Plain:
    """Rows of events, inserted by hand: one statement for a step of all sessions."""

    def __init__(self, connection: Any, table: str, body: bytes) -> None:
        self._connection = connection
        self._table = table
        self._body = body
        self._numbers = self._head = 0

    @classmethod
    async def make(cls, url: str, body: bytes, table: str = "plain") -> "Plain":
        connection = await asyncpg.connect(url)
        await connection.execute(PLAIN_TABLES[table])
        return cls(connection, table, body)

    async def insert(self, count: int) -> None:
        """So many events of each session."""
        many = SESSIONS * count
        seqs = [*range(self._head, self._head + count)] * SESSIONS
        await self._connection.execute(
            _PLAIN.format(self._table),
            [*range(self._numbers, self._numbers + many)],
            [session for session in range(SESSIONS) for _ in range(count)],
            seqs, seqs, ["spoke"] * many, [self._body] * many,
        )  # fmt: skip
        self._numbers += many
        self._head += count

    async def close(self) -> None:
        await self._connection.close()


async def _appends(url: str, rounds: int, times: int) -> list[Row]:
    """Events per second: fenced appends of many sessions at once, and plain inserts of as many."""
    store = await PostgresStore.open(url)
    body = make_body(SIZE)
    epochs = await _opened(store)
    plain = [await Plain.make(url, body, table) for table in PLAIN_TABLES]
    ours: list[float] = []
    theirs: tuple[list[float], ...] = ([], [])
    head, count = EVENTS, SESSIONS * EVENTS
    for _ in range(rounds + 1):
        ready = [
            [_batch(s, e, head + 1 + n * EVENTS, EVENTS, body) for s, e in epochs.items()]
            for n in range(times)
        ]
        head += times * EVENTS
        took = [0.0] * (1 + len(plain))
        for batches in ready:  # in turn: whatever else the machine does, it does to all
            began = time.perf_counter()
            await asyncio.gather(*map(store.post, batches))
            took[0] += time.perf_counter() - began
            for number, one in enumerate(plain, 1):
                began = time.perf_counter()
                await one.insert(EVENTS)
                took[number] += time.perf_counter() - began
        for rates, seconds in zip((ours, *theirs), took, strict=True):
            rates.append(times * count / seconds)
    for one in plain:
        await one.close()
    await store.close()
    return [
        compared("fleet", f"fenced appends, {SESSIONS} sessions at once", ours[1:],
                 "plain batched inserts", theirs[0][1:], "events/s", ">= 0.7", digits=0),
        compared("fleet", "fenced appends, again", ours[1:],
                 "the same into a table with one key", theirs[1][1:], "events/s", digits=0,
                 pick="most"),
    ]  # fmt: skip


async def _turns(url: str, place: Path, rounds: int, times: int) -> list[Row]:
    """Turns per second and processor time of one, three appends each, in both stores."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    stores: dict[str, Store] = {
        "PostgreSQL": await PostgresStore.open(url),
        "SQLite": SqliteStore(place / "turns.db"),
    }
    body = make_body(SIZE)
    for name, store in stores.items():
        epochs = await _opened(store)
        found[name] = ([], [])
        head = EVENTS
        for _ in range(rounds + 1):
            began, used = time.perf_counter(), time.process_time()
            for _ in range(times):
                for count in (1, 2, 1):
                    await asyncio.gather(
                        *(
                            store.post(_batch(s, e, head + 1, count, body))
                            for s, e in epochs.items()
                        )
                    )
                    head += count
            turns = times * SESSIONS
            found[name][0].append(turns / (time.perf_counter() - began))
            found[name][1].append((time.process_time() - used) / turns * 1e6)
        await store.close()
    (fast, cheap), (fast_file, cheap_file) = found["PostgreSQL"], found["SQLite"]
    fast_plain, cheap_plain = await _plain_turns(url, rounds, times, body)
    return [
        compared("fleet", "turns in PostgreSQL", fast[1:], "SQLite", fast_file[1:], "turns/s",
                 digits=0, pick="most"),
        compared("fleet", "turns in PostgreSQL, again", fast[1:], "plain inserts of their rows",
                 fast_plain[1:], "turns/s", digits=0, pick="most"),
        compared("fleet", "processor time of a turn", cheap[1:], "SQLite", cheap_file[1:], "µs",
                 digits=0),
        compared("fleet", "processor time of a turn, again", cheap[1:],
                 "plain inserts of their rows", cheap_plain[1:], "µs", digits=0),
    ]  # fmt: skip


async def _plain_turns(
    url: str, rounds: int, times: int, body: bytes
) -> tuple[list[float], list[float]]:
    """The same rows of events, inserted by hand: a statement for the step of all sessions."""
    plain = await Plain.make(url, body)
    fast: list[float] = []
    cheap: list[float] = []
    for _ in range(rounds + 1):
        began, used = time.perf_counter(), time.process_time()
        for _ in range(times):
            for count in (1, 2, 1):
                await plain.insert(count)
        turns = times * SESSIONS
        fast.append(turns / (time.perf_counter() - began))
        cheap.append((time.process_time() - used) / turns * 1e6)
    await plain.close()
    return fast, cheap


async def _claims(url: str, rounds: int) -> list[Row]:
    """Sessions of a dead node, taken by another one in one statement."""
    store = await PostgresStore.open(url)
    store.node = Node("heir", (), ("/",))
    desk = Desk(store, owner_name("heir", "1"))
    await desk.join(600.0, "bench", {})
    info = make_info("x", status="running")
    await asyncio.gather(
        *(store.create(make_info(f"o{n}", n, status=info.status), "node:dead:1")
          for n in range(ORPHANS))
    )  # fmt: skip
    times = []
    for _ in range(rounds):
        await store.fetch("UPDATE sessions SET owner = 'node:dead:1'")
        began = time.perf_counter()
        taken = await desk.claim(ORPHANS)
        times.append(time.perf_counter() - began)
        assert len(taken) == ORPHANS
    await store.close()
    return [held_to("fleet", f"claim of {ORPHANS} orphaned sessions", times, "s", "<= 1.0")]


async def _timed(works: Sequence[Callable[[], Awaitable[Any]]], times: int) -> list[float]:
    """Microseconds of each, done in turn: whatever else the machine does, it does to all."""
    took: list[list[float]] = [[] for _ in works]
    for _ in range(times):
        for work, mine in zip(works, took, strict=True):
            began = time.perf_counter()
            await work()
            mine.append(time.perf_counter() - began)
    return [statistics.median(mine) * 1e6 for mine in took]


async def _growth(server: Server, rounds: int, many: int) -> list[Row]:
    """What an append, a list and a sweep cost with few and with very many stored sessions."""
    from dragoman.store.rows import encode

    works: dict[str, dict[int, list[float]]] = {"append": {}, "list": {}, "sweep": {}, "search": {}}
    stores = {}
    for count in (1000, many):
        store = stores[count] = await PostgresStore.open(await _new(server, f"n{count}"))
        store.node = Node("n", (), ("/",))
        info = encode(make_info("cold"))
        for first in range(1, count + 1, FILL):
            await store.fetch(_FILL, first, min(first + FILL - 1, count), info)
        for settle in ("VACUUM ANALYZE", "CHECKPOINT"):  # else the server does it meanwhile
            await store.fetch(settle)
        await Desk(store, owner_name("n", "1")).join(600.0, "bench", {})
    body = make_body(SIZE)
    heads = {count: 0 for count in stores}
    epochs = {count: await one.create(make_info("hot"), "me") for count, one in stores.items()}

    def measured(count: int, store: PostgresStore) -> dict[str, Callable[[], Awaitable[Any]]]:
        desk = Desk(store, owner_name("n", "1"))

        async def append() -> None:
            await store.append(_batch("hot", epochs[count], heads[count] + 1, 2, body))
            heads[count] += 2

        return {
            "append": append,
            "list": lambda: store.list(SessionQuery(limit=50)),
            "sweep": lambda: desk.claim(100),
            "search": lambda: store.search("rare"),
        }

    both = {count: measured(count, store) for count, store in stores.items()}
    for _ in range(rounds + 1):
        for name, by in works.items():
            found = await _timed([both[count][name] for count in stores], 60)
            for count, micros in zip(stores, found, strict=True):
                by.setdefault(count, []).append(micros)
    for store in stores.values():
        await store.close()
    return [
        compared("fleet", f"{name} with {many:,} stored sessions", by[many][1:],
                 "with 1,000", by[1000][1:], "µs", "<= 1.2", digits=0)
        for name, by in works.items()
    ]  # fmt: skip


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for row in measure(folder, 3, bool(os.environ.get("QUICK"))):
            print(
                row.name,
                "|",
                row.value,
                "|",
                row.reference,
                "|",
                f"{row.ratio:.2f}",
                row.bar,
                row.held,
            )
