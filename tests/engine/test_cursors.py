"""A place that a client is told, or has, is never ahead of what it was given."""

import asyncio
from functools import partial

from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.host import OpenSpec
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted


class Slow(MemoryStore):
    """Stores at once and answers when it is let: what is stored and not told yet."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    def post(self, batch, *, patient=False):
        stored = super().post(batch, patient=patient)
        if self.open.is_set():
            return stored
        told = asyncio.get_running_loop().create_future()

        async def later() -> None:
            await self.open.wait()
            told.set_result(await stored)

        self._later = asyncio.ensure_future(later())
        return told


def two_processes(store, *answers):
    """Two hosts on one store; the second takes over whatever the first lets go."""
    doors = []
    for name in ("one", "two"):
        door = memory_door(Scripted(list(answers)), store=store)
        host_of(door).owner = name
        host_of(door).is_alive = lambda owner: True
        doors.append(door)
    return doors


def _note(told, place, newest):
    told.append((place, newest))


async def reached(tape, gseq):
    """Wait until the tape has been given so much."""
    async with asyncio.timeout(60):
        while not any(event.gseq >= gseq for event in tape.events):
            tape.changed.clear()
            await tape.changed.wait()


async def test_a_session_watch_begins_at_what_was_told_not_at_what_is_on_its_way():
    store = Slow()
    door = memory_door(Scripted(["a"]), store=store)
    info = await door.open(OpenSpec(cwd="/"), ME)
    store.open.clear()
    naming = asyncio.ensure_future(door.rename(info.id, "new"))
    await asyncio.sleep(0)
    assert host_of(door).live[info.id].state.seq == 2
    tape, places = Tape(), []
    await door.watch(
        info.id, ME, tape, lambda said: None, begun=lambda *place: places.append(place)
    )
    assert places == [(1, 1)]
    store.open.set()
    await naming
    assert [event.seq for event in tape.events if event.seq] == [2]


async def test_a_watch_that_reads_the_past_begins_where_it_was_asked_to():
    door = memory_door(Scripted(["a"]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, (Text("x"),), ME)).done
    newest = host_of(door).live[info.id].state.seq
    for since, place in ((0, 0), (2, 2), (10_000, newest)):
        told: list[tuple[int, int]] = []
        tell = partial(_note, told)
        watch = await door.watch(info.id, ME, Tape(), lambda said: None, since=since, begun=tell)
        assert told == [(place, newest)]
        watch.close()


async def test_the_place_in_all_sessions_waits_for_what_is_stored_and_not_told():
    store = Slow()
    door = memory_door(Scripted(["a"]), store=store)
    info = await door.open(OpenSpec(cwd="/"), ME)
    first = Tape()
    await door.reached()
    door.watch_all(ME, first, lambda said: None)
    store.open.clear()
    naming = asyncio.ensure_future(door.rename(info.id, "new"))
    await asyncio.sleep(0)
    reached = asyncio.ensure_future(door.reached())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not reached.done()
    store.open.set()
    place = await reached
    assert [event.gseq for event in first.events if event.seq][-1] == place == 2
    await naming


async def test_a_watcher_of_all_sees_what_another_process_wrote_before_its_session_came_here():
    here, there = two_processes(MemoryStore(), "a", "b", "c")
    own = await here.open(OpenSpec(cwd="/"), ME)
    tape = Tape()
    await here.reached()
    here.watch_all(ME, tape, lambda said: None)
    theirs = await there.open(OpenSpec(cwd="/"), ME)
    await (await there.prompt(theirs.id, (Text("there"),), ME)).done
    await here.rename(own.id, "meanwhile")  # a higher place: a cursor must not jump over theirs
    await tape.until(ev.Renamed)
    await there.close(theirs.id)
    await (await here.prompt(theirs.id, (Text("here"),), ME)).done
    last = await here.reached()
    await reached(tape, last)
    gseqs = [event.gseq for event in tape.events if event.seq]
    assert gseqs == list(range(2, last + 1)), "every one, once, in order"


async def test_taking_a_session_over_is_enough_to_show_its_past():
    here, there = two_processes(MemoryStore(), "a")
    tape = Tape()
    await here.reached()
    here.watch_all(ME, tape, lambda said: None)
    theirs = await there.open(OpenSpec(cwd="/"), ME)
    await (await there.prompt(theirs.id, (Text("there"),), ME)).done
    await there.close(theirs.id)
    await here.load(theirs.id)
    await tape.until(ev.TurnEnded)
    assert [event.seq for event in tape.events if event.seq][0] == 1


async def test_a_new_watcher_of_all_is_not_told_the_past_of_other_processes():
    here, there = two_processes(MemoryStore(), "a", "b")
    own = await here.open(OpenSpec(cwd="/"), ME)
    theirs = await there.open(OpenSpec(cwd="/"), ME)
    await (await there.prompt(theirs.id, (Text("there"),), ME)).done
    tape = Tape()
    last = await here.reached()
    here.watch_all(ME, tape, lambda said: None)
    await here.rename(own.id, "now")
    await tape.until(ev.Renamed)
    assert [event.gseq for event in tape.events if event.seq] == [last + 1]


async def test_writers_side_by_side_leave_no_gap_and_no_double():
    here, there = two_processes(MemoryStore(), *"abcdefgh")
    own = await here.open(OpenSpec(cwd="/"), ME)
    theirs = await there.open(OpenSpec(cwd="/"), ME)
    tape = Tape()
    first = await here.reached()
    here.watch_all(ME, tape, lambda said: None)

    async def busy(door, session):
        for number in range(30):
            await door.rename(session, f"{number}")
            await asyncio.sleep(0)

    await asyncio.gather(busy(here, own.id), busy(there, theirs.id))
    last = await here.reached()
    await reached(tape, last)
    gseqs = [event.gseq for event in tape.events if event.seq]
    assert gseqs == list(range(first + 1, last + 1))
