"""Reads a trace and what is left of it, and reports everything that must never be.

It knows frames and public histories only. Each rule has a deliberately broken trace in
`test_check.py`, which shows that the rule can fail.
"""

from collections import Counter
from collections.abc import Iterator

from tests.cross.fire.trace import Ashes, Deed, Frame, Kept, Message, Promise, Trace

_SPARE_SOCKETS = 2  # that a daemon makes after its start, for itself


def check(trace: Trace, ashes: Ashes) -> list[str]:
    """Every broken rule, in words."""
    return [
        *answers(trace),
        *promises(trace, ashes),
        *deeds(trace, ashes),
        *order(trace, ashes),
        *approvals(ashes),
        *effects(ashes),
        *numbers(ashes),
        *one_history(ashes),
        *watches(trace, ashes),
        *cursors(trace),
        *hooks(trace, ashes),
        *relays(trace, ashes),
        *words(trace, ashes),
        *subscribers(trace, ashes),
        *rest(ashes),
        *leavings(ashes),
    ]


# --- requests ---------------------------------------------------------------------------------


def request_id(message: Message) -> str | None:
    """The id of a request of ours, whatever the protocol."""
    if "method" in message or message.get("type") not in (None, "response", "event"):
        found = message.get("id")
        return None if found is None else str(found)
    return None


def answered_id(message: Message) -> str | None:
    """The id that an answer names."""
    if message.get("type") == "response":
        found = message.get("requestId", message.get("id"))
    elif "method" in message or not ("result" in message or "error" in message):
        return None
    else:
        found = message.get("id")
    return None if found is None else str(found)


def answers(trace: Trace) -> Iterator[str]:
    """Every request has exactly one answer, unless its connection ended first."""
    for name, wire in trace.wires.items():
        asked = [request_id(f.message) for f in trace.of(name) if f.out]
        given = Counter(answered_id(f.message) for f in trace.of(name) if not f.out)
        for id in filter(None, asked):
            if given[id] > 1:
                yield f"{name}: request {id} was answered {given[id]} times"
            if not given[id] and not wire.cut:
                yield f"{name}: request {id} was never answered"


def succeeded(trace: Trace, wire: str, id: str) -> bool:
    for frame in trace.of(wire):
        if not frame.out and answered_id(frame.message) == id:
            return "error" not in frame.message and frame.message.get("success", True) is True
    return False


def refused(trace: Trace, wire: str, id: str) -> bool:
    return any(
        not frame.out
        and answered_id(frame.message) == id
        and ("error" in frame.message or frame.message.get("success") is False)
        for frame in trace.of(wire)
    )


def goes_on(trace: Trace, wire: str, id: str) -> bool:
    """It was answered that the host stops and the prompt goes on when it is back."""
    return any(
        not frame.out
        and answered_id(frame.message) == id
        and "when it is back" in str(frame.message)
        and "not send it again" in str(frame.message)
        for frame in trace.of(wire)
    )


# --- what was acknowledged --------------------------------------------------------------------


def user_texts(kept: Kept) -> list[str]:
    found = []
    for told in kept.events:
        event = told["event"]
        if event["type"] in ("turn_began", "steered"):
            found.append("".join(b.get("text", "") for b in event["content"]))
    return found


def told_ended(kept: Kept, mark: str) -> bool:
    """An event says that this prompt will not run any more."""
    events = [told["event"] for told in kept.events]
    waited = {e["id"] for e in events if e["type"] == "queued" and mark in str(e["content"])}
    return any(event["type"] == "dropped" and event["id"] in waited for event in events)


def stopped_itself(trace: Trace, one: Promise) -> bool:
    """Its own client left or cancelled right behind it, and was answered that it was cancelled:
    in ACP that answer is its end, and it may come before the prompt began.
    """
    sent = stopped = False
    for frame in trace.of(one.wire):
        if not frame.out and answered_id(frame.message) == one.id:
            result = frame.message.get("result") or {}
            return stopped and result.get("stopReason") == "cancelled"
        sent = sent or request_id(frame.message) == one.id
        ends = frame.message.get("method") in ("session/close", "session/cancel")
        stopped = stopped or sent and frame.out and ends
    return False


