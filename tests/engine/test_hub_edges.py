"""Watchers of a hub at awkward moments."""

import asyncio
from typing import Any

from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Event, Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.hub import Hub, Parts, Personal
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call


def kept(place):
    return Event("s", 0, ev.Renamed(str(place)), place, place)


async def test_what_a_replay_of_the_whole_host_gave_is_not_told_again_to_a_slow_reader():
    stored = [kept(1), kept(2)]

    async def read(after, limit):
        return [event for event in stored if event.gseq > after]

    tape, tasks, paused = Tape(), [], [False]
    hub = Hub("", read, lambda work: tasks.append(asyncio.ensure_future(work)), by_gseq=True)
    watch = hub.watch(ME, tape, lambda said: None, lambda: paused[0], since=0)
    await asyncio.gather(*tasks)
    paused[0] = True
    hub.emit_kept(stored[1:])  # was stored, and read, before it was told
    hub.emit_kept([kept(3)])
    paused[0] = False
    watch.resume()
    hub.emit_kept([kept(4)])
    assert [event.gseq for event in tape.events] == [1, 2, 3, 4]


async def test_an_answer_counts_though_the_client_that_gave_it_has_left():
    tool = EchoTool()
    door = memory_door(Scripted([call("echo", text="x"), "fine"]), [tool])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    work = await door.prompt(sid, (Text("go"),), ME)
    asked = await tape.until(ev.Asked)
    store, came, go = host_of(door).store, asyncio.Event(), asyncio.Event()
    append = store.append

    async def wait(batch):
        came.set()
        await go.wait()
        return await append(batch)

    post = store.post
    store.post = lambda batch, **how: asyncio.ensure_future(wait(batch))
    answering = asyncio.ensure_future(door.answer(asked.body.ask.id, "allow", Who("it")))
    await came.wait()
    answering.cancel()
    await asyncio.wait({answering})
    store.post = post
    go.set()
    async with asyncio.timeout(60):
        assert (await work.done).text == "fine"
    assert tool.ran


async def test_text_is_not_lost_to_a_fact_that_a_replay_gave_in_the_middle_of_it():
    stored = [kept(1), kept(2)]
    go = asyncio.Event()

    async def read(after, limit):
        await go.wait()
        return [event for event in stored if event.gseq > after]

    tape, tasks = Tape(), []
    hub = Hub("s", read, lambda work: tasks.append(asyncio.ensure_future(work)))
    hub.last = 1
    hub.watch(ME, tape, lambda said: None, since=0)
    await asyncio.sleep(0)
    hub.stream("s", ev.TextDelta, "t", "one ", 0)
    hub.emit(Event("s", 0, ev.Deleted()))
    hub.emit_kept(stored[1:])
    hub.stream("s", ev.TextDelta, "t", "two", 0)
    go.set()
    await asyncio.gather(*tasks)
    assert [event.seq for event in tape.events if event.seq] == [1, 2]
    assert tape.text() == "one two" and tape.of(ev.Deleted)


class Differently(Personal):
    """Each client is given its own name, `nobody` nothing."""

    def for_client(self, who_id):
        return None if who_id == "nobody" else who_id


class Shaped:
    """Says what the test wants said, and counts how often."""

    def __init__(self, said):
        self.said = said
        self.times = 0
        self.events = []

    def speak(self, events):
        self.times += 1
        self.events += events
        return self.said


async def test_watchers_of_one_shape_are_each_given_what_is_theirs():
    async def read(after, limit):
        return []

    hub = Hub("s", read, asyncio.ensure_future)
    got = []
    plain, personal = Shaped("word"), Shaped(Parts(["a", Differently(), None]))
    for name in ("one", "nobody"):
        for shape in (plain, personal):

            def hear(said: Any, name: str = name) -> None:
                got.append((name, said))

            watch = hub.watch(Who("t", id=name), shape, hear)
    broken = hub.watch(Who("t", id="broken"), plain, lambda said: [][0])
    hub.emit_kept([kept(7)])
    assert got == [
        ("one", "word"), ("one", "a"), ("one", "one"), ("nobody", "word"), ("nobody", "a"),
    ]  # fmt: skip
    assert (plain.times, personal.times) == (1, 1)
    assert broken.closed and broken not in hub.watches and watch.cursor == 7


async def test_the_beginning_of_a_step_is_told_within_a_beat_with_what_follows():
    async def read(after, limit):
        return []

    hub = Hub("s", read, asyncio.ensure_future)
    tape, got = Shaped(True), asyncio.Event()
    hub.watch(ME, tape, lambda said: got.set())
    hub.emit(Event("s", 0, ev.StepBegan("t", 1)))
    hub.emit(Event("s", 0, ev.StreamOpened("t", 1)))
    assert not tape.events
    hub.stream("s", ev.TextDelta, "t", "at once", 1)
    kinds = [type(event.body) for event in tape.events]
    assert kinds == [ev.StepBegan, ev.StreamOpened, ev.TextDelta]
    hub.emit(Event("s", 0, ev.StepBegan("t", 2)))
    got.clear()
    async with asyncio.timeout(60):
        await got.wait()
    assert tape.events[-1].body == ev.StepBegan("t", 2)


async def test_a_replay_reads_few_large_events_at_once_and_many_small_ones():
    large, small = "x" * 500_000, "x"
    content = [large] * 40 + [small] * 2_000 + [large] * 300
    stored = [
        Event("s", 0, ev.TurnBegan("t", (Text(text),)), place, place)
        for place, text in enumerate(content, 1)
    ]
    pages: list[int] = []

    async def read(after, limit):
        pages.append(sum(len(content[e.gseq - 1]) for e in stored[after : after + limit]))
        return stored[after : after + limit]

    tape, tasks = Tape(), []
    hub = Hub("", read, lambda work: tasks.append(asyncio.ensure_future(work)), by_gseq=True)
    hub.watch(ME, tape, lambda said: None, since=0)
    await asyncio.gather(*tasks)
    assert [event.gseq for event in tape.events] == [event.gseq for event in stored]
    assert pages[0] == 16 * 500_000 and max(pages) <= 256 * 500_000
    assert sorted(pages)[-3] <= 16 * 500_000, "only what came unawares is larger"
    assert len(pages) < 120


async def test_what_a_client_that_does_not_read_holds_is_bounded_by_its_bytes():
    stored = [
        Event("s", 0, ev.TurnBegan("t", (Text("x" * 500_000),)), place, place)
        for place in range(1, 101)
    ]

    async def read(after, limit):
        return stored[after : after + limit]

    tape, tasks, paused = Tape(), [], [True]
    hub = Hub("s", read, lambda work: tasks.append(asyncio.ensure_future(work)))
    watch = hub.watch(ME, tape, lambda said: None, lambda: paused[0])
    for event in stored:
        hub.emit_kept([event])
        assert len(watch.held or ()) < 10
    paused[0] = False
    watch.resume()
    await asyncio.gather(*tasks)
    assert [event.seq for event in tape.events] == list(range(1, 101))
