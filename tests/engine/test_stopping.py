"""Races around cancel, close, stop and delete: whatever meets, the session ends up sound."""

import asyncio
import threading

import pytest
from tests.engine.tape import ME, Tape
from tests.engine.timers import LONG, Timers

from dragoman.engine import events as ev
from dragoman.engine import inbox as inbox_module
from dragoman.engine.content import Text, ToolCall, ToolResult
from dragoman.engine.faults import (
    AlreadySettled,
    Busy,
    Fault,
    NothingRunning,
    UnknownSession,
    WrongState,
)
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, call_with, hang, say, turn

GO = (Text("go"),)


async def start(door, **spec):
    info = await door.open(OpenSpec(cwd="/", **spec), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None, exact=True)
    return info.id, tape


def check_results(messages):
    """Every call has exactly one result, and no result is without its call."""
    calls = [b.id for m in messages for b in m.content if isinstance(b, ToolCall)]
    results = [b.call_id for m in messages for b in m.content if isinstance(b, ToolResult)]
    assert sorted(calls) == sorted(results)


class Stubborn(EchoTool):
    """Runs until it is released; may ignore that it was cancelled."""

    def __init__(self, ignores: bool = False) -> None:
        super().__init__("stubborn", "read")
        self.ignores = ignores
        self.began = asyncio.Event()
        self.released = asyncio.Event()

    async def run(self, args, env):
        self.began.set()
        for _ in range(4):  # it gives in at last, so that a failing test can end
            try:
                await self.released.wait()
                break
            except asyncio.CancelledError:
                if not self.ignores:
                    raise
        return Outcome((Text("late"),))


async def test_a_cancel_right_behind_its_prompt_is_not_lost():
    script = Scripted([say("never asked")])
    door = memory_door(script)
    sid, _ = await start(door)
    work = await door.prompt(sid, GO, ME)
    door.cancel(sid)
    done = await asyncio.wait_for(work.done, 60)
    assert (done.outcome, done.cause) == ("cancelled", "client")
    assert not script.requests
    assert (await door.info(sid)).status == "idle"


async def test_one_prompt_is_taken_back_and_others_stay():
    script = Scripted([turn(say("first"), hang()), say("third")])
    door = memory_door(script)
    sid, tape = await start(door)
    works = [await door.prompt(sid, GO, ME, key=key) for key in ("one", "two", "three")]
    await tape.until(ev.TextDelta)
    session = host_of(door).live[sid]
    assert session.inbox.retract("two") == works[1].turn
    assert (await works[1].done).outcome == "cancelled" and not works[0].done.done()
    for unknown in ("two", "", "never"):
        with pytest.raises(NothingRunning):
            session.inbox.retract(unknown)
    assert session.inbox.retract("one") == works[0].turn  # it runs: stopped
    assert (await asyncio.wait_for(works[0].done, 60)).outcome == "cancelled"
    assert (await asyncio.wait_for(works[2].done, 60)).text == "third"
    assert (await door.info(sid)).turns == 2 and len(script.requests) == 2
    with pytest.raises(NothingRunning):
        session.inbox.retract("three")  # it is over


async def test_a_second_cancel_changes_nothing():
    script = Scripted([hang()])
    door = memory_door(script)
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    await script.hanging.wait()
    assert door.cancel(sid) == door.cancel(sid, "again") == work.turn
    assert (await work.done).cause == "client"
    assert len(tape.of(ev.TurnEnded)) == 1
    with pytest.raises(NothingRunning):
        door.cancel(sid)


async def test_a_tool_that_ignores_its_cancellation_is_left_behind(monkeypatch):
    monkeypatch.setattr(inbox_module, "UNWIND_SECONDS", 0.02)
    tool = Stubborn(ignores=True)
    door = memory_door(Scripted([call("stubborn"), "fine", "on we go"]), [tool])
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    await tool.began.wait()
    door.cancel(sid)
    done = await asyncio.wait_for(work.done, 60)
    assert done.outcome == "cancelled"
    check_results(await door.messages(sid))
    again = await (await door.prompt(sid, GO, ME)).done
    assert again.outcome == "completed"
    before = len(tape.events)
    tool.released.set()
    await door.idle(sid)
    await asyncio.sleep(0.01)
    assert len(tape.events) == before  # the one left behind writes nothing any more


