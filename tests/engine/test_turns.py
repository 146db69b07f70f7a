"""Turns through the door: what is kept, in which order, and what clients see."""

import asyncio

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call, hang, say, turn

ME = Who("test", id="c1")


class Tape:
    """A shape that keeps the events themselves."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.changed = asyncio.Event()

    def speak(self, events):
        self.events.extend(events)
        self.changed.set()
        return None

    def kinds(self) -> list[str]:
        return [type(e.body).__name__ for e in self.events if type(e.body) is not ev.Presence]

    async def until(self, kind: type) -> ev.Event:
        async with asyncio.timeout(5):
            while True:
                for event in self.events:
                    if type(event.body) is kind:
                        return event
                self.changed.clear()
                await self.changed.wait()


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
    done = await asyncio.wait_for(work.done, 1)
    assert (done.outcome, done.text) == ("cancelled", "partial")
    assert (await door.info(sid)).status == "idle"


async def test_cancel_while_waiting_for_an_answer_withdraws_the_question():
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    asked = await tape.until(ev.Asked)
    door.cancel(sid)
    done = await asyncio.wait_for(work.done, 1)
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
    live = door.live(sid).state
    again = await door.host.rebuild(sid)
    assert {k: getattr(again, k) for k in live.__slots__} == {
        k: getattr(live, k) for k in live.__slots__
    }
