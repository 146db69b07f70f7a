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
    await asyncio.wait_for(script.hanging.wait(), 60)
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
    await asyncio.wait_for(script.hanging.wait(), 60)
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
    await asyncio.wait_for(script.hanging.wait(), 60)
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


@pytest.mark.parametrize("left", [False, True])
async def test_a_cancel_may_be_acknowledged_once_the_store_has_it(reopen, left):  # noqa: F811
    """A process that dies right after it must not leave the question open."""
    door, sid, _, _, _ = await asking(reopen)
    if left:
        await kill(door)
        door = await reopen(Scripted([]), [EchoTool()])
        await door.load(sid)
    door.cancel(sid)
    await door.kept(sid)
    assert not await door.asks(sid), "the question is withdrawn in the store, not only in memory"
    await kill(door)
    door = await reopen(Scripted([]), [EchoTool()])
    await door.load(sid)
    session = door.live(sid)
    assert session is not None and not session.busy and not session.asks


async def folded(session, ask_id):
    """Wait for the moment in which an answer is taken and not stored yet."""
    taken = asyncio.get_running_loop().create_future()
    ledger = session.ledger
    put = type(ledger).put

    def watched(self, *bodies, **more):
        done = put(self, *bodies, **more)
        if not taken.done() and any(getattr(one, "ask_id", "") == ask_id for one in bodies):
            taken.set_result(None)
        return done

    ledger.__class__ = type("Watched", (type(ledger),), {"__slots__": (), "put": watched})
    await taken


async def test_nothing_slips_in_while_the_answer_to_a_left_turn_is_stored(reopen):  # noqa: F811
    door, sid, _, _, ask = await asking(reopen)
    await kill(door)
    door = await reopen(Scripted(["a", "b"]), [EchoTool()])
    await door.load(sid)
    session = host_of(door).live[sid]
    answering = asyncio.ensure_future(door.answer(ask.id, "allow", ME))
    async with asyncio.timeout(60):
        await folded(session, ask.id)
    assert not answering.done(), "it is folded, and not stored yet"
    assert session.inbox.busy
    with pytest.raises(Busy):
        await door.prompt(sid, (Text("refused"),), ME, when_busy="refuse")
    second = await door.prompt(sid, (Text("second"),), ME)
    await answering
    assert (await second.done).outcome == "completed"
    ends = [e.body for e in await door.history(sid) if type(e.body) is ev.TurnEnded]
    assert [(end.outcome, end.cause) for end in ends] == [("completed", "")] * 2
    assert said(door, sid) == ["first", "second"]


@pytest.mark.parametrize("end", ["cancel", "interrupt"])
async def test_what_waits_goes_on_when_a_left_turn_is_ended_while_its_answer_is_stored(
    reopen,  # noqa: F811
    end,
):
    """Neither the answer nor the cancel may take the other for the one that goes on."""
    door, sid, _, _, ask = await asking(reopen)
    await door.prompt(sid, (Text("second"),), ME, keep=True)
    await kill(door)
    door = await reopen(Scripted(["a", "b"]), [EchoTool()])
    await door.load(sid)
    session = host_of(door).live[sid]
    answering = asyncio.ensure_future(door.answer(ask.id, "allow", ME))
    async with asyncio.timeout(60):
        await folded(session, ask.id)
    assert not answering.done(), "it is folded, and not stored yet"
    if end == "cancel":
        door.cancel(sid)
    else:
        await door.interrupt(sid)
    await answering
    await door.kept(sid)
    await door.idle(sid)
    assert said(door, sid) == ["first", "second"]
    assert session.state.status == "idle" and not session.inbox.waiting


async def test_nobody_waits_for_a_prompt_to_begin_that_stands_behind_a_question(reopen):  # noqa: F811
    """A cancel waits for the prompt before it; one that waits for a human begins after that."""
    door, sid, _, _, _ = await asking(reopen)
    await door.prompt(sid, (Text("second"),), ME, keep=True)
    await kill(door)
    door = await reopen(Scripted(["a"]), [EchoTool()])
    await door.load(sid)
    await asyncio.wait_for(door.begun(sid), 60)
    await asyncio.wait_for(door.steer(sid, (Text("steered"),), ME), 60)
    door.cancel(sid)
    await door.idle(sid)
    assert said(door, sid) == ["first", "steered", "second"]


@pytest.mark.parametrize("slow", [False, True])
async def test_a_word_right_behind_its_prompt_is_said_into_its_turn(reopen, slow):  # noqa: F811
    door = await reopen(Scripted(["a", "b", "c"]))
    sid, tape = await begin(door)
    text = "/nothing of that name" if slow else "first"  # commands are looked up in a thread
    sent = asyncio.ensure_future(door.prompt(sid, (Text(text),), ME))
    await asyncio.sleep(0)  # requests of one write: one begins after the other, none has ended
    turn = await door.steer(sid, (Text("steered"),), ME)
    work = await sent
    assert turn == work.turn
    assert (await work.done).outcome == "completed"
    assert [one.turn for one in tape.of(ev.Steered)] == [turn]


async def test_a_word_that_comes_while_a_turn_is_superseded_is_said_once(reopen):  # noqa: F811
    door, sid, _, _, ask = await asking(reopen)
    await kill(door)
    door = await reopen(Scripted(["a", "b"]), [EchoTool()])
    await door.load(sid)
    session = host_of(door).live[sid]
    await session.ledger.put(ev.Settled(ask.id, "deny"))  # and nobody takes the turn up
    work = await door.prompt(sid, (Text("second"),), ME)
    await asyncio.sleep(0)  # it has begun with ending the turn before it
    await door.steer(sid, (Text("steered"),), ME)
    await work.done
    await door.idle(sid)
    assert said(door, sid).count("steered") == 1


@pytest.mark.parametrize("interrupt", [False, True])
async def test_what_was_stopped_while_it_waited_does_not_run_after_a_kill(reopen, interrupt):  # noqa: F811
    door, sid, tape, _, ask = await asking(reopen)
    second = await door.prompt(sid, (Text("second"),), ME, keep=True)
    third = await door.prompt(sid, (Text("third"),), ME, keep=True)
    inbox = host_of(door).live[sid].inbox
    assert inbox.stop(second, "client", interrupt=interrupt) == second.turn
    await door.kept(sid)
    finished = await second.done
    assert finished.outcome == ("interrupted" if interrupt else "cancelled")
    assert not third.done.done()
    await kill(door)
    door = await reopen(Scripted(["a", "b", "c"]), [EchoTool()])
    await host_of(door).recover()
    await door.answer(ask.id, "allow", ME)
    await door.idle(sid)
    assert said(door, sid) == ["first", "third"]
