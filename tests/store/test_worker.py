"""Store threads: who is woken, with what, and what becomes of work nobody waits for."""

import asyncio
import sqlite3
import threading
from typing import Any

import pytest

from dragoman.engine.faults import Fault, StoreFailed
from dragoman.store.worker import Job, StoreReader, deliver, failed


def explain(error: Exception) -> Fault:
    return StoreFailed(f"told: {error}")


def reader() -> StoreReader:
    return StoreReader(sqlite3.connect(":memory:", check_same_thread=False), explain)


async def test_work_is_done_in_the_thread_and_answered_in_the_loop() -> None:
    one = reader()
    here = threading.current_thread().name
    name = await one.run(lambda connection: threading.current_thread().name)
    assert name != here and "reader" in name
    assert await one.run(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)
    await one.stop()
    await one.stop()  # once is enough
    with pytest.raises(Fault):
        await one.run(lambda connection: None)


async def test_what_breaks_is_explained_and_the_thread_goes_on() -> None:
    one = reader()
    with pytest.raises(StoreFailed, match="told"):
        await one.run(lambda connection: connection.execute("SELECT nothing"))

    def refuse(connection: Any) -> None:
        raise ValueError("no")

    with pytest.raises(StoreFailed, match="told: no"):
        await one.run(refuse)
    assert await one.run(lambda connection: 5) == 5
    await one.stop()


async def test_what_cannot_even_be_explained_is_told_as_it_is_and_the_thread_goes_on() -> None:
    def speechless(error: Exception) -> Fault:
        raise OSError("no words")

    def refuse(connection: Any) -> None:
        raise ValueError("no")

    one = StoreReader(sqlite3.connect(":memory:", check_same_thread=False), speechless)
    with pytest.raises(OSError, match="no words"):
        await one.run(refuse)
    assert await one.run(lambda connection: 5) == 5
    await one.stop()


async def test_one_who_was_cancelled_is_passed_over() -> None:
    loop = asyncio.get_running_loop()
    gone, there, wrong = (
        Job(lambda connection: None, loop, loop.create_future()) for _ in range(3)
    )
    gone.future.cancel()
    there.value = 7
    wrong.error = StoreFailed("full")
    deliver([gone, there, wrong])
    assert await there.future == 7
    with pytest.raises(StoreFailed):
        await wrong.future
    assert gone.future.cancelled()


def test_a_loop_that_is_closed_wakes_nobody() -> None:
    loop = asyncio.new_event_loop()
    job = Job(lambda connection: None, loop, loop.create_future())
    loop.close()
    deliver([job])
    assert not job.future.done()


async def test_what_was_refused_before_is_a_future_too() -> None:
    with pytest.raises(StoreFailed, match="closed"):
        await failed(StoreFailed("closed"))
