"""`dragoman fleet`: what the shared database knows of its nodes, asked straight."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dragoman.engine.faults import BadInput
from dragoman.fleet.desk import Desk
from dragoman.host.stores import database_of
from dragoman.host.tokens import read_settings
from dragoman.store.postgres import PostgresStore

T = TypeVar("T")


def with_desk(config_dir: str | None, work: Callable[[Desk], Awaitable[T]]) -> T:
    """What the desk of the shared database gives. Raises BadInput where there is none."""
    _, settings = read_settings(config_dir)
    address = database_of(settings)
    if not address:
        raise BadInput(
            "This daemon is no node of a fleet.",
            "Name the database that the nodes share: [fleet] database.",
        )

    async def run() -> T:
        store = await PostgresStore.open(address)
        try:
            return await work(Desk(store, ""))
        finally:
            await store.close()

    return asyncio.run(run())
