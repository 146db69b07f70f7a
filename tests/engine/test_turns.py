"""Turns through the door: what is kept, in which order, and what clients see."""

import asyncio

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text, Usage
from dragoman.engine.faults import (
    AlreadySettled,
    BadInput,
    Busy,
    UnknownAgent,
    UnknownModel,
    WrongState,
)
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, broken_call, call, fail, hang, say, turn


async def start(door, **spec):
    info = await door.open(OpenSpec(cwd="/", **spec), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None, exact=True)
    return info.id, tape


async def test_a_plain_turn_is_told_in_order():
    door = memory_door(Scripted([say("Hello, world!", deltas=3)]))
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("hi"),), ME)
    done = await work.done
    assert (done.outcome, done.stop, done.text) == ("completed", "end_turn", "Hello, world!")
    assert tape.kinds() == [
        "TurnBegan", "StatusChanged", "StepBegan", "StreamOpened", "TextDelta", "TextDelta",
        "TextDelta", "Spoke", "TurnEnded", "StatusChanged",
    ]  # fmt: skip
    info = await door.info(sid)
    assert (info.messages, info.turns, info.status) == (2, 1, "idle")


async def test_an_approved_tool_runs_and_a_denied_one_does_not():
    tool = EchoTool()
    script = Scripted([call("echo", text="one"), "ok", call("echo", text="two"), "ok"])
    door = memory_door(script, [tool])
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    asked = await tape.until(ev.Asked)
    assert (await door.info(sid)).status == "waiting_input"
    await door.answer(asked.body.ask.id, "allow", ME)
    await work.done
    assert tool.ran == [{"text": "one"}]
    tape.events.clear()
    work = await door.prompt(sid, (Text("again"),), ME)
    asked = await tape.until(ev.Asked)
    await door.answer(asked.body.ask.id, "deny", ME, comment="not today")
    await work.done
    assert tool.ran == [{"text": "one"}]
    ended = await tape.until(ev.CallEnded)
    assert ended.body.outcome == "denied"
    assert "not today" in ended.body.content[0].text


async def test_cancel_stops_a_hanging_model():
    door = memory_door(Scripted([turn(say("partial"), hang())]))
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("hi"),), ME)
    await tape.until(ev.TextDelta)
    door.cancel(sid)
    done = await asyncio.wait_for(work.done, 60)
    assert (done.outcome, done.text) == ("cancelled", "partial")
    assert (await door.info(sid)).status == "idle"


async def test_cancel_while_waiting_for_an_answer_withdraws_the_question():
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    asked = await tape.until(ev.Asked)
    door.cancel(sid)
    done = await asyncio.wait_for(work.done, 60)
    assert done.outcome == "cancelled"
    assert not (await door.asks())
    settled = await tape.until(ev.Settled)
    assert (settled.body.ask_id, settled.body.verdict) == (asked.body.ask.id, "cancelled")
    messages = await door.messages(sid)
    assert [m.role for m in messages] == ["user", "assistant", "tool"]


async def test_the_fold_of_the_store_equals_the_live_state():
    door = memory_door(
        Scripted([call("echo", text="one"), "ok", "fine"]), [EchoTool()], mode="full"
    )
    sid, _ = await start(door)
    for text in ("a", "b"):
        await (await door.prompt(sid, (Text(text),), ME)).done
    await door.rename(sid, "named")
    live = host_of(door).live[sid].state
    again = await host_of(door).rebuild(sid)
    assert {k: getattr(again, k) for k in live.__struct_fields__ if k[0] != "_"} == {
        k: getattr(live, k) for k in live.__struct_fields__ if k[0] != "_"
    }


async def test_an_unknown_tool_and_bad_arguments_give_the_model_an_error_and_the_turn_goes_on():
    script = Scripted([turn(call("frob"), broken_call("echo", "{oops")), "done"])
    door = memory_door(script, [EchoTool()], mode="full")
    sid, tape = await start(door)
    done = await (await door.prompt(sid, (Text("go"),), ME)).done
    assert done.outcome == "completed"
    first, second = tape.of(ev.CallEnded)
    assert first.is_error and first.content[0].text == 'unknown tool "frob"'
    assert second.is_error and second.content[0].text.startswith("invalid args")


