"""Blocking work in a thread that stops when its caller is cancelled."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
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


async def in_thread(
    work: Callable[[Halt], T],
    seconds: float | None = None,
    *,
    guard: Callable[[], None] | None = None,
) -> T:
    """Run blocking work in a thread; with `guard`, in one of its own that calls it first.

    A cancelled caller waits until the work has noticed, so that nothing goes on behind its back.
    """
    halt = Halt(seconds)
    if guard is None:
        future = asyncio.get_running_loop().run_in_executor(None, work, halt)
    else:
        future = _guarded(work, halt, guard)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        halt.set()
        await settled(future)
        raise


def _guarded(
    work: Callable[[Halt], T], halt: Halt, guard: Callable[[], None]
) -> "asyncio.Future[T]":
    """Work in a thread that ends with it: what a guard takes away is gone for good."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def end(value: T | None, failure: BaseException | None) -> None:
        if future.done():
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        try:
            guard()
            value = work(halt)
        except BaseException as error:
            loop.call_soon_threadsafe(end, None, error)
        else:
            loop.call_soon_threadsafe(end, value, None)

    threading.Thread(target=run, name="guarded", daemon=True).start()
    return future


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


@asynccontextmanager
async def started(
    work: Coroutine[Any, Any, asyncio.subprocess.Process],
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process, ended when it is left, also when the caller was cancelled while it started."""
    starting = asyncio.ensure_future(work)
    try:
        yield await asyncio.shield(starting)
    finally:
        await insist(_ended(starting))


async def _ended(starting: "asyncio.Future[asyncio.subprocess.Process]") -> None:
    await settled(starting)
    if starting.exception() is None and (process := starting.result()).returncode is None:
        process.kill()
        await process.communicate()
