"""Facts on their way to the store: who is woken, and who is told that they never came there."""

import asyncio

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import ending
from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.ending import found
from dragoman.engine.faults import StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.engine.ledger import Commit
from dragoman.engine.state import State
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang, say, turn


async def commit() -> tuple[Commit, "asyncio.Future[None]"]:
    loop = asyncio.get_running_loop()
    done, other = loop.create_future(), loop.create_future()
    return Commit([], State("s"), done, others=[other]), other


async def test_those_who_only_wait_are_woken_whatever_came_of_it() -> None:
    for error in (None, StoreFailed("full"), asyncio.CancelledError()):
        one, other = await commit()
        assert one.end(error)
        assert other.result() is None
        if error is None:
            assert one.done.result() is None
        elif isinstance(error, StoreFailed):
            assert one.done.exception() is error
        else:
            assert one.done.cancelled()


async def test_an_error_that_nobody_waits_for_is_not_lost() -> None:
    one, other = await commit()
    one.done.cancel()
    other.set_result(None)  # it left, too
    assert one.end(StoreFailed("full")) is False
    assert one.end(None) is True


async def test_an_append_that_nobody_heard_of_is_reported() -> None:
    door = memory_door(Scripted([]))
    host = host_of(door)
    troubles: list[str] = []
    host.on_trouble = lambda what, error, **data: troubles.append(f"{what}: {error}")
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    ledger = host.live[sid].ledger
    loop = asyncio.get_running_loop()
    failed, cancelled, fine = (loop.create_future() for _ in range(3))
    failed.set_exception(StoreFailed("full"))
    cancelled.cancel()
    fine.set_result(None)
    for future in (failed, cancelled, fine):
        ledger.unheard(future)
    assert troubles == ["append failed: full"]


async def test_a_draft_that_cannot_be_noted_stops_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "NOTE_SECONDS", 0.005)
    store = MemoryStore()
    door = memory_door(Scripted([turn(say("some words"), hang())]), store=store)
    host = host_of(door)
    told = asyncio.Event()
    troubles: list[str] = []

    def trouble(what: str, error: BaseException, **data: object) -> None:
        troubles.append(what)
        told.set()

    async def full(space: str, key: str, value: bytes | None) -> None:
        raise StoreFailed("The disk is full.")

    host.on_trouble = trouble
    store.put = full
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    work = await door.prompt(sid, (Text("go"),), ME)
    await asyncio.wait_for(told.wait(), 60)
    assert set(troubles) == {"a draft was not noted"}
    door.cancel(sid)
    done = await work.done
    assert (done.outcome, done.text) == ("cancelled", "some words")


async def test_a_note_of_another_version_is_left_alone() -> None:
    store = MemoryStore()
    state = State("s")
    state.turn = "trn_1"
    assert await found(store, state) == ()
    await store.put(ending.DRAFTS, "s", b'{"unheard": "of"}')
    assert await found(store, state) == ()


async def test_what_a_turn_streams_after_its_end_is_told_to_nobody() -> None:
    from dragoman.engine.ports import TurnPort, TurnResult

    kept: list[TurnPort] = []

    class Late:
        async def run(self, turn: TurnPort) -> TurnResult:
            kept.append(turn)
            turn.step_began(1)
            turn.thought("")  # nothing
            turn.call_args("c", "")
            turn.text("in time")
            return TurnResult()

        async def compact(self, turn: TurnPort) -> str:
            raise NotImplementedError

    door = memory_door(Scripted([]))
    host_of(door).agents.backend = lambda profile: Late()
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    await (await door.prompt(sid, (Text("go"),), ME)).done
    (turn,) = kept
    assert not turn.cancelled
    turn.text("late")
    turn.thought("late")
    turn.call_args("c", "late")
    turn.uncompacted("")  # nothing was being made short
    await asyncio.sleep(0)
    assert tape.text() == "in time"
    assert tape.of(ev.ThoughtDelta) == tape.of(ev.CallArgs) == tape.of(ev.Compacting) == []
