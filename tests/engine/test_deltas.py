"""One timer for all that gather; one that breaks does not stop the others."""

import asyncio
from typing import Any

from dragoman.engine.deltas import FLUSH_SECONDS, Beat, beat_of


class Gatherer:
    beating = False
    flushed = 0.0

    def __init__(self, beats: int, broken: bool = False) -> None:
        self.left, self.broken, self.done = beats, broken, asyncio.Event()

    def flush(self) -> bool:
        if self.broken:
            self.done.set()
            raise ValueError("broken")
        self.left -= 1
        if not self.left:
            self.done.set()
        return self.left > 0


async def test_each_is_called_until_it_wants_no_more() -> None:
    loop = asyncio.get_running_loop()
    beat = beat_of(loop)
    assert beat_of(loop) is beat
    complaints: list[Any] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context["exception"]))
    many = [Gatherer(n) for n in (1, 2, 5)] + [Gatherer(1) for _ in range(20)]
    broken = Gatherer(1, broken=True)
    for one in (*many, broken):
        beat.add(one)
        assert one.beating
    async with asyncio.timeout(60):
        await asyncio.gather(*(one.done.wait() for one in (*many, broken)))
    assert not any(one.beating for one in (*many, broken))
    assert [str(one) for one in complaints] == ["broken"]


def test_another_loop_has_a_beat_of_its_own() -> None:
    async def mine() -> Beat:
        return beat_of(asyncio.get_running_loop())

    assert asyncio.run(mine()) is not asyncio.run(mine())


async def test_who_speaks_more_slowly_than_the_beat_is_never_woken_by_it() -> None:
    beat = Beat(asyncio.get_running_loop())
    one = Gatherer(1)
    one.flushed = beat.loop.time() - FLUSH_SECONDS
    assert beat.is_free(one)
    assert beat._timer is None
    assert one.flushed > beat.loop.time() - FLUSH_SECONDS
    one.flushed = beat.loop.time() + 60  # it has handed something on just now
    assert not beat.is_free(one)
    one.flushed = 0
    beat.add(one)
    async with asyncio.timeout(60):
        await one.done.wait()
    assert beat._timer is None
