"""Threads that talk to the database, so that the event loop never waits for a disk."""

import asyncio
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.engine.faults import Fault
from dragoman.holding import Holder

from .rules import closed

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")


class Job(Holder):
    """Work for a store thread, and the future of whoever waits for it."""

    work: "Callable[[sqlite3.Connection], Any]"
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"
    value: Any = None
    error: Exception | None = None


def deliver(jobs: list[Job]) -> None:
    """Wake those who wait, with one call into each of their loops."""
    loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        loops.setdefault(job.loop, []).append(job)
    for loop, theirs in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, theirs)
        except RuntimeError:  # the loop was closed: nobody waits there any more
            continue


def _resolve(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():  # whoever waited was cancelled; the work is done all the same
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.value)


def failed(fault: Fault) -> "asyncio.Future[Any]":
    """A future for what was refused before any thread saw it."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_exception(fault)
    return future


class Worker(ABC):
    """A thread with a queue in front of its own database connection."""

    name = "store"

    def __init__(
        self, connection: "sqlite3.Connection", explain: "Callable[[Exception], Fault]"
    ) -> None:
        self._connection = connection
        self._explain = explain
        self._queue: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"dragoman-{self.name}", daemon=True)
        self._thread.start()

    def post(
        self, work: "Callable[[sqlite3.Connection], T]", *, patient: bool = False
    ) -> "asyncio.Future[T]":
        """Have `work` done in the thread. Cancelling the future does not take the work back."""
        if self._stopping:
            raise closed()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._send(Job(work, loop, future), patient)
        return future

    def _send(self, job: Job, patient: bool) -> None:
        self._queue.put([job])

    async def run(self, work: "Callable[[sqlite3.Connection], T]") -> T:
        """`post`, and wait for it."""
        return await self.post(work)

    async def stop(self) -> None:
        """Finish what is queued, then close the connection and the thread."""
        if not self._stopping:
            self._stopping = True
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[None] = loop.create_future()
            self._last = Job(lambda connection: None, loop, ended)
            self._queue.put(None)
            await ended
            self._thread.join()

    def _run(self) -> None:
        while self._serve():
            pass
        self._connection.close()
        deliver([self._last])

    def _told(self, error: Exception) -> Exception:
        """What whoever asked is told of an error; the thread goes on, whatever happens here."""
        try:
            return self._explain(error)
        except Exception as trouble:
            return trouble

    @abstractmethod
    def _serve(self) -> bool:
        """Do what waits in the queue; False at the end."""


class StoreReader(Worker):
    """Reads committed state on a connection of its own, so that no read waits for a write."""

    name = "reader"

    def _serve(self) -> bool:
        jobs = self._queue.get()
        if jobs is None:
            return False
        for job in jobs:
            try:
                job.value = job.work(self._connection)
            except Exception as error:  # goes to whoever asked
                # A cursor in its frames would keep this moment's view, for all who read later.
                clear_frames(error.__traceback__)
                job.error = self._told(error)
        deliver(jobs)
        return True