def promises(trace: Trace, ashes: Ashes) -> Iterator[str]:
    """Acknowledged work is in the history once, or its end was told; nothing runs twice."""
    back = {deed.about for deed in trace.deeds if deed.kind == "retract" and done(trace, deed)}
    taken = {
        one.mark
        for one in trace.promises
        if not refused(trace, one.wire, one.id) or goes_on(trace, one.wire, one.id)
    }
    for one in trace.promises:
        kept = ashes.sessions.get(one.session)
        if kept is None:
            yield f"{one.mark}: its session {one.session} is gone"
            continue
        times = sum(one.mark in text for text in user_texts(kept))
        if times > 1:
            yield f"{one.mark}: stands {times} times in the history of {one.session}"
        acknowledged = succeeded(trace, one.wire, one.id) and one.mark not in back
        ended = told_ended(kept, one.mark) or stopped_itself(trace, one)
        if acknowledged and not times and not ended:
            yield f"{one.mark}: {one.kind} on {one.wire} was acknowledged and is in no history"
        if goes_on(trace, one.wire, one.id):
            if not times and not told_ended(kept, one.mark):
                yield f"{one.mark}: goes on, as {one.wire} was told, and is in no history"
        elif one.mark not in taken and times and not turn_closed(kept, one.mark):
            yield f"{one.mark}: was refused on {one.wire} and runs all the same"


def turn_closed(kept: Kept, mark: str) -> bool:
    """The turn of this mark has an end that is not a plain success: its sender may have failed."""
    turn = next(
        (
            told["event"]["turn"]
            for told in kept.events
            if told["event"]["type"] == "turn_began" and mark in str(told["event"]["content"])
        ),
        None,
    )
    return any(
        told["event"]["type"] == "turn_ended"
        and told["event"]["turn"] == turn
        and told["event"]["outcome"] != "completed"
        for told in kept.events
    )


def done(trace: Trace, deed: Deed) -> bool:
    return succeeded(trace, deed.wire, deed.id)


def deeds(trace: Trace, ashes: Ashes) -> Iterator[str]:
    """What was taken back does not begin, an answer that was taken counts, an undo is told."""
    verdicts: dict[str, list[str]] = {}
    for kept in ashes.sessions.values():
        for told in kept.events:
            if told["event"]["type"] == "settled":
                verdicts.setdefault(told["event"]["ask_id"], []).append(told["event"]["verdict"])
    for one in trace.deeds:
        session = ashes.sessions.get(one.session)
        if session is None or not done(trace, one):
            continue
        if one.kind == "retract":
            begun = any(one.about in text for text in user_texts(session))
            stopped = turn_closed(session, one.about) or _began_before(trace, one)
            if begun and not stopped:
                yield f"{one.about}: was taken back on {one.wire} and runs all the same"
        elif one.kind == "answer":
            settled = verdicts.get(one.about, [])
            if settled != [one.verdict]:
                yield f"{one.wire}: answered {one.about} with {one.verdict}, kept is {settled}"
    for name, kept in ashes.sessions.items():
        asked = sum(d.kind == "undo" and d.session == name and done(trace, d) for d in trace.deeds)
        shown = sum("'checkpoint': 'undone'" in str(t["event"].get("data")) for t in kept.events)
        if shown < asked:
            yield f"{name}: {asked} undos were acknowledged, {shown} are told"


def _began_before(trace: Trace, deed: Deed) -> bool:
    """Whether this connection was told that the prompt runs before it was told it is taken back:
    then it was stopped, if it had not just come to its end.
    """
    for frame in trace.of(deed.wire):
        if not frame.out and answered_id(frame.message) == deed.id:
            return False
        event = (frame.message.get("params") or {}).get("event") or {}
        if event.get("type") == "turn_began" and deed.about in str(event["content"]):
            return True
    return False


