"""Busy sessions: what a turn writes, when the indexes follow, and who may notice."""

import asyncio
import random
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.store.making import make_answer, make_ask, make_batch, make_info
from tests.store.test_sqlite import queue_up

from dragoman.engine.events import Noted, encode_body
from dragoman.engine.faults import StaleEpoch, StoreFailed, UnknownSession
from dragoman.engine.info import SessionQuery
from dragoman.engine.ports import Batch, Entry
from dragoman.store.known import HOT, settle
from dragoman.store.memory import MemoryStore
from dragoman.store.rows import PACK_BYTES, PACK_COUNT
from dragoman.store.sqlite import SqliteStore

QUERIES: tuple[dict[str, Any], ...] = (
    {},
    {"limit": 3},
    {"limit": 2, "offset": 2},
    {"status": ("running",)},
    {"status": ("running",), "offset": 1, "limit": 2},
    {"status": ("running", "idle")},
    {"status": ("idle", "failed"), "limit": 3, "offset": 1},
    {"cwd": "/p"},
    {"cwd": "/p", "status": ("idle", "running")},
    {"agent": "coder"},
    {"archived": True},
    {"archived": False, "status": ("idle",)},
    {"leaves": True},
    {"parent": "s1"},
    {"extra": {"correspondent": {"key": "k"}}},
    {"extra": {"team": 1}},
    {"extra": {"team": 1}, "status": ("running",), "offset": 1},
)


async def hot(store: SqliteStore) -> list[str]:
    sql = "SELECT id FROM sessions WHERE hot = 1 ORDER BY num"
    return [row[0] for row in await store.rows(sql)]


async def cool(store: SqliteStore) -> None:
    await store.writer.run(settle)


async def test_a_turn_looks_nothing_up_and_leaves_the_indexes_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epochs = {f"s{n}": await store.create(make_info(f"s{n}"), "me") for n in range(4)}
    for name, epoch in epochs.items():
        await store.append(make_batch(name, epoch, 1, 2))
    seen: list[str] = []
    store.writer._connection.set_trace_callback(seen.append)
    for name, epoch in epochs.items():
        await store.append(make_batch(name, epoch, 3, 3, status="running", updated_at=2000))
    store.writer._connection.set_trace_callback(None)
    verbs = [statement.split()[0] for statement in seen]
    assert verbs == ["BEGIN", "UPDATE", "INSERT", "COMMIT"] * 4
    indexed = {"updated_at", "status", "cwd", "agent", "archived", "parent", "leaf"}
    for statement in seen[1::4]:
        named = {part.split("=")[0].strip() for part in statement.split("WHERE")[0].split(",")}
        assert not named & indexed
    await store.close()


async def test_batches_of_one_session_in_a_group_move_its_row_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch))
    group = [make_batch("s1", epoch, 2 + 2 * n, 2, updated_at=2000 + n) for n in range(5)]
    await store.append(make_batch("s1", epoch, 0, 0, last_seq=1))
    seen: list[str] = []
    entered, leave = threading.Event(), threading.Event()

    def hold(statement: str) -> None:
        seen.append(statement)
        entered.set()
        assert leave.wait(60)

    store.writer._connection.set_trace_callback(hold)
    first = store.post(make_batch("s1", epoch, 0, 0, last_seq=1))
    assert await asyncio.to_thread(entered.wait, 10)
    posted = [store.post(batch) for batch in group]
    leave.set()
    await first
    assert await asyncio.gather(*posted) == [2, 4, 6, 8, 10]
    store.writer._connection.set_trace_callback(None)
    verbs = [statement.split()[0] for statement in seen]
    assert verbs == ["BEGIN", "UPDATE", "COMMIT", "BEGIN", "UPDATE", *["INSERT"] * 5, "COMMIT"]
    assert await store.info("s1") == group[-1].info
    assert [e.gseq for e in await store.entries("s1")] == list(range(1, 12))
    await store.close()


