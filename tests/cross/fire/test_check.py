"""Every rule of the checker fails on a trace that breaks it, and on no other."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from tests.cross.fire.check import check
from tests.cross.fire.trace import Ashes, Frame, Kept, Promise, Trace, Wire

Broken = Callable[[Trace, Ashes], None]


def event(seq: int, type: str, **fields: Any) -> dict[str, Any]:
    return {"session": "s", "seq": seq, "event": {"type": type, **fields}}


def text(said: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": said}]


EVENTS = [
    event(1, "opened"),
    event(2, "turn_began", turn="t1", content=text("$ echo m1x")),
    event(3, "asked", ask={"id": "a1", "call_id": "c1"}),
    event(4, "settled", ask_id="a1", verdict="allow"),
    event(5, "call_started", turn="t1", call_id="c1"),
    event(6, "spoke", content=text("done")),
    event(7, "turn_ended", turn="t1", outcome="completed"),
    event(8, "turn_began", turn="t2", content=text("say m2x")),
    event(9, "spoke", content=text("m2x")),
    event(10, "turn_ended", turn="t2", outcome="completed"),
]


def request(id: str, method: str = "dragoman/prompt") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method}


def told(one: dict[str, Any]) -> Frame:
    return Frame("native1", False, {"method": "dragoman/event", "params": one})


def chunk(said: str) -> Frame:
    update = {"sessionUpdate": "agent_message_chunk", "content": text(said)[0]}
    return Frame("acp2", False, {"method": "session/update", "params": {"update": update}})


def good() -> tuple[Trace, Ashes]:
    """A small fire in which everything went well."""
    frames = [
        Frame("native1", True, request("1")),
        Frame("native1", True, request("2")),
        Frame("native1", False, {"id": "1", "result": {"turn": "t1"}}),
        Frame("native1", False, {"id": "2", "result": {"turn": "t2"}}),
        *(told(one) for one in deepcopy(EVENTS)),
        chunk("done"),
        chunk("m2x"),
        Frame("zot3", True, {"id": "7", "type": "get_state"}),
        Frame("zot3", False, {"id": "7", "type": "response", "success": True}),
        Frame("app4", True, {"id": "9", "type": "request", "method": "agent.queue"}),
        Frame("app4", False, {"type": "response", "requestId": "9", "success": True}),
    ]
    wires = {
        "native1": Wire("native1", "native", "s"),
        "acp2": Wire("acp2", "acp", "s", whole=True),
        "zot3": Wire("zot3", "zot", "s"),
        "app4": Wire("app4", "openclawos", "s"),
    }
    promises = [
        Promise("m1x", "s", "native1", "1", "queue"),
        Promise("m2x", "s", "native1", "2", "queue"),
    ]
    said = {name: ["done", "m2x"] for name in ("native", "zot", "humanlayer", "acp")}
    return Trace(frames, wires, promises), Ashes({"s": Kept(deepcopy(EVENTS), said)}, ["m1x"])


def drop(number: int) -> Broken:
    return lambda trace, ashes: trace.frames.__delitem__(number)


def repeat(number: int) -> Broken:
    return lambda trace, ashes: trace.frames.append(trace.frames[number])


def kept(change: Callable[[list[Any]], Any]) -> Broken:
    return lambda trace, ashes: change(ashes.sessions["s"].events)


def renumber(events: list[Any]) -> None:
    for seq, one in enumerate(events, 1):
        one["seq"] = seq


def cut_turn(events: list[Any]) -> None:
    del events[7:]


def run_again(events: list[Any]) -> None:
    events += deepcopy(events[7:10])
    renumber(events)


def swap_turns(events: list[Any]) -> None:
    events[1:] = events[7:10] + events[1:7]
    renumber(events)


def refuse(trace: Trace, ashes: Ashes) -> None:
    trace.frames[3] = Frame("native1", False, {"id": "2", "error": {"code": -1}})


def differ(trace: Trace, ashes: Ashes) -> None:
    ashes.sessions["s"].said["zot"] = ["done"]


def unrest(trace: Trace, ashes: Ashes) -> None:
    ashes.sessions["s"].status = "running"


def lose_session(trace: Trace, ashes: Ashes) -> None:
    del ashes.sessions["s"]


BROKEN: dict[str, tuple[Broken, str]] = {
    "no answer": (drop(2), "request 1 was never answered"),
    "no answer in zot": (drop(17), "request 7 was never answered"),
    "no answer to an app": (drop(19), "request 9 was never answered"),
    "two answers": (repeat(2), "request 1 was answered 2 times"),
    "acknowledged and lost": (kept(cut_turn), "m2x: queue on native1 was acknowledged"),
    "run twice": (kept(run_again), "m2x: stands 2 times"),
    "the session is gone": (lose_session, "its session s is gone"),
    "refused and run": (refuse, "m2x: was refused on native1 and runs"),
    "out of order": (kept(swap_turns), "ran in the order [1, 0]"),
    "settled twice": (kept(lambda e: e.append(deepcopy(e[3]))), "a1 was settled twice"),
    "never settled": (kept(lambda e: e.__delitem__(3)), "a1 was never settled"),
    "started without a yes": (
        kept(lambda e: e[3]["event"].update(verdict="deny")),
        "c1 started without its approval",
    ),
    "an effect twice": (lambda t, a: a.ran.append("m1x"), "its command ran 2 times"),
    "a hole in the numbers": (kept(lambda e: e.__delitem__(5)), "its events are numbered"),
    "different histories": (differ, "zot and native tell different histories"),
    "a watch with a hole": (drop(8), "native1: was told the events"),
    "a watch told twice": (repeat(6), "native1: was told the events"),
    "a watch told wrongly": (
        kept(lambda e: e[5]["event"].update(content=text("other"))),
        "event 6 differs from the history",
    ),
    "words twice": (repeat(14), "acp2: was shown 11 characters of 7"),
    "words lost": (drop(15), "acp2: was shown 4 characters of 7"),
    "no rest": (unrest, "is running though everything was answered"),
    "a turn without its end": (kept(lambda e: e.__delitem__(9)), "turn t2 ended 0 times"),
}


def test_a_good_fire_has_no_report() -> None:
    assert check(*good()) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_one_is_reported(name: str) -> None:
    trace, ashes = good()
    breaks, said = BROKEN[name]
    breaks(trace, ashes)
    assert any(said in report for report in check(trace, ashes)), check(trace, ashes)


def test_a_cut_connection_may_leave_its_request_open() -> None:
    trace, ashes = good()
    del trace.frames[2]
    trace.wires["native1"].cut = True
    assert check(trace, ashes) == []


def test_work_whose_end_was_told_is_not_lost() -> None:
    trace, ashes = good()
    events = ashes.sessions["s"].events
    cut_turn(events)
    events.append(event(8, "queued", id="t2", content=text("say m2x")))
    events.append(event(9, "dropped", id="t2", reason="the session was closed"))
    trace.frames[11:14] = [told(one) for one in events[-2:]]
    ashes.sessions["s"].said = {}
    assert not [report for report in check(trace, ashes) if "m2x" in report]
