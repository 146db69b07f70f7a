from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.engine.ports import Store
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "sessions.db")
    yield made
    await made.close()
