"""One daemon per test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cross.house import House


@pytest.fixture
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    # The names of tests are long, and a socket's path may not be.
    folder: Path = tmp_path_factory.mktemp("h")
    made = House(folder)
    await made.start()
    yield made
    await made.close()
