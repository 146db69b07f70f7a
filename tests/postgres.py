"""One PostgreSQL for all tests of a process, and databases that are copied from a migrated one."""

from uuid import uuid4

from dragoman.store.postgres import PostgresStore
from dragoman.testing.postgres import Server

_migrated: set[int] = set()


async def new_database(server: Server, *, migrated: bool = True) -> str:
    """The address of a fresh database; a `migrated` one has its tables already."""
    import asyncpg

    name = f"d{uuid4().hex[:12]}"
    connection = await asyncpg.connect(server.url())
    try:
        if migrated and id(server) not in _migrated:
            await connection.execute("CREATE DATABASE model")
            await (await PostgresStore.open(server.url("model"))).close()
            _migrated.add(id(server))
        copied = "TEMPLATE model" if migrated else ""
        await connection.execute(f"CREATE DATABASE {name} {copied} STRATEGY wal_log")
    finally:
        await connection.close()
    return server.url(name)