@pytest.mark.parametrize("seed", range(6))
async def test_lists_are_the_same_whoever_is_hot(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    store, model = SqliteStore(tmp_path / "s.db"), MemoryStore()
    last = {f"s{n}": 0 for n in range(9)}
    for name in last:
        for one in (store, model):
            assert await one.create(make_info(name, 1000), "me") == 1
    at = 1000
    for _ in range(60):
        name = chance.choice([*last])
        at += chance.randrange(2)
        other: dict[str, Any] = {"status": chance.choice(["idle", "running", "failed"])}
        if chance.random() < 0.2:
            other |= {
                "archived": True,
                "cwd": "/p",
                "extra": {"correspondent": {"key": "k"}, "team": 1},
            }
        if chance.random() < 0.2:
            other |= {"agent": "coder", "parent": "s1"}
        batch = make_batch(name, 1, last[name] + 1, 2, updated_at=at, **other)
        last[name] += 2
        assert await store.append(batch) == await model.append(batch)
        if chance.random() < 0.1:
            await cool(store)
        for query in chance.sample(QUERIES, 3):
            ours = await store.list(SessionQuery(**query))
            assert ours == await model.list(SessionQuery(**query)), query
            if ours.cursor:
                more = SessionQuery(**{**query, "offset": 0, "cursor": ours.cursor})
                assert await store.list(more) == await model.list(more), query
    await store.close()


async def test_only_so_many_sessions_are_hot(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    count = HOT * 2 + 5
    for n in range(count):
        epoch = await store.create(make_info(f"s{n:03}", n), "me")
        await store.append(make_batch(f"s{n:03}", epoch, updated_at=1000 + n))
    busy = await hot(store)
    assert len(busy) <= HOT + 1
    assert f"s{count - 1:03}" in busy and "s000" not in busy  # the oldest activity is settled
    page = await store.list(SessionQuery(limit=count))
    assert [info.id for info in page.sessions] == [f"s{n:03}" for n in reversed(range(count))]
    await store.append(make_batch("s000", 1, 2, updated_at=9999))  # one that was settled goes on
    assert (await store.list(SessionQuery(limit=1))).sessions[0].id == "s000"
    await store.close()


async def test_the_indexes_follow_at_rest_at_the_end_and_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path, idle=0.02)
    rested = threading.Event()
    original = store.writer._fold

    def fold() -> None:
        original()
        rested.set()

    store.writer._fold = fold  # type: ignore[method-assign]
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, updated_at=2000))
    rested.clear()
    await store.append(make_batch("s1", epoch, 2, updated_at=3000))
    busy = ["s1"]
    while busy:  # the first look may have begun before it
        assert await asyncio.to_thread(rested.wait, 60)
        rested.clear()
        busy = await hot(store)
    await store.append(make_batch("s1", epoch, 3, updated_at=4000, status="running"))
    await store.close()
    look = sqlite3.connect(path, isolation_level=None)
    row = "SELECT hot, updated_at, status FROM sessions"
    assert look.execute(row).fetchall() == [(0, 4000, "running")]
    look.execute("UPDATE sessions SET hot = 1, live_at = 5000, live_status = 'idle'")  # a crash
    look.close()
    store = SqliteStore(path)
    await store.put("a", "b", b"c")  # the writer tidies up first
    assert (await store.rows(row)) == [(0, 5000, "idle")]
    other = SqliteStore(path)
    await store.append(make_batch("s1", epoch, 4, updated_at=6000))
    assert await hot(other) == ["s1"]
    third = SqliteStore(path)  # somebody is at work here: his sessions stay as they are
    assert await hot(other) == ["s1"]
    for one in (third, other, store):
        await one.close()


# --- several processes -----------------------------------------------------------------------


async def test_what_another_process_did_is_noticed(tmp_path: Path) -> None:
    one, two = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    epoch = await one.create(make_info("s1"), "one")
    mine = await two.create(make_info("s2"), "two")
    assert await one.append(make_batch("s1", epoch, 1, 2)) == 1
    assert await two.append(make_batch("s2", mine, 1, 3)) == 3
    assert await one.append(make_batch("s1", epoch, 3, 2)) == 6  # numbers given by the other
    assert await two.append(make_batch("s2", mine, 4, 2)) == 8
    await two.delete("s2")
    assert await one.append(make_batch("s1", epoch, 5, 2)) == 10  # also when they are gone again
    await cool(two)
    await one.append(make_batch("s1", epoch, 7, updated_at=5000, status="running"))
    await two.create(make_info("s3", 4000), "two")
    listed = (await two.list(SessionQuery(status=("running",)))).sessions
    assert [(info.id, info.updated_at) for info in listed] == [("s1", 5000)]
    assert [i.id for i in (await one.list(SessionQuery())).sessions] == ["s1", "s3"]
    taken = await two.take("s1", "two", lambda owner: False)
    with pytest.raises(StaleEpoch):
        await one.append(make_batch("s1", epoch, 8))
    await two.append(make_batch("s1", taken, 8))
    every = await one.entries_since(0, 100)
    assert [e.gseq for e in every] == [1, 2, 6, 7, 10, 11, 12, 13]
    await one.close()
    await two.close()


