"""What the address of a database says, and what becomes of an unusual database."""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.fleet.making import until
from tests.postgres import new_database
from tests.store.making import make_batch, make_info

from dragoman.engine.faults import BadInput, Fault, StoreFailed
from dragoman.host.database import examine
from dragoman.store.postgres import PostgresStore, writer
from dragoman.store.postgres.address import place_of, read_address
from dragoman.store.postgres.link import PostgresLink
from dragoman.testing.postgres import Server


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ann:hush@db/work", "work at db"),
        ("postgresql://ann:hu%40sh@db:5433/work", "work at db:5433"),
        ("postgresql://ann@[::1]:3,one:1,two:2/work", "work at ::1:3, one:1, two:2"),
        ("postgresql://ann@/work?host=/run/pg", "work at /run/pg"),
        ("postgresql://ann@db", "ann at db"),
    ],
)
def test_a_place_is_told_without_secrets(url: str, place: str) -> None:
    assert place_of(url) == read_address(url).place == place


def test_what_is_for_other_programs_is_not_told_to_the_server() -> None:
    queries = ("channel_binding=prefer", "gssencmode=disable", "keepalives=1", "sslsni=1")
    found = read_address(f"postgresql://a@db/x?{'&'.join(queries)}&search_path=s&connect_timeout=7")
    assert found.url == "postgresql://a@db/x?search_path=s"
    assert found.connect == 7.0


@pytest.mark.parametrize(
    "url",
    ["postgresql://ann:hush@db:hush/x", "postgresql://ann:hush@[::1/x", "postgresql://ann:hu/sh@db/x",
     "postgresql://ann:hush@one,two:99999/x", "postgresql://ann:hush@one,[::1/x"],
)  # fmt: skip
def test_a_place_that_cannot_be_read_is_refused_without_secrets(url: str) -> None:
    for read in (place_of, read_address):
        with pytest.raises(BadInput, match="host or a port") as caught:
            read(url)
        assert "hu" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "seconds", "told"),
    [("", 35.0, "30000"), ("statement_timeout=2000", 7.0, "2000"),
     ("statement_timeout=0", None, "0")],
)  # fmt: skip
def test_the_address_says_how_long_a_statement_may_take(
    query: str, seconds: float | None, told: str
) -> None:
    terms = read_address(f"postgresql://a@db/x?{query}").terms()
    assert terms["command_timeout"] == seconds
    assert terms["server_settings"]["statement_timeout"] == told


def test_what_the_fence_rests_on_cannot_be_changed() -> None:
    found = read_address("postgresql://a@db/x?default_transaction_isolation=serializable")
    assert found.settings["default_transaction_isolation"] == "read committed"


