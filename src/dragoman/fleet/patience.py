"""Waiting on a machine that may be so busy that we do not run ourselves."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

SLICES = 8  # of a wait: one in which this process did not run counts no more than another
T = TypeVar("T")


async def within(
    seconds: float, work: Coroutine[Any, Any, T], unwanted: Callable[[T], object] | None = None
) -> T:
    """What comes of work. Raises TimeoutError when it took longer while this process ran.

    `unwanted` gets what came of it when nobody waits for that any more.
    """
    task = asyncio.ensure_future(work)
    try:
        for _ in range(SLICES):
            await asyncio.wait({task}, timeout=seconds / SLICES)
            if task.done():
                return task.result()
        raise TimeoutError
    except (TimeoutError, asyncio.CancelledError):
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if unwanted is not None and not task.cancelled() and task.exception() is None:
            unwanted(task.result())
        raise
