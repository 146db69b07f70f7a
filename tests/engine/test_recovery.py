"""What a session is after its process died: nothing is lost, nothing runs twice."""

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine import recovery
from dragoman.engine.content import Text, text_of
from dragoman.engine.events import Who
from dragoman.engine.faults import (
    Busy,
    GoesOn,
    InUse,
    StoreFailed,
    UnknownSession,
    WrongState,
)
from dragoman.engine.host import OpenSpec
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, turn


@pytest.fixture
async def reopen(tmp_path):
    """Doors on one database file, each as if its process had been killed before."""
    stores = []

    async def make(script, tools=(), **profile):
        for store in stores:
            await store.close()
        stores.clear()
        store, notices = open_store(tmp_path / "sessions.db")
        assert not notices
        stores.append(store)
        door = memory_door(script, tools, store=store, **profile)
        host_of(door).owner = f"life-{id(door)}"
        return door

    yield make
    for store in stores:
        await store.close()


async def begin(door, **spec):
    info = await door.open(OpenSpec(cwd="/", **spec), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None)
    return info.id, tape


async def kill(door):
    """Stop everything without writing another fact."""
    for session in host_of(door).live.values():
        session.park()
    for task in tuple(host_of(door)._tasks):
        task.cancel()


async def test_history_survives(reopen):
    door = await reopen(Scripted(["hello"]))
    sid, _ = await begin(door)
    await (await door.prompt(sid, (Text("hi"),), ME)).done
    live = host_of(door).live[sid].state
    door = await reopen(Scripted(["again"]))
    await door.load(sid)
    state = host_of(door).live[sid].state
    assert {k: getattr(state, k) for k in live.__struct_fields__ if k[0] != "_"} == {
        k: getattr(live, k) for k in live.__struct_fields__ if k[0] != "_"
    }
    assert (await (await door.prompt(sid, (Text("x"),), ME)).done).text == "again"


async def test_a_turn_that_was_cut_off_is_interrupted_with_a_reason_and_can_go_on(reopen):
    door = await reopen(Scripted([hang()]))
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("hi"),), ME)
    await tape.until(ev.StreamOpened)
    await kill(door)
    door = await reopen(Scripted(["fine"]))
    assert await host_of(door).recover() == 1
    info = await door.info(sid)
    assert (info.status, info.error) == (
        "interrupted",
        "The host stopped while a turn ran.",
    )
    assert (await (await door.prompt(sid, (Text("go on"),), ME)).done).text == "fine"


async def test_a_waiting_approval_still_decides_and_the_turn_goes_on(reopen):
    door = await reopen(Scripted([call("echo", text="x")]), [EchoTool()])
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("hi"),), ME)
    ask = (await tape.until(ev.Asked)).body.ask
    await kill(door)
    tool = EchoTool()
    door = await reopen(Scripted(["all done"]), [tool])
    await host_of(door).recover()
    assert (await door.info(sid)).status == "waiting_input"
    assert [row.ask.id for row in await door.asks()] == [ask.id]
    tape = Tape()
    await door.watch(sid, ME, tape, lambda said: None)
    await door.answer(ask.id, "allow", Who("humanlayer", id="h"))
    ended = (await tape.until(ev.TurnEnded)).body
    assert (ended.outcome, ended.text) == ("completed", "all done")
    assert tool.ran == [{"text": "x"}]


async def test_a_call_that_was_running_is_unknown_and_not_repeated(reopen):
    class Hanging(EchoTool):
        async def run(self, args, env):
            import asyncio

            env.progress("started")
            await asyncio.Event().wait()

    door = await reopen(Scripted([turn(call("echo", text="x"))]), [Hanging()], mode="full")
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("hi"),), ME)
    await tape.until(ev.Progress)
    await kill(door)
    tool = EchoTool()
    door = await reopen(Scripted(["ok"]), [tool], mode="full")
    await host_of(door).recover()
    events = [e.body for e in await door.history(sid)]
    (ended,) = [b for b in events if isinstance(b, ev.CallEnded)]
    assert ended.outcome == "unknown" and "may or may not" in ended.content[0].text
    await (await door.prompt(sid, (Text("go on"),), ME)).done
    assert tool.ran == []