async def test_a_cancelled_batch_runs_nothing_more_and_answers_every_call():
    tool = EchoTool()
    script = Scripted([turn(call("echo", text="1"), call("echo", text="2")), "done"])
    door = memory_door(script, [tool])
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    await tape.until(ev.Asked)
    door.cancel(sid)
    await work.done
    assert tool.ran == []
    assert [c.outcome for c in tape.of(ev.CallEnded)] == ["cancelled", "cancelled"]
    assert not host_of(door).live[sid].state.journal


async def test_max_steps_ends_the_turn_with_an_error():
    door = memory_door(
        Scripted([call("echo", text=str(n)) for n in range(5)]), [EchoTool()],
        mode="full", max_steps=2,
    )  # fmt: skip
    sid, tape = await start(door)
    done = await (await door.prompt(sid, (Text("go"),), ME)).done
    assert (done.outcome, done.stop, done.error) == (
        "failed", "max_steps", "max steps (2) exceeded",
    )  # fmt: skip
    assert len(tape.of(ev.Spoke)) == 2


async def test_a_provider_failure_keeps_partial_text_and_leaves_the_session_usable():
    door = memory_door(Scripted([turn(say("half"), fail("network", "cut off")), "fine"]))
    sid, tape = await start(door)
    done = await (await door.prompt(sid, (Text("a"),), ME)).done
    assert done.outcome == "failed" and "cut off" in done.error
    assert tape.of(ev.Spoke)[0].content == (Text("half"),)
    done = await (await door.prompt(sid, (Text("b"),), ME)).done
    assert done.text == "fine"


async def test_steering_reaches_the_model_at_the_next_step():
    door = memory_door(Scripted([call("echo", text="1"), "done"]), [EchoTool()])
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    asked = await tape.until(ev.Asked)
    await door.steer(sid, (Text("hurry"),), ME)
    await door.answer(asked.body.ask.id, "allow", ME)
    await work.done
    roles = [m.role for m in await door.messages(sid)]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]


async def test_the_queue_is_first_in_first_out_and_bounded():
    door = memory_door(Scripted([hang(), "2", "3"]))
    sid, tape = await start(door)
    first = await door.prompt(sid, (Text("1"),), ME, limit=3)
    second = await door.prompt(sid, (Text("2"),), ME, limit=3)
    third = await door.prompt(sid, (Text("3"),), ME, limit=3)
    with pytest.raises(Busy, match="3 prompts wait"):
        await door.prompt(sid, (Text("4"),), ME, limit=3)
    with pytest.raises(Busy, match="runs in this session already"):
        await door.prompt(sid, (Text("5"),), ME, when_busy="refuse")
    await tape.until(ev.StreamOpened)
    door.cancel(sid)
    assert (await first.done).outcome == "cancelled"
    assert ((await second.done).text, (await third.done).text) == ("2", "3")


async def test_a_queued_prompt_gives_up_after_its_wait():
    door = memory_door(Scripted([hang()]))
    sid, _ = await start(door)
    await door.prompt(sid, (Text("1"),), ME)
    waiting = await door.prompt(sid, (Text("2"),), ME, wait=0.05)
    with pytest.raises(Busy, match="busy for too long"):
        await asyncio.wait_for(asyncio.shield(waiting.done), 60)
    door.cancel(sid)
    await door.idle(sid)


async def test_the_same_key_is_taken_once():
    door = memory_door(Scripted(["one", "two"]))
    sid, _ = await start(door)
    work = await door.prompt(sid, (Text("x"),), ME, key="k")
    await work.done
    with pytest.raises(WrongState) as caught:
        await door.prompt(sid, (Text("x"),), ME, key="k")
    assert caught.value.data["turn"] == work.turn
    assert (await door.info(sid)).turns == 1