def order(trace: Trace, ashes: Ashes) -> Iterator[str]:
    """What one connection queued in one session runs in the order in which it was sent."""
    for session, kept in ashes.sessions.items():
        texts = user_texts(kept)
        for wire in trace.wires:
            sent = [
                p.mark
                for p in trace.promises
                if p.wire == wire
                and p.session == session
                and p.kind != "steer"
                and not refused(trace, wire, p.id)
            ]
            marks = dict.fromkeys(sent)  # what was sent twice has the place of the first
            places = [
                next(n for n, text in enumerate(texts) if mark in text)
                for mark in marks
                if any(mark in text for text in texts)
            ]
            if places != sorted(places):
                yield f"{wire}: prompts of {session} ran in the order {places}"


# --- approvals and tools ----------------------------------------------------------------------


def approvals(ashes: Ashes) -> Iterator[str]:
    """Every question is settled once; no tool that was asked about starts without a yes."""
    for session, kept in ashes.sessions.items():
        asked: dict[str, str] = {}  # question → call
        settled: dict[str, str] = {}  # question → verdict
        for told in kept.events:
            event = told["event"]
            if event["type"] == "asked" and event["ask"].get("kind") != "question":
                asked[event["ask"]["id"]] = event["ask"].get("call_id", "")
            elif event["type"] == "settled":
                ask = event["ask_id"]
                if ask in settled:
                    yield f"{session}: question {ask} was settled twice"
                settled[ask] = event["verdict"]
            elif event["type"] == "call_started":
                questions = [ask for ask, call in asked.items() if call == event["call_id"]]
                if questions and not any(
                    settled.get(ask, "").startswith("allow") for ask in questions
                ):
                    yield f"{session}: call {event['call_id']} started without its approval"
        for ask in questions_of(kept) - settled.keys():
            yield f"{session}: question {ask} was never settled"


def questions_of(kept: Kept) -> set[str]:
    events = (told["event"] for told in kept.events)
    return {event["ask"]["id"] for event in events if event["type"] == "asked"}


def effects(ashes: Ashes) -> Iterator[str]:
    """A tool's effect on the disk happens once."""
    for mark, times in Counter(ashes.ran).items():
        if times > 1:
            yield f"{mark}: its command ran {times} times"


# --- histories --------------------------------------------------------------------------------


def numbers(ashes: Ashes) -> Iterator[str]:
    """The events of a session are numbered from one, without a hole."""
    for session, kept in ashes.sessions.items():
        seqs = [told["seq"] for told in kept.events]
        if seqs != list(range(1, len(seqs) + 1)):
            yield f"{session}: its events are numbered {seqs[:5]}…{seqs[-5:]}"


def one_history(ashes: Ashes) -> Iterator[str]:
    """Every dialect shows the same words."""
    for session, kept in ashes.sessions.items():
        if not kept.said:
            continue
        first, *others = kept.said
        for other in others:
            if "".join(kept.said[other]) != "".join(kept.said[first]):
                yield f"{session}: {other} and {first} tell different histories"


def watches(trace: Trace, ashes: Ashes) -> Iterator[str]:
    """A native watch is told every kept event once, in order, as the history has it."""
    for name, wire in trace.wires.items():
        if wire.dialect != "native" or wire.session not in ashes.sessions:
            continue
        kept = {told["seq"]: told for told in ashes.sessions[wire.session].events}
        told = [
            f.message["params"]
            for f in trace.of(name)
            if not f.out and f.message.get("method") == "dragoman/event"
        ]
        seqs = [one["seq"] for one in told if one["seq"]]
        if any(b != a + 1 for a, b in zip(seqs, seqs[1:], strict=False)):
            yield f"{name}: was told the events {seqs}"
        for one in told:
            if one["seq"] and kept.get(one["seq"], {}).get("event") != one["event"]:
                yield f"{name}: event {one['seq']} differs from the history"


