"""Several at one store: older programs, several loops, many sessions at once."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from tests.store.making import make_batch, make_info

from dragoman.engine.faults import StoreFailed
from dragoman.engine.info import SessionQuery
from dragoman.store.file import Claim, prepare
from dragoman.store.known import HOT, settle
from dragoman.store.migrations import STEPS, Foreign, migrate
from dragoman.store.sqlite import SqliteStore, open_store


def make_old(path: Path) -> None:
    prepare(str(path))
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, str(path), STEPS[:1])
    connection.close()


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return int(found)


async def test_a_file_is_not_brought_up_beside_an_older_program(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    make_old(path)
    older = Claim(str(path))
    older.share()
    with pytest.raises(Foreign) as caught:
        open_store(path)
    assert "older version" in caught.value.message and caught.value.hint
    assert version(path) == 1
    older.release(clean=True)
    await SqliteStore(path).close()
    assert version(path) == len(STEPS)


async def test_whoever_waited_in_vain_for_the_first_one_brings_the_file_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    make_old(path)
    # The first one failed while it opened the file: the one after it did not come first.
    monkeypatch.setattr(Claim, "__init__", second_claim)
    await SqliteStore(path).close()
    assert version(path) == len(STEPS)


def second_claim(self: Claim, path: str, first: object = Claim.__init__) -> None:
    first(self, path)  # type: ignore[operator]
    self.share()


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("patient", [False, True])
def test_what_a_closed_loop_left_is_written_before_what_comes_later(
    tmp_path: Path, patient: bool, make_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    store = SqliteStore(tmp_path / "s.db")

    async def begin() -> None:
        await store.create(make_info("s1"), "me")
        await store.append(make_batch("s1", 1))
        store.post(make_batch("s1", 1, 2), patient=patient)  # and the loop ends at once

    async def go_on() -> list[int]:
        await store.append(make_batch("s1", 1, 3))
        seqs = [entry.seq for entry in await store.entries("s1")]
        await store.close()
        return seqs

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(begin())
    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(go_on()) == [1, 2, 3]


async def test_loops_in_several_threads_lose_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    names = [f"s{n}" for n in range(4)]
    for name in names:
        await store.create(make_info(name), "me")

    async def write(name: str) -> None:
        for seq in range(1, 201):
            await asyncio.wait_for(store.post(make_batch(name, 1, seq), patient=seq % 3 == 0), 60)

    threads = [threading.Thread(target=asyncio.run, args=(write(name),)) for name in names[1:]]
    for thread in threads:
        thread.start()
    await write(names[0])
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
    for name in names:
        assert [entry.seq for entry in await store.entries(name)] == list(range(1, 201))
    assert await store.newest_gseq() == 800
    await store.close()


async def test_sessions_that_come_in_crowds_do_not_pile_up(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    crowds = [[f"s{number}-{n}" for n in range(200)] for number in range(6)]
    most = 0
    for crowd in crowds:
        await asyncio.gather(*(store.create(make_info(name), "me") for name in crowd))
    for crowd in crowds:
        await asyncio.gather(*(store.append(make_batch(name, 1)) for name in crowd))
        rows = await store.rows("SELECT count(*) FROM sessions WHERE hot = 1")
        most = max(most, rows[0][0])
    assert most <= HOT + 2 * 200
    await store.close()


async def test_a_reading_that_failed_does_not_keep_later_ones_in_the_past(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    for name in ("s1", "s2"):
        await store.create(make_info(name), "me")
        await store.append(make_batch(name, 1, 1, 3))
    await store.append(make_batch("s1", 1, 4, 3))
    tear = "UPDATE events SET body = x'93a5' WHERE gseq = 3"
    await store.writer.run(lambda connection: connection.execute(tear).rowcount)
    with pytest.raises(StoreFailed) as caught:
        await store.entries("s1")
    await store.append(make_batch("s2", 1, 4, 3))
    assert len(await store.entries("s2")) == 6  # while somebody still has the error in hand
    assert "damaged" in caught.value.message
    await store.close()


async def test_sessions_that_are_settled_while_they_are_counted_count_once(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    for n in range(5):
        await store.create(make_info(f"s{n}"), "me")
        await store.append(make_batch(f"s{n}", 1, status="running"))
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    counted: list[str] = []

    def between(statement: str) -> None:
        if counted:
            settle(other)
        if "count(*)" in statement:
            counted.append(statement)

    store._reader._connection.set_trace_callback(between)
    page = await store.list(SessionQuery(status=("running",), offset=1, limit=2))
    again = await store.list(SessionQuery(status=("running",), offset=1, limit=2))
    store._reader._connection.set_trace_callback(None)
    assert counted and (page.total, again.total) == (5, 5)
    other.close()
    await store.close()
