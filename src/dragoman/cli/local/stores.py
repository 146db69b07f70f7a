"""`dragoman store copy`: everything from a file to a database, or back."""

import asyncio
from collections.abc import Callable

from dragoman.engine.faults import BadInput
from dragoman.host.stores import named
from dragoman.host.tokens import read_settings
from dragoman.store.copying import Copied, copy, open_any
from dragoman.store.postgres import PostgresStore


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
