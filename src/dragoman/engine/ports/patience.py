"""What a turn reads in a store that is away for a while: it waits, as what it writes does."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from ..faults import StoreFailed

T = TypeVar("T")
WAIT = 30.0  # seconds, as long as a change waits
_PAUSE = 0.2


async def patiently(read: Callable[[], Awaitable[T]]) -> T:
    """What is read, when the database is back. Raises StoreFailed, at once for all else."""
    until = monotonic() + WAIT
    while True:
        try:
            return await read()
        except StoreFailed as problem:
            if not problem.data.get("stalled") or monotonic() > until:
                raise
        await asyncio.sleep(_PAUSE)  # nobody tells us that it is back
