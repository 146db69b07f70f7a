"""A client's seat: one watch, its own lent things, and a cancel that finds the prompt it means."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.door import Door
from dragoman.engine.faults import NothingRunning, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang


class Pipe:
    """A client's connection that may be stopped up."""

    def __init__(self) -> None:
        self.paused = False
        self.again: list[Callable[[], None]] = []

    def on_resume(self, callback: Callable[[], None]) -> None:
        self.again.append(callback)


async def opened(script: Scripted | None = None) -> tuple[Door, str]:
    door = memory_door(script or Scripted(["hello"], loop=True))
    return door, (await door.open(OpenSpec(cwd="/"), ME)).id


async def test_a_client_has_one_seat_at_each_session() -> None:
    door, sid = await opened()
    seats = door.seats(Pipe())
    assert (len(seats), seats.get(sid), seats.ids()) == (0, None, ())
    seat = seats.at(sid)
    assert seats.at(sid) is seat is seats.get(sid)
    assert (len(seats), seats.ids()) == (1, (sid,))
    seats.forget(sid)
    assert seat.gone and len(seats) == 0
    seats.close()
    assert seats.at(sid).gone  # nobody sits down any more


async def test_a_seat_that_follows_anew_is_told_everything_once() -> None:
    door, sid = await opened()
    seat = door.seat(sid, Pipe())
    first, second = Tape(), Tape()
    await seat.follow(ME, first, lambda said: None)
    await seat.follow(ME, second, lambda said: None)
    await (await seat.prompt((Text("hi"),), ME)).done
    assert first.of(ev.TurnBegan) == []
    assert len(second.of(ev.TurnBegan)) == 1
    assert seat.watches


async def test_a_seat_that_was_left_while_it_came_is_told_nothing() -> None:
    door, sid = await opened()
    seat = door.seat(sid, Pipe())
    seat.leave()
    tape = Tape()
    await seat.follow(ME, tape, lambda said: None)
    await (await door.prompt(sid, (Text("hi"),), ME)).done
    assert tape.of(ev.TurnBegan) == [] and not seat.watches


async def test_a_place_that_was_not_told_yet_is_waited_for() -> None:
    """A list may know of an event before the session's watchers do."""
    door, sid = await opened()
    session = host_of(door).live[sid]
    put = session.ledger.put(ev.Renamed("new", ME))
    since = session.state.seq
    assert since > session.ledger.seen
    tape = Tape()
    seat = door.seat(sid, Pipe())
    await seat.follow(ME, tape, lambda said: None, since=since)
    assert put.done() and tape.of(ev.Renamed) == []  # it was known before: not told again
    await session.ledger.put(ev.Renamed("newer", ME))
    assert [body.title for body in tape.of(ev.Renamed)] == ["newer"]


async def test_the_seat_of_a_closed_session_says_so() -> None:
    door, sid = await opened()
    seat = door.seat(sid, Pipe())
    seat.require()
    assert seat.view.id == sid
    await host_of(door).close(sid)
    with pytest.raises(UnknownSession):
        seat.require()
    with pytest.raises(UnknownSession):
        seat.view  # noqa: B018
    seat.bring({"A": "1"})  # nobody is there to take them
    seat.lend_if_free()
    assert seat.cancel() == "" and not seat.watches


class Things:
    """Files and terminals, as far as the engine looks at them here."""


async def test_what_a_client_lends_goes_with_it() -> None:
    door, sid = await opened()
    gear = host_of(door).live[sid].gear
    seats, others = door.seats(Pipe()), door.seats(Pipe())
    files: Any = Things()
    more: Any = Things()
    seats.at(sid).lend(files, None)
    assert gear.files is files
    other = others.at(sid)
    other.lent = (more, more)
    other.lend_if_free()  # somebody lends files already
    assert gear.files is files and gear.terminals is None
    seats.close()
    assert gear.files is None
    other.lend_if_free()
    assert gear.files is more and gear.terminals is more
    other.lend(None, None)
    assert gear.files is None and gear.terminals is None
    seats.at(sid).bring({"A": "1"})
    assert gear.variables == {"A": "1"}


async def test_a_client_that_reads_again_goes_on_at_all_its_seats() -> None:
    door, one = await opened()
    two = (await door.open(OpenSpec(cwd="/"), ME)).id
    pipe = Pipe()
    seats = door.seats(pipe)
    tapes = {one: Tape(), two: Tape()}
    for sid, tape in tapes.items():
        await seats.at(sid).follow(ME, tape, lambda said: None)
    seats.at("nowhere")  # a seat without a watch is passed over
    pipe.paused = True
    for sid in tapes:
        await (await door.prompt(sid, (Text("hi"),), ME)).done
    assert all(tape.of(ev.TurnEnded) == [] for tape in tapes.values())
    assert len(pipe.again) == 1  # asked once, for all seats
    pipe.paused = False
    pipe.again[0]()
    for tape in tapes.values():
        await tape.until(ev.TurnEnded)


async def test_a_cancel_meant_for_a_prompt_on_its_way_stops_that_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door, sid = await opened(Scripted([hang()]))
    host, seat = host_of(door), door.seat(sid, Pipe())
    assert seat.cancel() == ""  # nothing runs and nothing comes
    get, gate = host.get, asyncio.Event()

    async def slow(session_id: str) -> Any:
        await gate.wait()
        return await get(session_id)

    monkeypatch.setattr(host, "get", slow)
    coming = asyncio.ensure_future(seat.prompt((Text("hi"),), ME))
    await asyncio.sleep(0)
    assert seat.cancel("gone") == ""  # it is not in the inbox yet
    gate.set()
    done = await (await coming).done
    assert (done.outcome, done.cause) == ("cancelled", "gone")


async def test_the_door_says_what_it_cannot_find() -> None:
    door, sid = await opened()
    await host_of(door).close(sid)
    with pytest.raises(UnknownSession):
        door.cancel(sid)
    with pytest.raises(NothingRunning):
        door.retract(sid, "key")
    await door.kept(sid)  # nothing is on its way: at once
    await door.idle(sid)
    await door.begun(sid)
    assert door.present(sid) == ()
    await asyncio.wait_for(door.idle(sid), 60)
