"""`dragoman store copy`: everything from a file to a database, or back.

And `dragoman fleet`: what the shared database knows of its nodes, asked straight.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dragoman.engine.faults import BadInput
from dragoman.fleet.desk import Desk
from dragoman.host.stores import database_of, named
from dragoman.host.tokens import read_settings
from dragoman.store.copying import Copied, copy, open_any
from dragoman.store.postgres import PostgresStore

T = TypeVar("T")


def copied(
    source: str, target: str, told: Callable[[Copied], None], config_dir: str | None = None
) -> Copied:
    if source == target:
        raise BadInput("Both are the same store.", "Give two different ones.")
    return asyncio.run(_copied(source, target, told, config_dir))


async def _copied(
    source: str, target: str, told: Callable[[Copied], None], config_dir: str | None
) -> Copied:
    old = await open_any(source)
    try:
        new = await open_any(target, new=True)
        try:
            if isinstance(new, PostgresStore) and not isinstance(old, PostgresStore):
                _, settings = read_settings(config_dir)
                if settings.fleet.database == target:  # their folders are on this machine
                    new.node = named(settings.fleet)
            return await copy(old, new, told)
        finally:
            await new.close()
    finally:
        await old.close()


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