async def test_a_cancelled_call_that_had_begun_says_so(monkeypatch):
    tool = Stubborn()
    calls = [call("stubborn"), call("echo", text="x")]  # what acts does not run beside it
    door = memory_door(Scripted([calls]), [tool, EchoTool()], mode="full")
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    await tool.began.wait()
    door.cancel(sid)
    await work.done
    ends = [e.content[0].text for e in tape.of(ev.CallEnded)]
    assert "before this call finished" in ends[0]
    assert "before this call was run" in ends[1]


async def test_a_cancel_that_comes_while_the_end_is_written_does_not_change_it():
    script = Scripted([say("done")])
    door = memory_door(script)
    sid, tape = await start(door)
    store = host_of(door).store
    append = store.append

    async def slow(batch):
        if any(entry.kind == "turn_ended" for entry in batch.entries):
            door.cancel(sid)
            await asyncio.sleep(0)
        return await append(batch)

    store.post = lambda batch, **how: asyncio.ensure_future(slow(batch))
    done = await (await door.prompt(sid, GO, ME)).done
    ended = tape.of(ev.TurnEnded)[0]
    assert (done.outcome, done.cause) == (ended.outcome, ended.cause) == ("completed", "")


async def test_steering_that_comes_too_late_is_refused_not_lost():
    script = Scripted([say("done")])
    door = memory_door(script)
    sid, _ = await start(door)
    store = host_of(door).store
    append = store.append
    refused = []

    async def slow(batch):
        if any(entry.kind == "turn_ended" for entry in batch.entries):
            with pytest.raises(NothingRunning) as told:
                await door.steer(sid, (Text("wait!"),), ME)
            refused.append(told.value)
        return await append(batch)

    store.post = lambda batch, **how: asyncio.ensure_future(slow(batch))
    await (await door.prompt(sid, GO, ME)).done
    assert refused


async def test_steering_that_was_taken_is_kept_even_when_the_turn_is_cancelled():
    script = Scripted([hang()])
    door = memory_door(script)
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    await script.hanging.wait()
    await door.steer(sid, (Text("and mind the gap"),), ME)
    door.cancel(sid)
    await work.done
    assert [m.content[0].text for m in await door.messages(sid)] == ["go", "and mind the gap"]
    kinds = tape.kinds()
    assert kinds.index("Steered") < kinds.index("TurnEnded")


async def test_two_answers_at_once_have_one_winner():
    tool = EchoTool()
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [tool])
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    ask = (await tape.until(ev.Asked)).body.ask.id
    told = await asyncio.gather(
        *(door.answer(ask, verdict, ME) for verdict in ("allow", "deny", "allow")),
        return_exceptions=True,
    )
    assert not isinstance(told[0], Exception)
    assert all(isinstance(one, AlreadySettled) for one in told[1:])
    await work.done
    assert len(tape.of(ev.Settled)) == 1 and len(tool.ran) == 1


async def test_cancel_while_an_answer_is_written_gives_the_call_one_result():
    tool = EchoTool()
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [tool])
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    ask = (await tape.until(ev.Asked)).body.ask.id
    answering = asyncio.ensure_future(door.answer(ask, "allow", ME))
    await asyncio.sleep(0)
    door.cancel(sid)
    await answering
    assert (await work.done).outcome == "cancelled"
    check_results(await door.messages(sid))
    assert not await door.asks(sid) and not tool.ran
    assert (await door.info(sid)).status == "idle"


async def test_cancel_during_a_compaction_leaves_the_history():
    script = Scripted([*["a"] * 3, hang(), "still here"])
    door = memory_door(script)
    sid, _ = await start(door)
    for _ in range(3):
        await (await door.prompt(sid, GO, ME)).done
    work = await door.compact(sid, ME)
    await script.hanging.wait()
    door.cancel(sid)
    assert (await work.done).outcome == "cancelled"
    assert len(await door.messages(sid)) == 6
    assert (await (await door.prompt(sid, GO, ME)).done).text == "still here"