def cursors(trace: Trace) -> Iterator[str]:
    """A watch begins right after the place that it was told, and jumps over nothing."""
    for name, wire in trace.wires.items():
        if wire.dialect not in ("native", "all"):
            continue
        place: int | None = None
        for frame in trace.of(name):
            message = frame.message
            if not frame.out and "last" in (message.get("result") or {}):
                place = message["result"]["last"]
                if wire.since is not None and place != wire.since:
                    yield f"{name}: came with the place {wire.since} and begins at {place}"
            if frame.out or message.get("method") != "dragoman/event":
                continue
            told = message["params"]
            at = told["gseq"] if wire.dialect == "all" else told["seq"]
            if not told["seq"]:
                continue
            if place is None or at != place + 1:
                yield f"{name}: was told event {at} after the place {place}"
            place = at


def _hook(frame: Frame, name: str) -> Message | None:
    """What an app was told at a hook."""
    message = frame.message
    payload = message.get("payload") or message.get("params") or {}
    if frame.out or payload.get("hookName") != name:
        return None
    data: Message = payload.get("data") or {}
    return data


def hooks(trace: Trace, ashes: Ashes) -> Iterator[str]:
    """An app that stayed is told of the end of every turn whose beginning it was told, once;
    and of every call that ran in it. Whoever is told is told the truth.
    """
    ends: dict[str, str] = {}
    ran: dict[str, list[str]] = {}
    for kept in ashes.sessions.values():
        for told in kept.events:
            event = told["event"]
            if event["type"] == "turn_ended":
                ends[event["turn"]] = event["outcome"]
            elif event["type"] == "call_started":
                ran.setdefault(event["turn"], []).append(event["call_id"])
    for name, wire in trace.wires.items():
        if wire.dialect != "openclawos":
            continue
        frames = trace.of(name)
        began = [d["runId"] for f in frames if (d := _hook(f, "agent_starting")) is not None]
        over = [d for f in frames if (d := _hook(f, "agent_completed")) is not None]
        calls = Counter(
            (d["runId"], d["callId"])
            for f in frames
            if (d := _hook(f, "tool_completed")) is not None
        )
        times = Counter(d["runId"] for d in over)
        for turn, count in times.items():
            if count > 1:
                yield f"{name}: was told {count} times that turn {turn} is over"
        for data in over:
            if data["runId"] in ends and ends[data["runId"]] != data["outcome"]:
                yield f"{name}: was told a wrong end of turn {data['runId']}"
        for key, count in calls.items():
            if count > 1:
                yield f"{name}: was told {count} times of call {key[1]}"
        if wire.cut:
            continue
        for turn in _queued(frames):
            if not times[turn]:
                yield f"{name}: was never told what became of its run {turn}"
        for turn in began:
            if turn in ends and not times[turn]:
                yield f"{name}: was never told that turn {turn} is over"
            for call in ran.get(turn, ()):
                if not calls[turn, call]:
                    yield f"{name}: was never told that call {call} ran"


def _queued(frames: list[Frame]) -> Iterator[str]:
    """The runs that an app was promised."""
    for frame in frames:
        result = frame.message.get("result")
        if not frame.out and isinstance(result, dict) and result.get("queued"):
            yield result["runId"]


def subscribers(trace: Trace, ashes: Ashes) -> Iterator[str]:
    """Who subscribed from the beginning and stayed was told what one who comes late is told."""
    for name, wire in trace.wires.items():
        if wire.dialect != "subscriber" or wire.session not in ashes.sessions:
            continue
        told = [number for f in trace.of(name) if (number := _numbered(f)) is not None]
        after = wire.since or 0
        late = [one["seq"] for one in ashes.sessions[wire.session].told if one["seq"] > after]
        late = late[: len(told)] if wire.cut else late
        if told != late:
            at = next((n for n, (a, b) in enumerate(zip(told, late, strict=False)) if a != b), -1)
            yield f"{name}: was told {len(told)} of {len(late)} events, different at {at}"


