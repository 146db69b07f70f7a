"""What `doctor` says of a database: version, rights, latency, clock, connections."""

import asyncio
from collections.abc import AsyncIterator
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Literal

from dragoman.engine.faults import Fault
from dragoman.store.postgres.link import PostgresLink
from dragoman.store.postgres.roles import kind_of
from dragoman.store.postgres.schema import STEPS, version_of
from dragoman.store.postgres.writer import discard

if TYPE_CHECKING:
    from asyncpg import Connection

OLDEST = 130000
SLOW_MS = 20.0
CLOCK_SECONDS = 2.0
Finding = tuple[Literal["ok", "warn", "error"], str, str]  # severity, message, fix


def examine(url: str) -> list[Finding]:
    """Look at a database without changing it."""
    try:
        return asyncio.run(_examine(url))
    except Fault as fault:
        return [("error", fault.message, fault.hint)]


async def _examine(url: str) -> list[Finding]:
    link = PostgresLink(url)
    try:
        connection = await link.connect()
    except Exception as error:
        fault = link.explain(error)
        return [("error", fault.message, fault.hint)]
    try:
        return [finding async for finding in _looked(connection, link.place)]
    except Exception as error:
        fault = link.explain(error)
        return [("error", fault.message, fault.hint)]
    finally:
        await discard(connection)


async def _looked(connection: "Connection[Any]", place: str) -> AsyncIterator[Finding]:
    server = (await connection.fetchval("SHOW server_version")).partition(" ")[0]
    number = await connection.fetchval("SHOW server_version_num")
    if int(number) < OLDEST:
        yield ("error", f"PostgreSQL {server} is too old", "Use PostgreSQL 13 or newer.")
    else:
        yield ("ok", f"{place}, PostgreSQL {server}", "")
    if await connection.fetchval("SHOW transaction_read_only") == "on":
        yield (
            "error", "it can only be read",
            "Name its primary, or all its hosts with target_session_attrs=read-write.",
        )  # fmt: skip
    version = await version_of(connection)
    if version is None:
        if await connection.fetchval("SELECT has_schema_privilege(current_schema(), 'CREATE')"):
            yield ("ok", "the tables are not made yet", "")
        else:
            yield (
                "error", "this role may not make the tables",
                "Grant it CREATE on the schema, or let an administrator start the daemon once.",
            )  # fmt: skip
    else:
        if version < len(STEPS):
            yield ("warn", f"schema {version} is brought to {len(STEPS)} at the next start", "")
        for finding in await _rights(connection):
            yield finding
    for finding in await _times(connection):
        yield finding
    used, most = await connection.fetchrow(
        "SELECT count(*), current_setting('max_connections')::int FROM pg_stat_activity"
    )
    if most - used < 10:
        yield ("warn", f"{used} of {most} connections are used", "Raise max_connections.")
    else:
        yield ("ok", f"{used} of {most} connections are used; a daemon needs up to 6", "")


async def _rights(connection: "Connection[Any]") -> list[Finding]:
    kind, lacking = await kind_of(connection)
    if kind == "host":
        return [("ok", "this role may read and write all tables", "")]
    if kind == "front":
        return [("ok", "this role is a front: it reads, and writes commands and answers", "")]
    names = ", ".join(lacking)
    return [
        ("error", f"this role may not write {names}", "Run: dragoman fleet grant host|front ROLE")
    ]


async def _times(connection: "Connection[Any]") -> list[Finding]:
    found: list[Finding] = []
    times = []
    for _ in range(5):
        began = perf_counter()
        await connection.fetchval("SELECT 1")
        times.append((perf_counter() - began) * 1000)
    latency = sorted(times)[2]
    if latency > SLOW_MS:
        found.append(("warn", f"a question takes {latency:.1f} ms", "Bring the database nearer."))
    else:
        found.append(("ok", f"a question takes {latency:.1f} ms", ""))
    now = float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
    away = round(now - time(), 1) + 0.0  # no minus before nothing
    if abs(away) > CLOCK_SECONDS:
        found.append(
            ("warn", f"its clock is {away:+.1f} s from ours", "Set both by a time server.")
        )
    else:
        found.append(("ok", f"its clock is {away:+.1f} s from ours", ""))
    return found
