"""Blocking work in a thread that stops when its caller is cancelled."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Halted(Exception):
    """The work was told to stop."""


class Halt:
    """Tells a thread to stop; it looks now and then."""

    __slots__ = ("_event", "deadline")

    def __init__(self, seconds: float | None = None) -> None:
        self._event = threading.Event()
        self.deadline = None if seconds is None else time.monotonic() + seconds

    def set(self) -> None:
        self._event.set()

    def check(self) -> None:
        """Raise Halted when the caller is gone."""
        if self._event.is_set():
            raise Halted

    @property
    def late(self) -> bool:
        """Whether the time for this work is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline


async def in_thread(work: Callable[[Halt], T], seconds: float | None = None) -> T:
    """Run blocking work in a thread.

    A cancelled caller waits until the work has noticed, so that nothing goes on behind its back.
    """
    halt = Halt(seconds)
    future = asyncio.get_running_loop().run_in_executor(None, work, halt)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        halt.set()
        await settled(future)
        raise


async def insist(work: Coroutine[Any, Any, T]) -> T:
    """Run something that must not be left half done: a cancelled caller waits for its end."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await settled(task)
        raise


async def settled(future: "asyncio.Future[T]") -> None:
    """Wait for a future whatever happens to us; its failure is taken note of, not raised."""
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError:
            continue  # the first cancellation is re-raised by the caller
    if not future.cancelled():
        future.exception()