async def test_close_fails_what_waits_and_ends_what_runs():
    script = Scripted([hang(), "later"])
    door = memory_door(script)
    sid, _ = await start(door)
    first = await door.prompt(sid, GO, ME)
    second = await door.prompt(sid, GO, ME)
    await script.hanging.wait()
    await asyncio.wait_for(door.close(sid), 60)
    assert (await first.done).outcome == "cancelled"
    with pytest.raises(Fault):
        await second.done
    assert door.live(sid) is None


async def test_a_prompt_that_meets_a_session_being_let_go_is_taken_all_the_same():
    gate = asyncio.Event()
    door = memory_door(Scripted(["one", "two"]), [EchoTool()])
    sid, tape = await start(door)
    await (await door.prompt(sid, GO, ME)).done
    session = host_of(door).live[sid]

    async def slow_close():
        await gate.wait()

    session.gear.toolbox.close = slow_close
    closing = asyncio.ensure_future(door.close(sid))
    await asyncio.sleep(0)
    prompting = asyncio.ensure_future(door.prompt(sid, GO, ME))
    await asyncio.sleep(0)
    gate.set()
    await closing
    work = await asyncio.wait_for(prompting, 60)
    assert (await work.done).text == "two"


async def test_those_who_watch_see_on_when_a_session_was_closed_and_taken_up_again():
    door = memory_door(Scripted(["one", "two"]))
    sid, tape = await start(door)
    await (await door.prompt(sid, GO, ME)).done
    await door.close(sid)
    await (await door.prompt(sid, GO, ME)).done
    assert tape.text() == "onetwo"
    seqs = [e.seq for e in tape.events if e.seq]
    assert seqs == sorted(set(seqs)) == list(range(seqs[0], seqs[-1] + 1))
    assert [w.who for w in host_of(door).live[sid].ledger.hub.watches] == [ME]


async def test_a_toolbox_that_cannot_be_closed_does_not_keep_the_session():
    door = memory_door(Scripted(["one", "two"]))
    sid, _ = await start(door)
    await (await door.prompt(sid, GO, ME)).done

    async def broken():
        raise OSError("stuck")

    host_of(door).live[sid].gear.toolbox.close = broken
    await door.close(sid)
    assert (await (await door.prompt(sid, GO, ME)).done).text == "two"


async def test_delete_while_running_leaves_nothing():
    script = Scripted([hang()])
    door = memory_door(script)
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    await script.hanging.wait()
    assert await door.delete(sid, ME)
    assert (await work.done).outcome == "cancelled"
    assert tape.of(ev.Deleted)
    for reading in (door.info(sid), door.prompt(sid, GO, ME), door.history(sid)):
        with pytest.raises(UnknownSession):
            await reading
    assert not host_of(door).live


async def test_stop_ends_the_running_fails_the_queued_and_keeps_the_waiting():
    script = Scripted([hang()])
    door = memory_door(script, [EchoTool()])
    running, _ = await start(door)
    run = await door.prompt(running, GO, ME)
    queued = await door.prompt(running, GO, ME)
    await script.hanging.wait()
    host_of(door).models.provider = Scripted([call("echo", text="x")])  # type: ignore[attr-defined]
    waiting, tape = await start(door)
    wait = await door.prompt(waiting, GO, ME)
    await tape.until(ev.Asked)
    await asyncio.wait_for(host_of(door).stop(1.0), 60)
    assert (await run.done).outcome == "interrupted"
    for work in (queued, wait):
        with pytest.raises(Fault):
            await work.done
    assert len(await door.asks(waiting)) == 1
    assert not host_of(door).live
    assert (await host_of(door).store.info(waiting)).status == "waiting_input"


@pytest.fixture
async def lingering(monkeypatch):
    """A host with a question open, whose stop lasts until a tool gives in."""
    timers = Timers(monkeypatch)
    tool = Stubborn(ignores=True)
    door = memory_door(Scripted([call("stubborn")]), [tool, EchoTool()], approval_timeout=LONG)
    running, _ = await start(door)
    await door.prompt(running, GO, ME)
    await tool.began.wait()
    host_of(door).models.provider = Scripted([call("echo", text="x")])  # type: ignore[attr-defined]
    waiting, tape = await start(door)
    await door.prompt(waiting, GO, ME)
    await tape.until(ev.Asked)
    await asyncio.wait_for(timers.arranged.wait(), 60)
    yield door, waiting, tape, tool, timers
    tool.released.set()