async def test_allow_always_holds_for_the_session_and_not_for_another():
    script = Scripted([call("echo", text="1"), "ok", call("echo", text="2"), "ok"])
    door = memory_door(script, [EchoTool()])
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    asked = await tape.until(ev.Asked)
    await door.answer(asked.body.ask.id, "allow_always", ME, scope="tool")
    await work.done
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert len(tape.of(ev.Asked)) == 1
    with pytest.raises(AlreadySettled, match="allow_always"):
        await door.answer(asked.body.ask.id, "deny", ME)
    other, tape = await start(door)
    host_of(door).models.provider = Scripted([call("echo", text="3"), "ok"])  # type: ignore[attr-defined]
    work = await door.prompt(other, (Text("go"),), ME)
    asked = await tape.until(ev.Asked)
    await door.answer(asked.body.ask.id, "deny", ME)
    await work.done


async def test_an_unanswered_question_expires_and_is_denied():
    door = memory_door(
        Scripted([call("echo", text="1"), "ok"]), [EchoTool()], approval_timeout=0.05
    )
    sid, tape = await start(door)
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert tape.of(ev.Settled)[0].verdict == "expired"
    assert "in time" in tape.of(ev.CallEnded)[0].content[0].text


async def test_compaction_replaces_all_but_the_tail():
    door = memory_door(Scripted(["1", "2", "3", "the summary"]))
    sid, tape = await start(door)
    for n in range(3):
        await (await door.prompt(sid, (Text(f"q{n}"),), ME)).done
    before = (await door.info(sid)).usage
    done = await (await door.compact(sid)).done
    assert done.outcome == "completed"
    messages = await door.messages(sid)
    assert len(messages) == 5
    assert messages[0].content[0].text == "## Context Summary (compacted)\n\nthe summary"
    assert (await door.info(sid)).usage == before
    assert (await door.info(sid)).status == "idle"


async def test_a_full_context_is_compacted_before_the_next_step():
    big = Usage(input=90_000, output=10)
    script = Scripted([turn("1"), turn("2"), turn("3", usage=big), "sum", "after"])
    door = memory_door(script, auto_compact=0.8)
    sid, tape = await start(door)
    for n in range(4):
        await (await door.prompt(sid, (Text(f"q{n}"),), ME)).done
    assert tape.of(ev.Compacted)[0].automatic
    assert (await door.info(sid)).result == "after"


async def test_interrupt_leaves_the_session_interrupted_and_it_can_be_prompted_again():
    door = memory_door(Scripted([hang(), "back"]))
    sid, tape = await start(door, interactive=False)
    work = await door.prompt(sid, (Text("x"),), ME)
    await tape.until(ev.StreamOpened)
    await door.interrupt(sid, ME)
    assert (await work.done).outcome == "interrupted"
    assert (await door.info(sid)).status == "interrupted"
    statuses = [(s.old, s.new) for s in tape.of(ev.StatusChanged)]
    assert statuses == [
        ("starting", "running"), ("running", "interrupting"), ("interrupting", "interrupted"),
    ]  # fmt: skip
    assert (await (await door.prompt(sid, (Text("y"),), ME)).done).text == "back"
    assert (await door.info(sid)).status == "completed"


async def test_a_fork_begins_with_what_its_parent_said():
    door = memory_door(Scripted(["one", "two"]))
    sid, _ = await start(door)
    await (await door.prompt(sid, (Text("a"),), ME)).done
    child = await door.fork(sid, ME)
    await (await door.prompt(child.id, (Text("b"),), ME)).done
    assert len(await door.messages(child.id)) == 4
    assert len(await door.messages(sid)) == 2
    assert (await door.info(child.id)).parent == sid


@pytest.mark.parametrize(
    "spec, fault, words",
    [
        ({"agent": "nobody"}, UnknownAgent, "nobody"),
        ({"cwd": "/no/such/dir"}, BadInput, "does not exist"),
        ({"cwd": "/etc/passwd"}, BadInput, "not a directory"),
        ({"model": "x/y"}, UnknownModel, "x/y"),
    ],
)
async def test_a_session_that_cannot_be_opened_says_why(spec, fault, words):
    door = memory_door(Scripted([]))
    with pytest.raises(fault, match=words):
        await door.open(OpenSpec(**{"cwd": "/", **spec}), ME)
    assert not host_of(door).live
