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
    event(6, "spoke", content=text("done"), stop="end_turn"),
    event(7, "turn_ended", turn="t1", outcome="completed"),
    event(8, "turn_began", turn="t2", content=text("say m2x")),
    event(9, "spoke", content=text("m2x is here"), stop="end_turn"),
    event(10, "turn_ended", turn="t2", outcome="completed"),
]


def request(id: str, method: str = "dragoman/prompt") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method}


def told(one: dict[str, Any]) -> Frame:
    return Frame("native1", False, {"method": "dragoman/event", "params": one})


def chunk(said: str) -> Frame:
    update = {"sessionUpdate": "agent_message_chunk", "content": text(said)[0]}
    return Frame("acp2", False, {"method": "session/update", "params": {"update": update}})


def hook(name: str, **data: Any) -> Frame:
    payload = {"hookName": name, "data": data}
    return Frame("app4", False, {"type": "event", "name": f"hook:{name}", "payload": payload})


def relayed(said: str) -> Frame:
    return chunk(said)._replace(wire="relay5")


def everywhere(gseq: int) -> Frame:
    params = {"session": "s", "seq": gseq, "gseq": gseq, "event": {"type": "opened"}}
    return Frame("all6", False, {"method": "dragoman/event", "params": params})


def good() -> tuple[Trace, Ashes]:
    """A small fire in which everything went well."""
    frames = [
        Frame("native1", True, request("1")),
        Frame("native1", True, request("2")),
        Frame("native1", False, {"id": "1", "result": {"turn": "t1"}}),
        Frame("native1", False, {"id": "2", "result": {"turn": "t2", "last": 0}}),
        *(told(one) for one in deepcopy(EVENTS)),
        chunk("done"),
        chunk("m2x is here"),
        Frame("zot3", True, {"id": "7", "type": "get_state"}),
        Frame("zot3", False, {"id": "7", "type": "response", "success": True}),
        Frame("app4", True, {"id": "9", "type": "request", "method": "agent.queue"}),
        Frame("app4", False, {"type": "response", "requestId": "9", "success": True}),
        hook("agent_starting", runId="t1"),
        hook("tool_completed", runId="t1", callId="c1"),
        hook("agent_completed", runId="t1", outcome="completed"),
        relayed("do"),
        relayed("ne"),
        relayed("m2x is here"),
        Frame("all6", False, {"id": "1", "result": {"watch": "w1", "last": 1}}),
        everywhere(2),
        everywhere(3),
    ]
    wires = {
        "native1": Wire("native1", "native", "s"),
        "acp2": Wire("acp2", "acp", "s", whole=True),
        "zot3": Wire("zot3", "zot", "s"),
        "app4": Wire("app4", "openclawos", "s"),
        "relay5": Wire("relay5", "relay", "s"),
        "all6": Wire("all6", "all", "s"),
    }
    promises = [
        Promise("m1x", "s", "native1", "1", "queue"),
        Promise("m2x", "s", "native1", "2", "queue"),
    ]
    said = {name: ["done", "m2x is here"] for name in ("native", "zot", "humanlayer", "acp")}
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


def say_goes_on(trace: Trace, ashes: Ashes) -> None:
    text = "It goes on when it is back. Do not send it again."
    trace.frames[3] = Frame("native1", False, {"id": "2", "error": {"message": text}})
    cut_turn(ashes.sessions["s"].events)


def change(number: int, **data: Any) -> Broken:
    def do(trace: Trace, ashes: Ashes) -> None:
        trace.frames[number].message["payload"]["data"].update(data)

    return do


def jump(trace: Trace, ashes: Ashes) -> None:
    trace.frames[26].message["result"]["last"] = 2


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
    "words twice": (repeat(14), "acp2: was shown 19 characters of 15"),
    "words lost": (drop(15), "acp2: was shown 4 characters of 15"),
    "goes on and does not": (say_goes_on, "m2x: goes on, as native1 was told"),
    "an app not told of an end": (drop(22), "was never told that turn t1 is over"),
    "an app told twice of an end": (repeat(22), "2 times that turn t1 is over"),
    "an app told wrongly of an end": (change(22, outcome="failed"), "a wrong end of turn t1"),
    "an app not told of a call": (drop(21), "was never told that call c1 ran"),
    "an app told twice of a call": (repeat(21), "2 times of call c1"),
    "a relay that missed something": (drop(25), "relay5: showed the answer about m2x 0 times"),
    "a relay that repeats": (repeat(25), "relay5: showed the answer about m2x 2 times"),
    "a cursor ahead": (jump, "all6: was told event 2 after the place 2"),
    "an event skipped": (drop(27), "all6: was told event 3 after the place 1"),
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
    del trace.frames[25]  # what the relay showed of it
    trace.frames[11:14] = [told(one) for one in events[-2:]]
    ashes.sessions["s"].said = {}
    assert not [report for report in check(trace, ashes) if "m2x" in report]