async def test_a_session_deleted_and_made_again_elsewhere_is_another_one(tmp_path: Path) -> None:
    one, two = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    epoch = await one.create(make_info("s1"), "one")
    await one.append(make_batch("s1", epoch, 1, 2))
    await two.delete("s1")
    other = await two.create(make_info("s2"), "two")  # gets the number of the former row
    await two.append(make_batch("s2", other, 1, 2))
    with pytest.raises(UnknownSession):
        await one.append(make_batch("s1", epoch, 3, 2))
    assert len(await one.entries("s2")) == 2
    await one.close()
    await two.close()


async def test_a_group_may_hold_plain_batches_and_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epochs = {f"s{n}": await store.create(make_info(f"s{n}"), "me") for n in range(3)}
    for name, epoch in epochs.items():
        await store.append(make_batch(name, epoch))
    works = [
        store.append(make_batch("s0", 1, 2)),
        store.append(make_batch("s1", 1, 2, title="named", asked=[make_ask("a", "s1")])),
        store.append(make_batch("s2", 1, 3)),  # a gap
        store.append(make_batch("s0", 1, 3)),
        store.append(make_batch("s1", 1, 3, title="named", settled=[make_answer("a")])),
    ]
    results = await queue_up(store, works)
    assert results[:2] + results[3:] == [4, 5, 6, 7]
    assert isinstance(results[2], StoreFailed)
    assert await store.append(make_batch("s2", 1, 2)) == 8
    await store.close()


# --- packed rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(1, 2, 3), (5,), (PACK_COUNT + 1, 2), (200, 1, 64)])
async def test_packed_events_are_read_from_any_place(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epoch = await store.create(make_info("s0"), "me")
    await store.append(make_batch("s0", epoch, 1, 3))  # so that seq and gseq differ
    epoch = await store.create(make_info("s1"), "me")
    seq = 1
    for size in sizes:
        assert await store.append(make_batch("s1", epoch, seq, size)) == seq + 3
        seq += size
    total = seq - 1
    every = [(n, 1000 + n, n + 3, "s1") for n in range(1, seq)]
    for after in {0, 1, 2, total // 2, total - 1, total}:
        for limit in (None, 0, 1, 2, 7, total):
            read = await store.entries("s1", after, limit)
            assert [(e.seq, e.at, e.gseq, e.session) for e in read] == every[after:][:limit]
            since = await store.entries_since(after + 3, 10_000 if limit is None else limit)
            assert [(e.seq, e.at, e.gseq, e.session) for e in since] == every[after:][:limit]
    assert await store.newest_gseq() == total + 3
    await store.close()


async def test_large_and_nameless_events_are_kept_too(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epoch = await store.create(make_info("s1"), "me")
    bodies = [b"x" * size for size in (10, PACK_BYTES, 20, PACK_BYTES // 2, PACK_BYTES, 30)]
    entries = [Entry(n, n, "big", body) for n, body in enumerate(bodies, 1)]
    await store.append(Batch("s1", epoch, entries, make_info("s1")))
    nameless = Entry(7, 7, "", encode_body(Noted("info", "x")))
    await store.append(Batch("s1", epoch, [nameless], make_info("s1")))
    read = await store.entries("s1")
    assert [e.body for e in read] == [*bodies, nameless.body]
    assert [e.kind for e in read] == ["big"] * 6 + [""]
    await store.close()


async def test_a_torn_row_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, 1, 3))
    await store.writer.run(lambda c: c.execute("UPDATE events SET body = x'93a5'").rowcount)
    with pytest.raises(StoreFailed) as caught:
        await store.entries("s1")
    assert "damaged" in caught.value.message
    await store.close()
    assert (tmp_path / "s.db.lock").read_bytes() != b""  # the next one looks through the file