def _numbered(frame: Frame) -> int | None:
    event = (frame.message.get("result") or {}).get("event") or {}
    return None if frame.out else event.get("seq")


def relays(trace: Trace, ashes: Ashes) -> Iterator[str]:
    """A relay that outlived hosts has shown every whole message once, whoever asked for it."""
    for name, wire in trace.wires.items():
        if (
            wire.dialect not in ("relay", "bridge")
            or wire.cut
            or wire.session not in ashes.sessions
        ):
            continue
        shown = "".join(_shown(f.message) for f in trace.of(name) if not f.out)
        whole = ""
        for told in ashes.sessions[wire.session].events:
            event = told["event"]
            if event["type"] == "spoke" and event["stop"] not in ("aborted", "error"):
                whole += "".join(b["text"] for b in event["content"] if b["type"] == "text") + " "
        for mark in sorted({p.mark for p in trace.promises if p.session == wire.session}):
            kept, seen = whole.count(f"{mark} is here"), shown.count(f"{mark} is here")
            if kept != seen:
                yield f"{name}: showed the answer about {mark} {seen} times, kept are {kept}"


def words(trace: Trace, ashes: Ashes) -> Iterator[str]:
    """A client that was there from the beginning was shown the agent's words once."""
    for name, wire in trace.wires.items():
        if not wire.whole or wire.cut or wire.session not in ashes.sessions:
            continue
        shown = "".join(_shown(f.message) for f in trace.of(name) if not f.out)
        if wire.dialect == "acp2":
            shown = "".join(_messages(trace.of(name)).values())
        told = "".join(_agent_said(ashes.sessions[wire.session]))
        if shown != told:
            at = next((n for n, (a, b) in enumerate(zip(shown, told, strict=False)) if a != b), -1)
            yield (
                f"{name}: was shown {len(shown)} characters of {len(told)}"
                f" (different at {at}: {shown[at : at + 40]!r}, kept {told[at : at + 40]!r})"
            )


def _shown(message: Message) -> str:
    params = message.get("params") or {}
    update = params.get("update") or {}
    if update.get("sessionUpdate") == "agent_message_chunk":
        return str(update["content"].get("text", ""))
    return ""


def _messages(frames: list[Frame]) -> dict[str, str]:
    """The agent's messages by their ids, as a client of version 2 has them at last."""
    found: dict[str, str] = {}
    for frame in frames:
        update = (frame.message.get("params") or {}).get("update") or {}
        id = update.get("messageId", "")
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                found[id] = found.get(id, "") + _shown(frame.message)
            case "agent_message":
                found[id] = "".join(block.get("text", "") for block in update["content"])
    return found


def _agent_said(kept: Kept) -> Iterator[str]:
    for told in kept.events:
        if told["event"]["type"] == "spoke":
            for block in told["event"]["content"]:
                if block["type"] == "text":
                    yield block["text"]


def rest(ashes: Ashes) -> Iterator[str]:
    """When everybody is quiet, nothing runs and every turn has its end."""
    for session, kept in ashes.sessions.items():
        if kept.status not in ("idle", "failed", "interrupted"):
            yield f"{session}: is {kept.status} though everything was answered"
        began = [t["event"]["turn"] for t in kept.events if t["event"]["type"] == "turn_began"]
        ended = Counter(
            t["event"]["turn"] for t in kept.events if t["event"]["type"] == "turn_ended"
        )
        for turn in began:
            if ended[turn] != 1:
                yield f"{session}: turn {turn} ended {ended[turn]} times"


def leavings(ashes: Ashes) -> Iterator[str]:
    """A daemon that everybody left holds no connection any more."""
    first, last = ashes.sockets
    if last > first + _SPARE_SOCKETS:
        yield f"the daemon has {last} sockets, and had {first} at its start"
