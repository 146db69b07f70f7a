from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.postgres import new_database

from dragoman.engine.ports import Store
from dragoman.store.memory import MemoryStore
from dragoman.store.postgres import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.postgres import Server


@pytest.fixture
async def database(postgres: Server) -> str:
    return await new_database(postgres)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store
    if request.param == "memory":
        made = MemoryStore()
    elif request.param == "sqlite":
        made = SqliteStore(tmp_path / "sessions.db")
    else:
        server = request.getfixturevalue("postgres")
        made = await PostgresStore.open(await new_database(server))
    yield made
    await made.close()