@pytest.mark.parametrize(
    "query",
    [
        "channel_binding=require",
        "gssencmode=require",
        "require_auth=scram-sha-256",
        "requirepeer=postgres",
        "sslrootcert=/no/such/file",
        "sslcert=/no/such/file",
        "sslkey=/no/such/file",
        "sslrootcert=system&sslmode=require",
        "connect_timeout=soon",
        "statement_timeout=5s",
    ],
)
def test_what_cannot_be_kept_is_refused_at_once(query: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_address(f"postgresql://ann:hush@db/x?{query}")
    assert query.partition("=")[0] in str(caught.value) and "hush" not in str(caught.value)


def test_those_whom_the_machine_trusts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trusted = tmp_path / "all.pem"
    trusted.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    found = read_address("postgresql://a@db/x?sslrootcert=system")
    assert "sslmode=verify-full" in found.url and "all.pem" in found.url


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (asyncpg.DuplicatePreparedStatementError("x exists"), StoreFailed, "pooler"),
        (asyncpg.InvalidSQLStatementNameError("x is not there"), StoreFailed, "pooler"),
        (
            asyncpg.ProtocolViolationError("unsupported startup parameter: statement_timeout"),
            StoreFailed,
            "ignore_startup_parameters",
        ),
        (asyncpg.DiskFullError("could not extend file"), StoreFailed, "Make room"),
        (asyncpg.QueryCanceledError("statement timeout"), StoreFailed, "in time"),
        (asyncpg.ReadOnlySQLTransactionError("no"), StoreFailed, "can only be read"),
        (asyncpg.InvalidCatalogNameError("no"), StoreFailed, "createdb"),
        (asyncpg.UndefinedObjectError("unrecognized parameter"), BadInput, "Take it out"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_trouble_has_its_words(error: Exception, kind: type[Fault], said: str) -> None:
    fault = PostgresLink("postgresql://ann:hush@db/work").explain(error)
    assert type(fault) is kind and said in str(fault)


async def _database(server: Server, terms: str) -> str:
    """A database with terms of its own."""
    url = await new_database(server, migrated=False)
    name = url.partition("?")[0].rpartition("/")[2]
    connection = await asyncpg.connect(server.url())
    await connection.execute(f"ALTER DATABASE {name} {terms}")
    await connection.close()
    return url


async def test_an_isolation_that_the_database_prefers_costs_no_append(postgres: Server) -> None:
    url = await _database(postgres, "SET default_transaction_isolation = 'serializable'")
    stores = [await PostgresStore.open(url) for _ in range(3)]
    for name, store in enumerate(stores):
        await store.create(make_info(f"s{name}"), "me")
    for head in range(1, 20):
        posted = [store.post(make_batch(f"s{name}", 1, head)) for name, store in enumerate(stores)]
        assert {type(one) for one in await asyncio.gather(*posted)} == {int}
    for store in stores:
        await store.close()


async def test_a_database_that_can_only_be_read_is_told_and_waited_for(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await new_database(postgres)
    store = await PostgresStore.open(url, wait=100.0)
    await store.create(make_info("s"), "me")
    name = url.partition("?")[0].rpartition("/")[2]
    other = await asyncpg.connect(url)
    told: list[str] = []
    store.writer.on_stall = told.append
    connect, tries, enough = store.link.connect, 0, asyncio.Event()

    async def counted() -> Any:
        nonlocal tries
        tries += 1
        if tries > 2 * writer.TRIES:  # no number of connections is too much
            enough.set()
        return await connect()

    monkeypatch.setattr(store.link, "connect", counted)
    monkeypatch.setattr(writer, "BACK_OFF", (0.01,))
    await other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await other.execute("SELECT pg_terminate_backend($1)".replace(
        "$1", str(store.writer._connection.get_server_pid())))  # type: ignore[union-attr]  # fmt: skip
    posted = store.post(make_batch("s", 1, 1))
    await asyncio.wait_for(enough.wait(), 60)
    assert not posted.done() and "only be read" in store.problem
    await other.execute("SET default_transaction_read_only = off")
    await other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert await asyncio.wait_for(posted, 60) > 0 and store.problem == ""
    assert len(told) == 2 and told[-1] == ""  # when it went, and when it was back
    await other.close()
    await store.close()


async def test_who_waits_for_a_locked_table_is_refused_together(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await new_database(postgres)
    store = await PostgresStore.open(f"{url}&statement_timeout=2000", wait=3)
    names = [f"s{n}" for n in range(8)]
    for name in names:
        await store.create(make_info(name), "me")
        await store.append(make_batch(name, 1, 1))
    other = await asyncpg.connect(url)
    lock = other.transaction()
    await lock.start()
    await other.execute("LOCK TABLE events")
    alone: list[Any] = []
    monkeypatch.setattr(store.writer, "_write_one", lambda *given: alone.append(given))
    posted = [store.post(make_batch(name, 1, 2)) for name in names]
    found: list[Any] = await asyncio.wait_for(asyncio.gather(*posted, return_exceptions=True), 60)
    monkeypatch.undo()
    assert alone == []  # each for itself would have to wait as long again
    assert {type(one) for one in found} == {StoreFailed}
    assert all("in time" in str(one) for one in found)
    await lock.rollback()
    assert await store.append(make_batch("s0", 1, 2)) > 0
    await other.close()
    await store.close()


async def test_a_new_database_must_hold_every_text(postgres: Server) -> None:
    connection = await asyncpg.connect(postgres.url())
    await connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    await connection.close()
    with pytest.raises(Fault, match="LATIN1"):
        await PostgresStore.open(postgres.url("latin"))


async def test_what_is_told_of_a_database_that_is_away_is_the_newest(postgres: Server) -> None:
    url = await new_database(postgres)
    name = url.partition("?")[0].rpartition("/")[2]
    store = await PostgresStore.open(url)
    epoch = await store.create(make_info("s"), "me")
    told: list[str] = []
    store.writer.on_stall = told.append
    other = await asyncpg.connect(postgres.url())
    await other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    await other.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    )
    posted = store.post(make_batch("s", epoch, 1))
    await until(lambda: "accepting connections" in store.problem, 30)
    await other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert await asyncio.wait_for(posted, 60) > 0
    assert len(told) == 2 and "cannot be reached" in told[0] and told[1] == store.problem == ""
    await other.close()
    await store.close()


async def test_doctor_tells_of_a_database_that_can_only_be_read(postgres: Server) -> None:
    url = await _database(postgres, "SET default_transaction_read_only = on")
    found = await asyncio.to_thread(examine, url)
    assert ("error", "it can only be read") in [(one[0], one[1]) for one in found]
    assert not any("only be read" in one[1] for one in await asyncio.to_thread(
        examine, f"{url}&default_transaction_read_only=off"))  # fmt: skip
