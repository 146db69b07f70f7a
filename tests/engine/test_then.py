"""What is to come after the events does not overtake those that are held back."""

import asyncio

import pytest

from dragoman.engine import events as ev
from dragoman.engine.events import Event, Who
from dragoman.engine.hub import HOLD_BYTES, Hub


class Words:
    def speak(self, events):
        return [getattr(event.body, "text", type(event.body).__name__) for event in events]


def hub_of(store):
    async def read(after, limit):
        return [event for event in store if event.seq > after][:limit]

    return Hub("s", read, asyncio.ensure_future)


async def test_at_once_when_nothing_is_held():
    hub = hub_of([])
    watch = hub.watch(Who("test"), Words(), lambda said: None)
    done = []
    watch.then(lambda: done.append(1))
    assert done == [1]


async def test_after_what_was_held():
    said, paused = [], [True]
    hub = hub_of([])
    watch = hub.watch(Who("test"), Words(), said.append, lambda: paused[0])
    hub.stream("s", ev.TextDelta, "t", "a", 0)
    watch.then(lambda: said.append("end"))
    assert said == []
    paused[0] = False
    watch.resume()
    assert said == [["a"], "end"]


async def test_after_what_is_read_again():
    kept = Event("s", 0, ev.Noted("info", "kept"), 1, 1)
    said, paused = [], [True]
    hub = hub_of([kept])
    watch = hub.watch(Who("test"), Words(), said.append, lambda: paused[0])
    hub.emit_kept([kept])
    for _ in range(3):
        hub.stream("s", ev.TextDelta, "t", "x" * HOLD_BYTES, 0)
        hub.flush()
    ended = asyncio.Event()
    watch.then(lambda: (said.append("end"), ended.set()))
    paused[0] = False
    watch.resume()
    await asyncio.wait_for(ended.wait(), 60)
    assert said[0] == ["Lagged"] and said[-1] == "end" and len(said) >= 3


async def test_a_closed_watch_holds_nothing_back():
    done = []
    hub = hub_of([])
    watch = hub.watch(Who("test"), Words(), lambda said: None, lambda: True)
    hub.stream("s", ev.TextDelta, "t", "a", 0)
    watch.then(lambda: done.append(1))
    watch.close()
    assert done == [1]


@pytest.mark.parametrize("paused", [False, True])
async def test_one_that_breaks_hurts_nobody_else(paused):
    said, waits, told = [], [paused], []
    hub = Hub("s", None, asyncio.ensure_future, trouble=lambda what, e, **_: told.append(e))
    watch = hub.watch(Who("test"), Words(), said.append, lambda: waits[0])
    other = hub.watch(Who("test"), Words(), said.append)
    hub.stream("s", ev.TextDelta, "t", "a", 0)
    hub.flush()

    def broken():
        raise KeyError("broken")

    watch.then(broken)
    watch.then(lambda: said.append("end"))
    waits[0] = False
    watch.resume()
    hub.stream("s", ev.TextDelta, "t", "b", 0)
    hub.flush()
    watch.close()
    assert [str(error) for error in told] == ["'broken'"] and "end" in said
    assert said.count(["a"]) == said.count(["b"]) == 2 and not other.closed
