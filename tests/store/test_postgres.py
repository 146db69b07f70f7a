"""What only a database server can do: go away, come back, and be shared by machines."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.fleet.proxy import Proxy
from tests.postgres import new_database
from tests.store.making import make_ask, make_batch, make_info

from dragoman.engine.faults import InUse, StaleEpoch, StoreFailed
from dragoman.engine.info import SessionQuery
from dragoman.store.migrations import Foreign
from dragoman.store.postgres import PostgresStore, schema
from dragoman.store.postgres.address import place_of
from dragoman.testing.postgres import Server


@pytest.fixture(scope="module")
def mortal(initdb: None) -> Iterator[Server]:
    """A server that may be stopped, and keeps what it said it kept."""
    server = Server(durable=True)
    yield server
    server.stop()


async def open_new(server: Server) -> PostgresStore:
    return await PostgresStore.open(await new_database(server, migrated=False))


async def test_programs_that_begin_at_once_migrate_once(postgres: Server) -> None:
    url = await new_database(postgres, migrated=False)
    stores = await asyncio.gather(*(PostgresStore.open(url) for _ in range(4)))
    assert await stores[0].fetch("SELECT version FROM dragoman_schema") == [(len(schema.STEPS),)]
    for store in stores:
        await store.close()


async def test_tables_that_appear_between_two_looks_are_our_own(postgres: Server) -> None:
    url = await new_database(postgres, migrated=False)
    one, other = await asyncpg.connect(url), await asyncpg.connect(url)

    class Late:
        async def fetchval(self, *asked: Any) -> Any:
            found = await one.fetchval(*asked)
            if asked[1:] == ("dragoman_schema",) and not found:
                await schema.migrate(other)
            return found

    assert await schema.version_of(Late()) == len(schema.STEPS)
    for connection in (one, other):
        await connection.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE dragoman_schema SET version = 99", "newer version"),
        ("DROP TABLE dragoman_schema", "another program"),
    ],
)
async def test_a_database_that_is_not_ours_is_left_alone(
    postgres: Server, statement: str, said: str
) -> None:
    url = await new_database(postgres)
    store = await PostgresStore.open(url)
    await store.writer._connection.execute(statement)  # type: ignore[union-attr]
    await store.close()
    with pytest.raises(Foreign) as caught:
        await PostgresStore.open(url)
    assert said in str(caught.value)


async def test_a_database_that_is_not_there_is_told_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed) as caught:
        await PostgresStore.open(f"postgresql://ann:hush@/x?host={tmp_path}")
    assert "x at" in str(caught.value) and "hush" not in str(caught.value)
    assert place_of("postgresql://ann:hush@db.example:5433/work") == "work at db.example:5433"


async def test_what_was_posted_while_the_server_restarts_is_written_when_it_is_back(
    mortal: Server,
) -> None:
    store = await open_new(mortal)
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, 1, 2))
    stalls: list[str] = []
    gone = asyncio.Event()
    store.writer.on_stall = lambda why: (stalls.append(why), gone.set())  # type: ignore[assignment]
    await asyncio.to_thread(mortal.halt)
    posted = [store.post(make_batch("s1", epoch, n)) for n in range(3, 9)]
    await asyncio.wait_for(gone.wait(), 60)
    assert "cannot be reached" in store.stalled and store.problem == store.stalled
    assert not any(one.done() for one in posted)
    await asyncio.to_thread(mortal.start)
    assert [*await asyncio.gather(*posted)] == [*range(3, 9)]
    assert (store.stalled, stalls[-1]) == ("", "")
    assert [entry.seq for entry in await store.entries("s1")] == [*range(1, 9)]
    await store.close()


async def test_a_crash_of_the_server_loses_nothing_that_was_acknowledged(mortal: Server) -> None:
    store = await open_new(mortal)
    epoch = await store.create(make_info("s1"), "me")
    acknowledged = []

    async def write() -> None:
        for seq in range(1, 2000):
            await store.append(make_batch("s1", epoch, seq))
            acknowledged.append(seq)
            if seq == 60:
                enough.set()

    enough = asyncio.Event()
    writing = asyncio.create_task(write())
    await enough.wait()
    await asyncio.to_thread(lambda: mortal.halt(crash=True))
    before = len(acknowledged)
    await asyncio.to_thread(mortal.start)
    while len(acknowledged) < before + 20:
        assert not writing.done()
        await asyncio.sleep(0.01)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    stored = [entry.seq for entry in await store.entries("s1")]
    assert stored == [*range(1, len(stored) + 1)] and len(stored) >= len(acknowledged)
    assert len({entry.gseq for entry in await store.entries("s1")}) == len(stored)
    await store.close()


@pytest.fixture
async def through(postgres: Server) -> AsyncIterator[tuple[Proxy, str]]:
    proxy = await Proxy.open(postgres.socket)
    name = (await new_database(postgres)).partition("?")[0].rpartition("/")[2]
    yield proxy, f"postgresql://dragoman@127.0.0.1:{proxy.port}/{name}?sslmode=disable"
    await proxy.close()


async def test_what_was_committed_and_not_answered_is_not_written_twice(
    through: tuple[Proxy, str],
) -> None:
    proxy, url = through
    store = await PostgresStore.open(url)
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, 1))
    for seq in range(2, 12, 2):
        proxy.deaf = True  # the server hears, we do not
        posted = [
            store.post(make_batch("s1", epoch, seq)),
            store.post(make_batch("s1", epoch, seq + 1)),
        ]
        await proxy.passed.wait()
        await asyncio.sleep(0.02)  # for the server, of which nothing can be heard
        proxy.cut()
        assert [*await asyncio.gather(*posted)] == [seq, seq + 1]
    proxy.deaf = True
    made = asyncio.ensure_future(store.create(make_info("s2"), "me"))
    await proxy.passed.wait()
    await asyncio.sleep(0.02)
    proxy.cut()
    assert await made == 1
    await store.close()


async def test_what_waits_too_long_is_refused_and_the_next_is_written(
    through: tuple[Proxy, str],
) -> None:
    proxy, url = through
    store = await PostgresStore.open(url, wait=2)
    epoch = await store.create(make_info("s1"), "me")
    await proxy.shut()
    with pytest.raises(StoreFailed) as caught:
        await store.append(make_batch("s1", epoch, 1))
    assert "cannot be reached" in str(caught.value)
    await proxy.reopen()
    assert await store.append(make_batch("s1", epoch, 1)) == 1
    await store.close()


async def test_two_machines_on_one_database(postgres: Server) -> None:
    url = await new_database(postgres)
    one, two = await PostgresStore.open(url), await PostgresStore.open(url)
    epoch = await one.create(make_info("s1"), "one")
    await one.append(make_batch("s1", epoch, 1))
    with pytest.raises(InUse):
        await two.take("s1", "two", lambda owner: True)
    later = await two.take("s1", "two", lambda owner: False)
    with pytest.raises(StaleEpoch):
        await one.append(make_batch("s1", epoch, 2))
    await two.append(make_batch("s1", later, 2))

    async def fill(store: PostgresStore, name: str) -> None:
        epoch = await store.create(make_info(name), name)
        await asyncio.gather(*(store.append(make_batch(name, epoch, n)) for n in range(1, 101)))

    await asyncio.gather(*(fill(store, f"{n}") for n, store in enumerate((one, two) * 4)))
    found = await one.entries_since(0, 10_000)
    assert [entry.gseq for entry in found] == [*range(1, len(found) + 1)] and len(found) == 802
    await one.close()
    await two.close()


async def test_what_a_reader_saw_grows_at_its_end_only(postgres: Server) -> None:
    """Numbers are given in the order of the commits: who reads on from the newest misses none."""
    url = await new_database(postgres)
    stores = [await PostgresStore.open(url) for _ in range(3)]
    seen: list[int] = []
    done = asyncio.Event()

    async def follow() -> None:
        last = False
        while True:
            page = await stores[0].entries_since(seen[-1] if seen else 0, 1000)
            seen.extend(entry.gseq for entry in page)
            if last:
                return
            last = done.is_set()

    async def fill(store: PostgresStore, name: str) -> None:
        epoch = await store.create(make_info(name), name)
        for n in range(1, 60):
            await store.append(make_batch(name, epoch, n))

    following = asyncio.create_task(follow())
    await asyncio.gather(*(fill(store, f"{n}") for n, store in enumerate(stores * 2)))
    done.set()
    await following
    assert seen == [*range(1, 6 * 59 + 1)]
    for store in stores:
        await store.close()


async def test_text_that_the_database_cannot_hold(postgres: Server) -> None:
    store = await PostgresStore.open(await new_database(postgres))
    epoch = await store.create(make_info("s\0", title="a\0b", cwd="/\0"), "me")
    batch = make_batch("s\0", epoch, 1, title="a\0b", cwd="/\0", asked=[make_ask("q\0", "s\0")])
    await store.append(batch)
    assert (await store.info("s\0")) == batch.info
    page = await store.list(SessionQuery(cwd="/\0", text="a\0b"))
    assert [info.id for info in page.sessions] == ["s\0"]
    assert (await store.ask("q\0")) is not None
    await store.close()


async def test_busy_sessions_leave_the_indexes_alone_and_lists_know_them(postgres: Server) -> None:
    store = await PostgresStore.open(await new_database(postgres))
    epochs = {}
    for n in range(150):
        name = f"s{n}"
        epochs[name] = await store.create(make_info(name, n), "me")
        await store.append(make_batch(name, epochs[name], 1, updated_at=n))
    hot = (await store.fetch("SELECT count(*) FROM sessions WHERE hot"))[0][0]
    assert 0 < hot <= 130
    page = await store.list(SessionQuery(limit=200))
    assert [info.id for info in page.sessions] == [f"s{n}" for n in reversed(range(150))]
    await store.close()
    again = await PostgresStore.open(store.link.address.url)
    assert (await again.fetch("SELECT count(*) FROM sessions WHERE hot"))[0][0] == 0
    await again.close()


def test_the_server_of_the_tests_does_not_run_as_root(postgres: Server) -> None:
    assert os.stat(f"/proc/{postgres.pid}").st_uid != 0
