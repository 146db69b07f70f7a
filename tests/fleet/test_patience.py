"""Work that is waited for no longer leaves nothing behind."""

import asyncio

import pytest

from dragoman.fleet.patience import within


async def test_what_comes_in_time_is_given() -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return "made"

    assert await within(30, work(), unwanted=pytest.fail) == "made"


async def test_a_failure_is_the_works_own() -> None:
    async def work() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await within(30, work(), unwanted=pytest.fail)


async def test_what_takes_too_long_is_cancelled() -> None:
    ended = asyncio.Event()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
            return "never"
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        await within(0.05, work(), unwanted=pytest.fail)
    assert ended.is_set()


async def test_what_comes_too_late_is_not_left_open() -> None:
    """A connection that was made just when its time was over."""
    dropped: list[str] = []

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "made"
        return "never"

    with pytest.raises(TimeoutError):
        await within(0.05, stubborn(), unwanted=dropped.append)
    assert dropped == ["made"]


@pytest.mark.parametrize("turns", range(1, 7))
async def test_whenever_the_one_who_waits_is_cancelled(turns: int) -> None:
    dropped: list[str] = []

    async def quick() -> str:
        for _ in range(2):
            await asyncio.sleep(0)
        return "made"

    waiting = asyncio.ensure_future(within(30, quick(), unwanted=dropped.append))
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    got = (await asyncio.gather(waiting, return_exceptions=True))[0]
    assert got == "made" or isinstance(got, asyncio.CancelledError)
    assert not (got == "made" and dropped)