@pytest.mark.parametrize("way", ["a client", "its time is over"])
async def test_an_answer_that_comes_while_the_host_stops_runs_nothing(lingering, way):
    """The tool would begin and be cut off a moment later: the question waits for the next start."""
    door, waiting, tape, tool, timers = lingering
    ask = tape.of(ev.Asked)[0].ask
    stopping = asyncio.ensure_future(host_of(door).stop(60.0))
    await asyncio.sleep(0)
    if way == "a client":
        with pytest.raises(Busy, match="shutting down"):
            await door.answer(ask.id, "allow", ME)
    else:
        timers.come_due()
        for _ in range(20):
            await asyncio.sleep(0)
    tool.released.set()
    await asyncio.wait_for(stopping, 60)
    assert [row.ask.id for row in await door.asks(waiting)] == [ask.id]
    assert not tape.of(ev.CallStarted) and not tape.of(ev.Settled)


@pytest.mark.parametrize("behind", ["a command", "a load"])
async def test_what_waits_to_get_in_while_the_host_begins_to_stop_is_refused(tmp_path, behind):
    """A prompt that came before the stop, and waits behind a slow one, must not begin after it."""
    store, _ = open_store(tmp_path / "sessions.db")
    door = memory_door(Scripted(["one", "two", "three"]), store=store)
    sid, _ = await start(door)
    if behind == "a load":
        await door.close(sid)
    slow = "/look for a command of this name" if behind == "a command" else "go"
    begun = threading.Event()

    def look(cwd):
        begun.wait(30)  # a quick look would be over before the stop
        return {}

    host_of(door).commands = look
    given = [asyncio.ensure_future(door.prompt(sid, (Text(slow),), ME))]
    given += [asyncio.ensure_future(door.prompt(sid, GO, ME, keep=True)) for _ in range(2)]
    given.append(asyncio.ensure_future(door.compact(sid, ME)))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(begun.set)  # runs when the stop has begun
    await asyncio.wait_for(host_of(door).stop(1.0), 60)
    said = await asyncio.gather(*given, return_exceptions=True)
    assert [type(one) for one in said] == [Busy] * 4
    assert not (await store.info(sid)).turns
    await store.close()


async def test_a_session_can_be_asked_for_while_it_is_being_opened():
    door = memory_door(Scripted(["hi"]))
    create = host_of(door).store.create

    async def slow(info, owner):
        epoch = await create(info, owner)
        await asyncio.sleep(0.01)
        return epoch

    host_of(door).store.create = slow
    opening = asyncio.ensure_future(door.open(OpenSpec(cwd="/", id="mine"), ME))
    await asyncio.sleep(0)
    got = asyncio.ensure_future(door.load("mine"))
    with pytest.raises(WrongState):
        await door.open(OpenSpec(cwd="/", id="mine"), ME)
    assert (await opening).id == (await got).id == "mine"
    assert (await (await door.prompt("mine", GO, ME)).done).text == "hi"


async def test_an_opening_whose_client_left_is_finished():
    door = memory_door(Scripted(["hi"]))
    create = host_of(door).store.create

    async def slow(info, owner):
        epoch = await create(info, owner)
        await asyncio.sleep(0.01)
        return epoch

    host_of(door).store.create = slow
    opening = asyncio.ensure_future(door.open(OpenSpec(cwd="/", id="mine"), ME))
    await asyncio.sleep(0)
    opening.cancel()
    assert (await door.load("mine")).last_seq == 1


async def test_the_same_key_twice_at_once_is_one_turn():
    script = Scripted([hang(), "b", "c"])
    door = memory_door(script)
    sid, _ = await start(door)
    first = await door.prompt(sid, GO, ME, key="k1")
    with pytest.raises(WrongState) as told:
        await door.prompt(sid, GO, ME, key="k1")
    assert told.value.data["turn"] == first.turn
    second = await door.prompt(sid, GO, ME, key="k2")
    with pytest.raises(WrongState) as told:
        await door.prompt(sid, GO, ME, key="k2")
    assert told.value.data["turn"] == second.turn
    await script.hanging.wait()
    script.release()
    await second.done
    assert (await door.info(sid)).turns == 2


