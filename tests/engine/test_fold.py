"""State × event: what each fact does, and that the stored facts always give the live state."""

import asyncio
import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.tape import ME

from dragoman.engine import events as ev
from dragoman.engine.content import (
    Detail,
    Message,
    PlanEntry,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from dragoman.engine.events import Ask, Who
from dragoman.engine.faults import Fault
from dragoman.engine.host import OpenSpec
from dragoman.engine.state import SUMMARY_HEAD, State
from dragoman.testing.host import MODEL, EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, fail, say, turn

OPENED = ev.Opened("default", "/", "m", "supervised", by=Who("acp"))
CALL = ToolCall("c1", "echo", {})


def folded(*bodies: ev.Kept) -> State:
    state = State("s")
    for at, body in enumerate((OPENED, *bodies), 1):
        state.apply(body, at)
    return state


def user(text: str) -> Message:
    return Message("user", (Text(text),))


BEGAN = ev.TurnBegan("t1", (Text("hi"),), key="k1")
CALLS = ev.Spoke("t1", 1, (Text("a"), CALL), "tool_use", Usage(10, 5), 0.5)
ASK = Ask("ask_1", "s", "tool", "?", 0, turn="t1", call_id="c1")
EDGES = [
    # (facts, what must hold of the state)
    ((), {"status": "idle", "origin": "acp", "agent": "default", "turn": ""}),
    ((BEGAN,), {"turn": "t1", "turns": 1, "query": "hi", "keys": {"k1": "t1"}}),
    ((BEGAN, CALLS), {"journal": {"c1": ("echo", False)}, "cost": 0.5, "steps": 1}),
    ((BEGAN, CALLS, ev.CallStarted("t1", "c1", "echo")), {"journal": {"c1": ("echo", True)}}),
    ((BEGAN, CALLS, ev.CallRefined("t1", "c1", "echo", {"text": "b"})), {"steps": 1}),
    ((BEGAN, CALLS, ev.CallEnded("t1", "c1", "echo", "done")), {"journal": {}}),
    (
        (BEGAN, CALLS, ev.CallRefined("t1", "c1", "echo", {"more": 1})),
        {"journal": {"c1": ("echo", False)}},
    ),
    ((BEGAN, ev.Spoke("t1", 1, (), "aborted")), {"steps": 1, "turn": "t1"}),
    ((BEGAN, ev.TurnEnded("t1", "failed", "error", error="no")), {"turn": "", "error": "no"}),
    ((BEGAN, ev.TurnEnded("t1", "completed", "end_turn", "x")), {"result": "x", "ended_at": 3}),
    ((ev.Asked(ASK),), {"asks": {"ask_1": ASK}}),
    ((ev.Asked(ASK), ev.Settled("ask_1", "allow")), {"asks": {}}),
    ((ev.StatusChanged("idle", "running"),), {"status": "running"}),
    ((ev.Renamed("t"),), {"title": "t", "updated_at": 1}),
    ((ev.ModelSet("x/y"),), {"model": "x/y"}),
    ((ev.ModeSet("full"),), {"mode": "full"}),
    ((ev.ReasoningSet("high"),), {"reasoning": "high"}),
    ((ev.Planned((PlanEntry("p"),)),), {"plan": (PlanEntry("p"),)}),
    ((ev.Archived(True),), {"archived": True, "updated_at": 1}),
    ((ev.Allowed("bash"),), {"denied": set()}),
    ((ev.Allowed("bash", deny=True),), {"denied": {"bash"}}),
    ((ev.Allowed("bash", True, "rule_1", "this tool"),), {"denied": set()}),
    ((ev.ExtraSet({"a": 1}), ev.ExtraSet({"a": None, "b": 2})), {"extra": {"b": 2}}),
    ((ev.Seeded("p", (user("old"),)),), {"messages": [user("old")]}),
    ((BEGAN, ev.Cleared()), {"messages": [], "turns": 1}),
]


@pytest.mark.parametrize("facts, expected", EDGES, ids=lambda v: type(v).__name__)
def test_each_fact_does_one_thing(facts, expected):
    state = folded(*facts)
    assert {key: getattr(state, key) for key in expected} == expected
    assert state.seq == len(facts) + 1


def test_results_of_one_batch_make_one_tool_message():
    two = ev.Spoke("t1", 1, (CALL, ToolCall("c2", "echo", {})), "tool_use")
    done = [ev.CallEnded("t1", c, "echo", "done", (Text(c),)) for c in ("c1", "c2")]
    state = folded(BEGAN, two, *done)
    assert [m.role for m in state.messages] == ["user", "assistant", "tool"]
    assert [b.call_id for b in state.messages[-1].content] == ["c1", "c2"]


def test_compaction_drops_results_whose_calls_are_gone():
    result = ev.CallEnded("t1", "c1", "echo", "done", (Text("r"),))
    state = folded(BEGAN, CALLS, result, ev.Spoke("t1", 2, (Text("b"),), "end_turn"))
    state.apply(ev.Compacted("sum", 2), 9)
    assert state.messages[0].content == (Text(f"{SUMMARY_HEAD}\n\nsum"),)
    assert [m.role for m in state.messages] == ["user", "assistant"]
    assert not any(isinstance(b, ToolResult) for m in state.messages for b in m.content)


def test_every_kept_fact_survives_the_store():
    samples = [OPENED, *(fact for facts, _ in EDGES for fact in facts), CALLS]
    samples += [ev.Compacted("s", 1), ev.Noted("info", "t", data={"a": 1}), ev.Steered("t", ())]  # type: ignore[list-item]
    samples += [ev.Queued("t2", (Text("x"),), key="k"), ev.Dropped("t2", "closed")]  # type: ignore[list-item]
    samples.append(ev.CallEnded("t", "c", "n", "unknown", (Text("x"),), True))
    printed = Detail(exit_code=0, output=(2, 3), raw=b"\xff\x00")
    samples.append(ev.CallEnded("t", "c", "n", "done", (Text("x"),), False, printed))
    samples.append(ev.Delegated("t", "c", "s2", "Looker", "explore"))
    for body in samples:
        assert ev.decode_body(ev.encode_body(body)) == body
    assert {type(body) for body in samples} == set(typing.get_args(ev.Kept))


OPS = st.sampled_from(
    ["plain", "tool", "denied", "fails", "rename", "mode", "clear", "compact", "fork", "archive"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(OPS, max_size=12))
def test_the_stored_facts_give_the_live_state(ops):
    asyncio.run(act(ops))


async def act(ops: list[str]) -> None:
    parts = {
        "plain": [say("words", deltas=2)],
        "tool": [call("echo", text="x"), "then"],
        "denied": [call("echo", text="x"), "then"],
        "fails": [turn("half", fail("network"))],
        "compact": ["a summary"],
    }
    script = Scripted([part for op in ops for part in parts.get(op, ())] + ["spare"] * 20)  # type: ignore[attr-defined]
    door = memory_door(script, [EchoTool()])
    host_of(door).models.more = {"scripted/other": msgspec.structs.replace(MODEL, id="other")}  # type: ignore[attr-defined]
    info = await door.open(OpenSpec(cwd="/"), ME)
    sid = info.id
    for op in ops:
        if op in ("plain", "tool", "denied", "fails"):
            work = await door.prompt(sid, (Text(op),), ME)
            while not work.done.done():
                for row in await door.asks(sid):
                    await door.answer(row.ask.id, "allow" if op == "tool" else "deny", ME)
                await asyncio.sleep(0)
        elif op == "rename":
            await door.rename(sid, "x")
        elif op == "mode":
            await door.set_mode(sid, "supervised")
        elif op == "clear":
            await door.clear(sid)
        elif op == "archive":
            await door.archive(sid)
        elif op == "fork":
            sid = (await door.fork(sid, ME)).id
        else:
            work = await door.compact(sid)
            try:
                await work.done
            except Fault:
                continue
    live = host_of(door).live[sid].state
    again = await host_of(door).rebuild(sid)
    for slot in State.__struct_fields__:
        assert slot[0] == "_" or getattr(again, slot) == getattr(live, slot), slot
    assert await host_of(door).store.info(sid) == live.info()
