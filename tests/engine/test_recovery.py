"""What a session is after its process died: nothing is lost, nothing runs twice."""

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import InUse, UnknownSession
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
    assert {k: getattr(state, k) for k in live.__slots__ if k[0] != "_"} == {
        k: getattr(live, k) for k in live.__slots__ if k[0] != "_"
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
        "daemon restarted while session was active",
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


async def test_a_new_prompt_overtakes_a_question_from_before_the_restart(reopen):
    door = await reopen(Scripted([call("echo", text="x")]), [EchoTool()])
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("hi"),), ME)
    await tape.until(ev.Asked)
    await kill(door)
    door = await reopen(Scripted(["new"]), [EchoTool()])
    await host_of(door).recover()
    done = await (await door.prompt(sid, (Text("never mind"),), ME)).done
    assert done.text == "new"
    assert not await door.asks()
    roles = [m.role for m in await door.messages(sid)]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]


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
    assert caught.value.code == "stale_epoch"
    assert door.live(sid) is None