async def test_a_clean_stop_keeps_open_questions(reopen):
    door = await reopen(Scripted([call("echo", text="x")]), [EchoTool()])
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("hi"),), ME)
    ask = (await tape.until(ev.Asked)).body.ask
    await host_of(door).stop(1.0)
    door = await reopen(Scripted(["end"]), [EchoTool()])
    await host_of(door).recover()
    assert [row.ask.id for row in await door.asks()] == [ask.id]


async def asking_at_its_end(reopen, *then):
    """A session whose process died while a question was open."""
    door = await reopen(Scripted([call("echo", text="x")]), [EchoTool()])
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("hi"),), ME)
    await tape.until(ev.Asked)
    await kill(door)
    door = await reopen(Scripted(list(then)), [EchoTool()])
    await host_of(door).recover()
    return door, sid


async def test_a_question_from_before_the_restart_is_protected(reopen):
    door, sid = await asking_at_its_end(reopen, "answered", "new")
    with pytest.raises(Busy):
        await door.prompt(sid, (Text("refused"),), ME, when_busy="refuse")
    waits = await door.prompt(sid, (Text("and then"),), ME)
    assert not waits.started.done()
    (row,) = await door.asks()
    await door.answer(row.ask.id, "allow", ME)
    assert (await waits.done).text == "new"
    said = [text_of(m.content) for m in await door.messages(sid) if m.role == "user"]
    assert said == ["hi", "and then"]


async def test_what_waits_behind_it_begins_when_it_is_cancelled_or_interrupted(reopen):
    for way in ("cancel", "interrupt"):
        door, sid = await asking_at_its_end(reopen, "new")
        waits = await door.prompt(sid, (Text("and then"),), ME)
        if way == "cancel":
            door.cancel(sid)
        else:
            await door.interrupt(sid, ME)
        assert (await waits.done).text == "new"


async def queued(door, sid, *texts):
    return [await door.prompt(sid, (Text(text),), ME, keep=True, key=text) for text in texts]


def heard(door, sid):
    return [text_of(m.content) for m in host_of(door).live[sid].state.messages if m.role == "user"]


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_what_was_acknowledged_runs_in_order_after_the_restart(reopen, end):
    door = await reopen(Scripted([call("echo", text="x")]), [EchoTool()])
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("hi"),), ME)
    await tape.until(ev.Asked)
    works = await queued(door, sid, "one", "two", "three")
    assert not any(work.started.done() for work in works)
    await door.steer(sid, (Text("and mind the gap"),), ME)
    if end == "kill":
        await kill(door)
    else:
        await host_of(door).stop()
        with pytest.raises(GoesOn, match="kept and runs"):
            await works[0].done
    door = await reopen(Scripted(["ok"] * 5), [EchoTool()])
    await host_of(door).recover()
    assert list(host_of(door).live[sid].state.queued)[:3] == [work.turn for work in works]
    with pytest.raises(WrongState):  # the same key again is no second prompt
        await queued(door, sid, "two")
    (row,) = await door.asks()
    await door.answer(row.ask.id, "allow", ME)
    await door.idle(sid)
    assert heard(door, sid) == ["hi", "and mind the gap", "one", "two", "three"]
    assert not host_of(door).live[sid].state.queued


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_what_waits_behind_a_running_turn_runs_after_the_restart(reopen, end):
    door = await reopen(Scripted([turn(hang())]))
    sid, tape = await begin(door)
    await (await door.prompt(sid, (Text("hi"),), ME)).started
    await queued(door, sid, "one", "two")
    await door.steer(sid, (Text("hurry"),), ME)
    await (kill(door) if end == "kill" else host_of(door).stop())
    door = await reopen(Scripted(["ok"] * 3))
    assert await host_of(door).recover() == 1
    await door.idle(sid)
    assert heard(door, sid) == ["hi", "hurry", "one", "two"]
    assert (await door.info(sid)).status == "idle"


