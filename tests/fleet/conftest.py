from collections.abc import AsyncIterator

import pytest
from tests.fleet.making import Fleet
from tests.postgres import new_database

from dragoman.testing.postgres import Server


@pytest.fixture
async def fleet(postgres: Server) -> AsyncIterator[Fleet]:
    made = Fleet(await new_database(postgres))
    yield made
    await made.close()
