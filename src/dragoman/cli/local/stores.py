"""`dragoman store copy`: everything from a file to a database, or back."""

import asyncio
from collections.abc import Callable

from dragoman.engine.faults import BadInput
from dragoman.store.copying import Copied, copy, open_any


def copied(source: str, target: str, told: Callable[[Copied], None]) -> Copied:
    if source == target:
        raise BadInput("Both are the same store.", "Give two different ones.")
    return asyncio.run(_copied(source, target, told))


async def _copied(source: str, target: str, told: Callable[[Copied], None]) -> Copied:
    old = await open_any(source)
    try:
        new = await open_any(target, new=True)
        try:
            return await copy(old, new, told)
        finally:
            await new.close()
    finally:
        await old.close()
