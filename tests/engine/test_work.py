"""A piece of work tells its end exactly once, however it comes."""

import asyncio

import pytest

from dragoman.engine.work import Finished, Work

END = Finished("t", "completed", "end_turn")


async def test_it_is_kept_begun_and_done_once() -> None:
    work, told = Work("prompt", "t"), []
    work.done.add_done_callback(lambda _: told.append(work.turn))
    work.timer = asyncio.get_running_loop().call_later(60, lambda: None)
    work.keep()
    work.begin()
    assert work.timer is None and await work.kept == await work.started == "t"
    work.finish(END)
    work.finish(Finished("t", "failed", "error"))
    work.fail(ValueError("too late"))
    assert await work.done is END
    await asyncio.sleep(0)
    assert told == ["t"]


async def test_what_fails_before_it_began_fails_for_all_who_wait() -> None:
    work = Work("prompt", "t")
    work.timer = asyncio.get_running_loop().call_later(60, lambda: None)
    work.fail(ValueError("no"))
    assert work.timer is None
    for future in (work.kept, work.started, work.done):
        with pytest.raises(ValueError, match="no"):
            await future
    work.begin()
    work.finish(END)
    with pytest.raises(ValueError):
        await work.done
