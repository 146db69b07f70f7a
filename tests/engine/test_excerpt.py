"""One session's events by their places among all: the same as a filter over everything."""

import random

import pytest

from dragoman.engine.entries import Excerpt
from dragoman.engine.events import Event
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted


@pytest.mark.parametrize("seed", range(4))
async def test_any_place_and_any_page_size(seed: int) -> None:
    chance = random.Random(seed)
    door = memory_door(Scripted([]))
    ids = [(await door.open(OpenSpec(cwd="/"))).id for _ in range(3)]
    for number in range(60):
        await door.note(chance.choice(ids), "info", f"n{number}")
    everything = await door.read_all(0, 1_000)
    for session in ids:
        own = [event for event in everything if event.session == session]
        for _ in range(8):
            after, limit = chance.randrange(-1, len(everything) + 2), chance.choice([1, 3, 100])
            host = host_of(door)
            excerpt = Excerpt(host.store, host.read, session)
            read: list[Event] = []
            place = after
            while page := await excerpt.read(place, limit):
                read += page
                place = page[-1].gseq
            assert [e.gseq for e in read] == [e.gseq for e in own if e.gseq > after]


async def test_a_session_that_is_not_there_has_none() -> None:
    host = host_of(memory_door(Scripted([])))
    assert list(await Excerpt(host.store, host.read, "no").read(5, 10)) == []
