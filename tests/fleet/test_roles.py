"""Two roles of the database: hosts work with sessions, fronts only ask for it."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest
from tests.fleet.making import Fleet, until

from dragoman.engine.events import Settled, Who
from dragoman.engine.faults import BadInput, Fault, Refused
from dragoman.host import database
from dragoman.providers.scripted import Call, Say, Scripted, Turn
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.roles import ROLES, kind_of
from dragoman.testing.host import EchoTool

BOB = Who("zot", name="bob")


@pytest.fixture
async def urls(fleet: Fleet) -> AsyncIterator[dict[str, str]]:
    """The addresses of a host and of a front, whose roles nobody else has."""
    owner = await PostgresStore.open(fleet.url)
    made = {kind: f"{kind}_{uuid4().hex[:8]}" for kind in ROLES}
    for kind, role in made.items():
        await owner.fetch(f"CREATE ROLE {role} LOGIN")
        await owner.grant(role, kind)
    yield {kind: fleet.url.replace("dragoman@", f"{role}@") for kind, role in made.items()}
    await fleet.close()
    for role in made.values():
        await owner.fetch(f"DROP OWNED BY {role}")
        await owner.fetch(f"DROP ROLE {role}")
    await owner.close()


async def test_a_front_asks_and_a_host_does(fleet: Fleet, urls: dict[str, str]) -> None:
    turns = Turn((Call("echo", {"text": "x"}),)), Turn((Say("done"),))
    echo = EchoTool()
    host = await fleet.join(
        "host", Scripted(turns, loop=True), [echo], mode="supervised", url=urls["host"]
    )
    front = await fleet.join("front", Scripted([]), url=urls["front"])
    assert (host.node.front, front.node.front) == (False, True)
    session = await host.open()
    with pytest.raises(Refused, match="front"):
        await front.open()
    work = await front.say(session, "go", by=BOB)
    (row,) = await until(front.door.asks)
    settled = await front.door.answer(row.ask.id, "allow", BOB)
    assert isinstance(settled, Settled) and settled.by is not None and settled.by.node == "front"
    finished = await asyncio.wait_for(work.done, 60)
    assert (finished.text, len(echo.ran)) == ("done", 1)
    assert [info.id for info in await host.door.search("done")] == [session]
    assert [info.id for info in await front.door.search("done")] == [session]
    assert [row.name for row in await host.node.desk.nodes()] == ["host"]
    assert front.node.status()["state"] == "front"


async def test_what_a_front_may_not_do_the_database_refuses(
    fleet: Fleet, urls: dict[str, str]
) -> None:
    host = await fleet.join("host", Scripted([]), url=urls["host"])
    session = await host.open()
    front = await fleet.join("front", Scripted([]), url=urls["front"])
    for statement in (
        "UPDATE sessions SET epoch = epoch + 1",
        "DELETE FROM sessions",
        "INSERT INTO events VALUES (1, 99, 99, 1, 'spoke', '')",
        "UPDATE asks SET pending = false",
        "UPDATE commands SET done_at = now()",
        "INSERT INTO commands (id, session, sender, kind, body, done_at)"
        " VALUES ('x', 1, 'x', 'x', '', now())",
        "INSERT INTO kv VALUES ('rules', 'x', '')",
        "UPDATE nodes SET lease = now()",
        "DROP TABLE events",
    ):
        with pytest.raises(Fault, match=r"does not allow|must be owner"):
            await front.store.fetch(statement)
    with pytest.raises(Fault, match="does not allow"):
        await front.store.put("rules", "x", b"")
    with pytest.raises(Fault, match=r"must be owner|does not allow"):
        await host.store.fetch("DROP TABLE events")
    assert (await front.door.info(session)).id == session


async def test_doctor_tells_the_roles_apart(urls: dict[str, str], fleet: Fleet) -> None:
    for kind, word in (("host", "read and write"), ("front", "is a front")):
        found = await asyncio.to_thread(database.examine, urls[kind])
        assert any(word in message for _, message, _ in found), found
        assert {severity for severity, _, _ in found} == {"ok"}
    connection = await asyncpg.connect(fleet.url)
    role = urls["front"].partition("//")[2].partition("@")[0]
    await connection.execute(f"REVOKE ALL ON commands FROM {role}")
    await connection.close()
    connection = await asyncpg.connect(urls["front"])
    found_kind, lacking = await kind_of(connection)
    await connection.close()
    assert found_kind is None and "commands" in lacking
    found = await asyncio.to_thread(database.examine, urls["front"])
    assert any("fleet grant" in fix for severity, _, fix in found if severity == "error")


async def test_a_role_that_is_not_there_is_told(fleet: Fleet) -> None:
    store = await PostgresStore.open(fleet.url)
    with pytest.raises(BadInput, match="no role nobody"):
        await store.grant("nobody; DROP TABLE events", "host")
    await store.close()
