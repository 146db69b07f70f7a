"""A crash after any stored fact of a turn: the session loads, is sound, and goes on."""

import msgspec
import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text, ToolCall, ToolResult, Usage
from dragoman.engine.faults import Busy
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import AskRow, Outcome, ToolSpec
from dragoman.engine.state import State
from dragoman.store.memory import MemorySession, MemoryStore
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, turn


class AskUser(EchoTool):
    """Puts a question to a human."""

    def __init__(self) -> None:
        super().__init__("ask_user", "other")
        self.spec = ToolSpec("ask_user", "", {}, "think", repeatable=True)

    async def run(self, args, env):
        answer = await env.ask("Which one?", ("red", "blue"))
        return Outcome((Text(f"the user said {answer.text}"),))


class Steering(EchoTool):
    """Says something into the turn while it runs."""

    door = None

    async def run(self, args, env):
        await self.door.steer(env.session, (Text("faster"),), ME)  # type: ignore[attr-defined]
        return Outcome((Text("steered"),))


def tools(door=None):
    steering = Steering("steering", "read")
    steering.door = door
    return [EchoTool(), AskUser(), EchoTool("look", "read"), steering]


FULL = Usage(input=95_000)
SCRIPT = [
    [call("look", text="a"), call("echo", text="b")],
    call("steering"),
    turn(call("ask_user"), usage=FULL),
    "a summary",
    "the end",
]


async def whole_turn():
    """A turn with tools, approvals, steering, a question and a compaction; its stored entries."""
    store = MemoryStore()
    box = tools()
    door = memory_door(Scripted(SCRIPT), box, store=store, auto_compact=0.8)
    box[3].door = door
    info = await door.open(OpenSpec(cwd="/", id="s"), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None)
    work = await door.prompt(info.id, (Text("go"),), ME)
    await door.answer((await tape.until(ev.Asked)).body.ask.id, "allow", ME)
    question = await tape.until(ev.Asked, lambda e: e.body.ask.kind == "question")
    await door.answer(question.body.ask.id, "answer", ME, text="blue")
    assert (await work.done).text == "the end"
    entries = await store.entries("s")
    kinds = {entry.kind for entry in entries}
    assert {"compacted", "steered", "asked", "settled", "call_started"} <= kinds
    return entries


def cut(entries, k):
    """A store as a crash right after entry k leaves it."""
    store = MemoryStore()
    state = State("s")
    for entry in entries[:k]:
        body = ev.decode_body(entry.body)
        state.apply(body, entry.at)
        if isinstance(body, ev.Asked):
            store._asks[body.ask.id] = AskRow(body.ask)
        if isinstance(body, ev.Settled):
            store._asks[body.ask_id] = AskRow(store._asks[body.ask_id].ask, body, entry.at)
    kept = MemorySession(state.info(), "dead")
    kept.entries = list(entries[:k])
    store._sessions["s"] = kept
    store._gseq = k
    return store


def check(messages):
    calls = [b.id for m in messages for b in m.content if isinstance(b, ToolCall)]
    results = [b.call_id for m in messages for b in m.content if isinstance(b, ToolResult)]
    assert sorted(calls) == sorted(results)


async def answer_all(door, verdicts):
    for row in await door.asks("s"):
        if row.ask.kind == "question":
            await door.answer(row.ask.id, "answer", ME, text="blue")
        else:
            await door.answer(row.ask.id, verdicts, ME)


@pytest.mark.parametrize("verdict", ["allow", "deny", None])
async def test_every_cut_of_a_turn_loads_is_sound_and_goes_on(verdict):
    entries = await whole_turn()
    for k in range(1, len(entries) + 1):
        store = cut(entries, k)
        box = tools()
        door = memory_door(Scripted(["on"], loop=True), box, store=store)
        await host_of(door).recover()
        info = await door.load("s")
        assert info.status in ("idle", "waiting_input", "interrupted"), (k, info.status)
        pending = await door.asks("s")
        assert bool(pending) == (info.status == "waiting_input"), k
        if pending and verdict is not None:
            tape = Tape()
            await door.watch("s", ME, tape, lambda said: None)
            await answer_all(door, verdict)
            await tape.until(ev.TurnEnded)
            await door.idle("s")
            said = [
                b.content[0].text
                for m in await door.messages("s")
                for b in m.content
                if isinstance(b, ToolResult)
            ]
            if pending[0].ask.kind == "question":
                assert "the user said blue" in said, k
            elif verdict == "allow":
                assert box[0].ran, k
        if pending and verdict is None:  # nothing else may begin before it is settled
            with pytest.raises(Busy):
                await door.prompt("s", (Text("more"),), ME, when_busy="refuse")
            door.cancel("s")
        done = await (await door.prompt("s", (Text("more"),), ME)).done
        assert done.outcome == "completed", k
        assert not await door.asks("s"), k
        messages = await door.messages("s")
        check(messages)
        live = host_of(door).live["s"].state
        stored = await host_of(door).rebuild("s")
        for name in live.__struct_fields__:
            assert name.startswith("_") or getattr(live, name) == getattr(stored, name), (k, name)
        assert msgspec.json.encode(live.info()) == msgspec.json.encode(stored.info())


async def test_a_question_from_before_a_restart_may_be_cancelled_or_cleared():
    entries = await whole_turn()
    asked = next(n for n, e in enumerate(entries, 1) if e.kind == "asked")
    for way in ("cancel", "interrupt", "clear", "compact"):  # the last two wait for the first
        door = memory_door(Scripted(["on"], loop=True), tools(), store=cut(entries, asked + 1))
        tape = Tape()
        await door.watch("s", ME, tape, lambda said: None)
        if way == "cancel":
            door.cancel("s")
            await tape.until(ev.TurnEnded)
        elif way == "interrupt":
            await door.interrupt("s", ME)
        elif way == "clear":
            with pytest.raises(Busy):
                await door.clear("s", ME)
            door.cancel("s")
            await door.clear("s", ME)
        else:
            work = await door.compact("s", ME)
            assert not work.started.done()
            door.cancel("s")
            await work.done
        assert not await door.asks("s"), way
        info = await door.info("s")
        assert info.status == ("interrupted" if way == "interrupt" else "idle"), way
        check(await door.messages("s"))
        done = await (await door.prompt("s", (Text("more"),), ME)).done
        assert done.outcome == "completed", way