async def test_what_was_not_acknowledged_does_not_come_back(reopen):
    door = await reopen(Scripted([turn(hang())]))
    sid, tape = await begin(door)
    await (await door.prompt(sid, (Text("hi"),), ME)).started
    await door.prompt(sid, (Text("unheard of"),), ME)
    await kill(door)
    door = await reopen(Scripted([]))
    await host_of(door).recover()
    await door.idle(sid)
    assert heard(door, sid) == ["hi"]


async def test_what_cannot_run_any_more_is_told(reopen):
    door = await reopen(Scripted([turn(hang())]))
    sid, tape = await begin(door)
    await (await door.prompt(sid, (Text("hi"),), ME)).started
    one, two = await queued(door, sid, "one", "two")
    assert door.retract(sid, "one") == one.turn
    await tape.until(ev.Dropped, lambda e: e.body.id == one.turn)
    assert (await one.done).outcome == "cancelled"
    await door.close(sid)
    with pytest.raises(Busy, match="closed"):
        await two.done
    assert [body.id for body in tape.of(ev.Dropped)] == [one.turn, two.turn]
    await door.load(sid)
    assert not host_of(door).live[sid].state.queued and heard(door, sid) == ["hi"]


async def test_a_session_of_a_live_process_is_not_taken(reopen):
    door = await reopen(Scripted(["a"]))
    sid, _ = await begin(door)
    other = memory_door(Scripted(["b"]), store=host_of(door).store)
    host_of(other).owner = "other"
    host_of(other).is_alive = lambda owner: True
    with pytest.raises(InUse):
        await other.load(sid)
    with pytest.raises(UnknownSession):
        await other.load("nope")
    host_of(other).is_alive = lambda owner: False
    await other.load(sid)
    # The first owner lost it: its writes are refused and it forgets the session.
    with pytest.raises(Exception, match=".") as caught:
        await door.rename(sid, "mine")
    assert caught.value.code == "stale_epoch"  # type: ignore[attr-defined]
    assert door.live(sid) is None


async def test_a_session_that_could_not_be_taken_over_is_taken_over_by_whoever_asks_next(
    reopen, monkeypatch
):
    door = await reopen(Scripted([turn(hang())]))
    sid, _ = await begin(door)
    await (await door.prompt(sid, (Text("hi"),), ME)).started
    await queued(door, sid, "one", "two")
    await kill(door)
    door = await reopen(Scripted(["ok"] * 2))
    host = host_of(door)
    whole = recovery.found

    async def breaks(store, state):
        monkeypatch.setattr(recovery, "found", whole)
        raise StoreFailed("The disk has gone away.")

    monkeypatch.setattr(recovery, "found", breaks)
    troubles = []
    host.trouble = lambda what, error, **data: troubles.append(what)
    assert await host.recover() == 0 and troubles and sid not in host.live
    await door.load(sid)
    await door.idle(sid)
    assert heard(door, sid) == ["hi", "one", "two"]


@pytest.mark.parametrize("stop", ["cancel", "interrupt", "close"])
async def test_what_a_stop_writes_has_one_order_before_and_after_a_restart(reopen, stop):
    """Two calls, one of them asked about; a word said meanwhile; then somebody stops the turn."""

    async def stopped(left: bool) -> list[str]:
        script = Scripted([turn(call("echo", text="x"), call("echo", text="y"))])
        door = await reopen(script, [EchoTool()])
        sid, tape = await begin(door)
        await door.prompt(sid, (Text("hi"),), ME)
        await tape.until(ev.Asked)
        await door.steer(sid, (Text("a word"),), ME)
        if left:
            await kill(door)
            door = await reopen(Scripted([]), [EchoTool()])
            await host_of(door).recover()
        before = host_of(door).live[sid].state.seq
        match stop:
            case "cancel":
                door.cancel(sid)
                await door.idle(sid)
                await door.kept(sid)
            case "interrupt":
                await door.interrupt(sid, ME)
                await door.idle(sid)
            case "close":
                await door.close(sid)
        told = [type(event.body) for event in await door.history(sid, before)]
        kept = (ev.Settled, ev.CallEnded, ev.Steered, ev.TurnEnded)
        return [one.__name__ for one in told if one in kept]

    living = await stopped(left=False)
    assert living[0] == "Settled" and living[-1] == "TurnEnded" and "CallEnded" in living
    assert await stopped(left=True) == living
