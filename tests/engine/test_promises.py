"""What was acknowledged runs or is told, wherever the process ends in between."""

import asyncio

import pytest
from tests.engine.tape import ME
from tests.engine.test_recovery import begin, kill, reopen  # noqa: F401

from dragoman.engine import events as ev
from dragoman.engine.content import Text, text_of
from dragoman.engine.faults import Busy, GoesOn
from dragoman.engine.hooks import Hooks
from dragoman.testing.host import EchoTool, host_of
from dragoman.testing.script import Scripted, call, hang, turn


def said(door, sid):
    messages = host_of(door).live[sid].state.messages
    return [text_of(m.content) for m in messages if m.role == "user"]


async def asking(reopen):  # noqa: F811
    door = await reopen(Scripted([call("echo", text="x"), "a", "b", "c"]), [EchoTool()])
    sid, tape = await begin(door)
    work = await door.prompt(sid, (Text("first"),), ME)
    ask = (await tape.until(ev.Asked)).body.ask
    return door, sid, tape, work, ask


@pytest.mark.parametrize("end", ["cancel", "interrupt", "by itself"])
async def test_a_kill_between_two_turns_does_not_forget_the_second(reopen, end):  # noqa: F811
    """The store dies with the commit that ends the first turn: the next must be found."""
    script = Scripted([turn("one", hang())])
    door = await reopen(script)
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("first"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 5)
    await door.prompt(sid, (Text("second"),), ME, keep=True)
    ledger = host_of(door).live[sid].ledger
    told = ledger._tell

    def tell(events):  # nothing after the end of the first turn
        told(events)
        if any(type(e.body) is ev.TurnEnded for e in events):
            ledger.parked = True

    type(ledger)  # slots: the method is replaced on the class of this object alone
    ledger.__class__ = type(
        "Dying", (type(ledger),), {"__slots__": (), "_tell": lambda _, e: tell(e)}
    )
    if end == "cancel":
        door.cancel(sid)
    elif end == "interrupt":
        await door.interrupt(sid)
    else:
        script.release()
    await tape.until(ev.TurnEnded)
    await kill(door)
    door = await reopen(Scripted(["two"]))
    assert await host_of(door).recover() == 1, "it is among those that the start takes up"
    await door.idle(sid)
    assert said(door, sid) == ["first", "second"]


async def test_the_status_of_a_session_whose_queue_was_taken_back_is_idle(reopen):  # noqa: F811
    script = Scripted([turn("one", hang())])
    door = await reopen(script)
    sid, tape = await begin(door)
    await door.prompt(sid, (Text("first"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 5)
    await door.prompt(sid, (Text("second"),), ME, keep=True, key="k")
    door.cancel(sid)
    door.retract(sid, "k")
    await door.idle(sid)
    await host_of(door).live[sid].ledger.told()
    assert host_of(door).live[sid].state.status == "idle"


@pytest.mark.parametrize("end", ["cancel", "interrupt", "supersede", "kill"])
async def test_a_word_into_a_turn_that_a_restart_left_is_kept(reopen, end):  # noqa: F811
    door, sid, _, _, ask = await asking(reopen)
    await kill(door)
    door = await reopen(Scripted(["next"]), [EchoTool()])
    await door.load(sid)
    await door.steer(sid, (Text("steered"),), ME)
    if end == "cancel":
        door.cancel(sid)
    elif end == "interrupt":
        await door.interrupt(sid)
    elif end == "kill":
        await kill(door)
        door = await reopen(Scripted(["b", "c"]), [EchoTool()])
        await door.load(sid)
        await door.answer(ask.id, "deny", ME)
    else:
        await door.answer(ask.id, "allow", ME)
    await door.idle(sid)
    await (await door.prompt(sid, (Text("second"),), ME)).done
    assert said(door, sid) == ["first", "steered", "second"]
    assert not host_of(door).live[sid].state.queued


async def test_a_stop_says_of_a_prompt_that_waits_for_a_human_that_it_goes_on(reopen):  # noqa: F811
    door, sid, _, work, _ = await asking(reopen)
    waits = await door.prompt(sid, (Text("kept"),), ME, keep=True)
    lost = await door.prompt(sid, (Text("not kept"),), ME)
    await host_of(door).stop()
    for one in (work, waits):
        with pytest.raises(GoesOn, match="goes on|runs when it is back") as told:
            await one.done
        assert told.value.data["turn"] == one.turn and "not send it again" in told.value.hint
    with pytest.raises(Busy):
        await lost.done
    door = await reopen(Scripted(["a", "b", "c"]), [EchoTool()])
    await host_of(door).recover()
    (ask,) = [row.ask for row in await door.asks()]
    await door.answer(ask.id, "allow", ME)
    await door.idle(sid)
    assert said(door, sid) == ["first", "kept"]


async def test_a_question_with_a_queue_behind_it_can_go_on_elsewhere(reopen):  # noqa: F811
    door, sid, _, _, _ = await asking(reopen)
    await door.prompt(sid, (Text("kept"),), ME, keep=True)
    assert not door.running(), "a process that holds it may hand it over"
    await door.prompt(sid, (Text("not kept"),), ME)
    assert door.running()


async def test_a_stop_ends_a_turn_that_runs_and_says_so(reopen):  # noqa: F811
    script = Scripted([turn("one", hang())])
    door = await reopen(script)
    sid, _ = await begin(door)
    work = await door.prompt(sid, (Text("first"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 5)
    await host_of(door).stop()
    finished = await work.done
    assert (finished.outcome, finished.cause) == ("interrupted", "shutdown")
    door = await reopen(Scripted(["again"]))
    await host_of(door).recover()
    await door.load(sid)
    await door.idle(sid)
    assert said(door, sid) == ["first"]


def test_hooks_remember_no_more_than_they_must():
    assert Hooks()._remembered.maxlen == 256