async def test_an_answer_about_one_call_does_not_allow_another_of_the_same_id():
    tool = EchoTool()
    script = Scripted(
        [call_with("echo", {"text": "a"}, id="c0"), "ok", call_with("echo", {"text": "b"}, id="c0")]
    )
    door = memory_door(script, [tool])
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    await door.answer((await tape.until(ev.Asked)).body.ask.id, "allow", ME)
    await work.done
    tape.events.clear()
    work = await door.prompt(sid, GO, ME)
    await tape.until(ev.Asked)
    assert tool.ran == [{"text": "a"}]
    door.cancel(sid)
    await work.done


async def test_a_fork_of_a_running_session_does_not_run_its_calls():
    tool = EchoTool()
    door = memory_door(Scripted([[call("echo", text="rm"), call("echo", text="rf")], "ok"]), [tool])
    sid, tape = await start(door)
    work = await door.prompt(sid, GO, ME)
    await tape.until(ev.Asked)
    host_of(door).models.provider = Scripted(["forked"])  # type: ignore[attr-defined]
    copy = await door.fork(sid, ME)
    done = await (await door.prompt(copy.id, (Text("and you?"),), ME)).done
    assert (done.outcome, done.text) == ("completed", "forked")
    assert not tool.ran
    messages = await door.messages(copy.id)
    check_results(messages)
    assert [m.role for m in messages] == ["user", "assistant", "tool", "user", "assistant"]
    door.cancel(sid)
    await work.done


async def test_sweep_lets_go_of_the_unused_only():
    door = memory_door(Scripted([turn("x", hang())]))
    watched, _ = await start(door)
    idle = (await door.open(OpenSpec(cwd="/"), ME)).id
    assert await host_of(door).sweep(-1.0) == [idle]
    assert set(host_of(door).live) == {watched}
    broken = (await door.open(OpenSpec(cwd="/"), ME)).id
    other = (await door.open(OpenSpec(cwd="/"), ME)).id
    give = host_of(door).store.give

    async def fails(session, epoch):
        if session == broken:
            raise Fault("no")
        await give(session, epoch)

    host_of(door).store.give = fails
    assert other in await host_of(door).sweep(-1.0)
    assert set(host_of(door).live) == {watched}


async def test_sweep_keeps_few_that_nobody_watches_and_the_latest_of_them(tmp_path):
    store, _ = open_store(str(tmp_path / "s.db"))
    door = memory_door(Scripted(["x"], loop=True), store=store)
    made = [(await door.open(OpenSpec(cwd="/"), ME)).id for _ in range(5)]
    for sid in (*made[1:], made[0]):
        await (await door.prompt(sid, (Text("go"),), ME)).done
    host = host_of(door)
    assert await host.sweep(3600.0) == []
    assert await host.sweep(3600.0, 9) == []
    assert await host.sweep(3600.0, 2) == made[1:4]
    assert set(host.live) == {made[0], made[4]}
    assert [m.role for m in await door.messages(made[1])] == ["user", "assistant"]  # from the store
    await host.stop()
    await store.close()


async def test_sweep_keeps_what_no_store_has():
    door = memory_door(Scripted(["x"]))
    made = (await door.open(OpenSpec(cwd="/"), ME)).id
    assert await host_of(door).sweep(3600.0, 0) == []
    assert set(host_of(door).live) == {made}


async def test_a_worker_that_is_cancelled_begins_nothing_more():
    script = Scripted([turn("one", hang()), "two"])
    door = memory_door(script)
    sid, _ = await start(door)
    first = await door.prompt(sid, GO, ME)
    second = await door.prompt(sid, GO, ME, keep=True)
    await asyncio.wait_for(script.hanging.wait(), 60)
    task = host_of(door).live[sid].inbox.task
    assert task is not None
    task.cancel()  # as a loop does that ends
    await asyncio.wait({task}, timeout=60)
    assert task.done() and first.done.done() and second.done.done()
    assert len(script.requests) == 1
