"""Every rule of the checker fails on a trace that breaks it, and on no other."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from tests.cross.fire.check import check
from tests.cross.fire.trace import Ashes, Deed, Frame, Kept, Promise, Trace, Wire

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


def subscribed(number: int) -> Frame:
    return Frame("subscriber7", False, {"result": {"event": {"type": "x", "seq": number}}})


def message2(kind: str, id: str, said: str) -> Frame:
    content: Any = text(said) if kind == "agent_message" else text(said)[0]
    update = {"sessionUpdate": kind, "messageId": id, "content": content}
    return Frame("acp2-8", False, {"method": "session/update", "params": {"update": update}})


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
        *(subscribed(number) for number in (1, 2)),
        message2("agent_message_chunk", "1", "do"),
        message2("agent_message", "1", "done"),
        message2("agent_message_chunk", "2", "m2x is here"),
        Frame("native1", False, {"id": "3", "result": {}}),
        Frame("native1", False, {"id": "4", "result": {}}),
        subscribed(2)._replace(wire="subscriber9"),
        Frame("native10", False, {"id": "1", "result": {"watch": "w1", "last": 9}}),
        told(deepcopy(EVENTS[9]))._replace(wire="native10"),
    ]
    deeds = [
        Deed("answer", "s", "native1", "3", "a1", "allow"),
        Deed("retract", "s", "native1", "4", "m3x"),
    ]
    wires = {
        "native1": Wire("native1", "native", "s"),
        "acp2": Wire("acp2", "acp", "s", whole=True),
        "zot3": Wire("zot3", "zot", "s"),
        "app4": Wire("app4", "openclawos", "s"),
        "relay5": Wire("relay5", "relay", "s"),
        "all6": Wire("all6", "all", "s"),
        "subscriber7": Wire("subscriber7", "subscriber", "s"),
        "acp2-8": Wire("acp2-8", "acp2", "s", whole=True),
        "subscriber9": Wire("subscriber9", "subscriber", "s", since=1),
        "native10": Wire("native10", "native", "s", since=9),
    }
    promises = [
        Promise("m1x", "s", "native1", "1", "queue"),
        Promise("m2x", "s", "native1", "2", "queue"),
    ]
    said = {name: ["done", "m2x is here"] for name in ("native", "zot", "humanlayer", "acp")}
    whole = Kept(deepcopy(EVENTS), said, told=[{"seq": 1}, {"seq": 2}])
    return Trace(frames, wires, promises, deeds), Ashes({"s": whole}, ["m1x"])


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


def begin_later(trace: Trace, ashes: Ashes) -> None:
    """It came with the place 8 and is not told event 9."""
    trace.wires["native10"].since = 8


def hold(trace: Trace, ashes: Ashes) -> None:
    ashes.sockets = (9, 14)


def differ(trace: Trace, ashes: Ashes) -> None:
    ashes.sessions["s"].said["zot"] = ["done"]


def undo(trace: Trace, ashes: Ashes) -> None:
    trace.deeds.append(Deed("undo", "s", "native1", "5"))
    trace.frames.append(Frame("native1", False, {"id": "5", "result": {}}))


def promise_run(trace: Trace, ashes: Ashes) -> None:
    trace.frames[19].message["result"] = {"queued": True, "runId": "t2"}


def take_back(trace: Trace, ashes: Ashes) -> None:
    trace.frames[:0] = [Frame("native1", False, {"id": "6", "result": {}})]
    trace.deeds.append(Deed("retract", "s", "native1", "6", "m2x"))


def answer_other(trace: Trace, ashes: Ashes) -> None:
    trace.deeds[0] = trace.deeds[0]._replace(verdict="deny")


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
    "taken back and run": (take_back, "m2x: was taken back on native1 and runs"),
    "an answer that does not count": (answer_other, "answered a1 with deny, kept is ['allow']"),
    "an answer that is not kept": (
        kept(lambda e: e.__delitem__(3)),
        "answered a1 with allow, kept is []",
    ),
    "an undo that is not told": (undo, "s: 1 undos were acknowledged, 0 are told"),
    "a run without an end": (promise_run, "never told what became of its run t2"),
    "a subscriber told twice": (repeat(29), "subscriber7: was told 3 of 2 events"),
    "a subscriber that missed something": (drop(29), "subscriber7: was told 1 of 2 events"),
    "one that comes back and misses something": (
        begin_later,
        "native10: came with the place 8 and begins at 9",
    ),
    "a subscriber that comes back and misses something": (
        drop(36),
        "subscriber9: was told 0 of 1 events",
    ),
    "a connection that nobody has": (hold, "the daemon has 14 sockets, and had 9"),
    "words twice in version 2": (repeat(33), "acp2-8: was shown 26 characters of 15"),
    "words lost in version 2": (drop(32), "acp2-8: was shown 13 characters of 15"),
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


def test_a_prompt_that_ran_already_may_be_taken_back_and_an_undo_is_told() -> None:
    trace, ashes = good()
    take_back(trace, ashes)
    trace.frames.append(trace.frames.pop(0))  # after the connection was told that it runs
    undo(trace, ashes)
    noted = event(11, "noted", data={"checkpoint": "undone"})
    ashes.sessions["s"].events.append(noted)
    assert check(trace, ashes) == []


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


@pytest.mark.parametrize("left", [True, False], ids=["it left", "somebody lost it"])
def test_a_prompt_that_its_own_client_stopped_need_not_have_begun(left: bool) -> None:
    trace, ashes = good()
    trace.promises.append(Promise("m9x", "s", "acp2", "p", "prompt"))
    stops = request("c", "session/close" if left else "session/list")
    trace.frames += (
        Frame("acp2", True, request("p", "session/prompt")),
        Frame("acp2", True, stops),
        Frame("acp2", False, {"id": "p", "result": {"stopReason": "cancelled"}}),
        Frame("acp2", False, {"id": "c", "result": {}}),
    )
    lost = "m9x: prompt on acp2 was acknowledged and is in no history"
    assert check(trace, ashes) == ([] if left else [lost])


def send_again(trace: Trace, ashes: Ashes) -> None:
    """The first prompt once more, behind the second; it is told that it was taken."""
    trace.frames += (
        Frame("native1", True, request("5")),
        Frame("native1", False, {"id": "5", "error": {"code": -1, "message": "taken before"}}),
    )
    trace.promises.append(Promise("m1x", "s", "native1", "5", "again"))


def test_a_prompt_that_was_sent_again_is_one_prompt() -> None:
    trace, ashes = good()
    send_again(trace, ashes)
    assert check(trace, ashes) == []
    ashes.sessions["s"].events += deepcopy(EVENTS[1:2] + EVENTS[6:7])
    renumber(ashes.sessions["s"].events)
    assert "m1x: stands 2 times in the history of s" in check(trace, ashes)


def test_a_prompt_that_was_sent_again_goes_on_as_the_first_one_was_told() -> None:
    trace, ashes = good()
    send_again(trace, ashes)
    text = "It goes on when it is back. Do not send it again."
    trace.frames[2] = Frame("native1", False, {"id": "1", "error": {"message": text}})
    assert check(trace, ashes) == []


def test_a_question_of_the_agent_must_be_settled_as_well() -> None:
    trace, ashes = good()
    question = event(11, "asked", ask={"id": "a2", "call_id": "c2", "kind": "question"})
    ashes.sessions["s"].events.append(question)
    assert "s: question a2 was never settled" in check(trace, ashes)
