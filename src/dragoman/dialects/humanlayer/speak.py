"""Engine events as this protocol's events: one line each, encoded once per filter."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.content import Image, Text, Thinking, ToolCall, text_of
from dragoman.engine.door import Door
from dragoman.engine.events import ACTIVE, Event
from dragoman.engine.faults import Fault
from dragoman.engine.traits import Waiver
from dragoman.holding import Holder
from dragoman.wire.codec import sorted_encode
from dragoman.wire.link import Blob

from .approvals import kind_of, said, status_word
from .past import Past
from .rows import Own, error_of
from .times import precise

STATUS = "session_status_changed"
CONVERSATION = "conversation_updated"
NEW_APPROVAL = "new_approval"
RESOLVED = "approval_resolved"
SETTINGS = "session_settings_changed"
DROPPED = "events_dropped"

HEARTBEAT = b'{"jsonrpc":"2.0","result":{"type":"heartbeat","message":"Connection alive"}}'
Data = dict[str, Any]
# Numbers that one kept event has for its wire events: more than a model can say blocks in one
# call, and 9 * 10**9 events still fit into the integers that a double holds.
PER_EVENT = 1_000_000
_TOKENS = "token_update"
_LOOK_SECONDS = 1.0
_SEQ = b',"seq":'


class Filter(msgspec.Struct, frozen=True):
    """Which events a subscription wants; all conditions must hold. Hashable: it is a key."""

    types: frozenset[str] = frozenset()
    session: str = ""
    run: str = ""
    run_session: str = ""  # the session of that run, as far as it was known when subscribing


async def filter_of(
    door: Door, types: Iterable[str], session: str | None, run: str | None
) -> Filter:
    """What a client asks for; a run that no session has yet may be a session's own id."""
    run_session = ""
    if run:
        info = await door.find(Own, run_id=run)
        run_session = info.id if info is not None else run
    return Filter(frozenset(types), session or "", run or "", run_session)


def line(kind: str, at: int, data: Data, seq: int | None) -> bytes:
    """One event as it goes over the wire, without newline; without a number it is not kept."""
    head = b'{"jsonrpc":"2.0","result":{"event":{"type":"%s","timestamp":"%s","data":' % (
        kind.encode(),
        precise(at).encode(),
    )
    number = b"" if seq is None else b"%b%d" % (_SEQ, seq)
    return head + sorted_encode(data) + number + b"}}}"


def number_of(said: bytes) -> int:
    """The `seq` of a numbered line."""
    return int(said[said.rindex(_SEQ) + len(_SEQ) : -3])


class Waiting:
    """Counts the questions that wait for a human by kind, in memory or not.

    Events are said without waiting for the store, so what waits in sessions that are not in memory
    (let go, or another process's) is known from the last look: at a subscription, and again when
    asked.
    """

    def __init__(self, door: Door) -> None:
        self._door = door
        self._kept: list[tuple[str, str]] = []  # session and kind of what the store had open
        self._looked = -_LOOK_SECONDS

    def count(self, kind: str) -> int:
        """How many of this kind wait at this moment."""
        live = self._door.lives()
        ids = {session.id for session in live}
        if self._due():
            self._door.spawn(self.look())
        here = sum(kind_of(ask) == kind for session in live for ask in session.asks.values())
        return here + sum(of == kind and session not in ids for session, of in self._kept)

    async def look(self) -> None:
        """Read what the store has open, unless that was just done."""
        if not self._due():
            return
        self._looked = asyncio.get_running_loop().time()
        try:
            rows = await self._door.asks(pending=True)
        except Fault:
            return  # the store's trouble is told elsewhere; the next look is in a second
        self._kept = [(row.ask.session, kind_of(row.ask)) for row in rows]

    def _due(self) -> bool:
        return asyncio.get_running_loop().time() - self._looked >= _LOOK_SECONDS


class Subscribed(Holder):
    """An `engine.hub.Shape`: says events to all subscriptions that have the same filter."""

    _door: Door
    _wanted: Filter
    _waiting: Waiting
    _past: Past

    def speak(self, events: Sequence[Event]) -> Blob | None:
        lines: list[bytes] = []
        for at, event in enumerate(events):
            say = _SAY.get(type(event.body))
            if say is None:
                continue
            wanted = self._wanted
            if wanted.session and event.session != wanted.session:
                continue
            about = self._past.about(event.session)
            run = about.run
            if wanted.run and run != wanted.run and event.session != wanted.run_session:
                continue
            # Numbered before the filter: an event has one number, whoever hears it.
            first = event.gseq * PER_EVENT
            for seq, (kind, data) in enumerate(say(self._door, event, event.body), first):
                if type(event.body) is ev.StatusChanged:
                    self._rested(events, at, data)
                if wanted.types and kind not in wanted.types:
                    continue
                if data.get("reason") == _TOKENS:
                    status = _status_at(self._door, events, at)
                    data["old_status"] = data["new_status"] = status
                elif kind == STATUS and about.parent and "old_status" in data:
                    data["parent_session_id"] = about.parent
                if kind == NEW_APPROVAL:
                    data["total"] = self._waiting.count(data["type"])
                data["session_id"] = event.session
                if run:
                    data["run_id"] = run
                lines.append(line(kind, event.at, data, seq))
        return Blob(lines) if lines else None

    def _rested(self, events: Sequence[Event], at: int, data: Data) -> None:
        """Put the protocol's words for how the session rests into a change of its status."""
        if data["old_status"] == "idle":
            data["old_status"] = self._past.rest(events, at, before=True)
        if data["new_status"] == "idle":
            data["new_status"] = self._past.rest(events, at, before=False)
        if data["new_status"] == "failed":
            live = self._door.live(events[at].session)
            why = data.pop("reason", "") or (live.error if live is not None else "")
            data["error"] = error_of(why)


def _status_at(door: Door, events: Sequence[Event], at: int) -> str:
    """The status of an event's session when it happened: it may have changed since."""
    session = events[at].session
    for event in events[at:]:
        if event.session == session and isinstance(event.body, ev.StatusChanged):
            return str(event.body.old)
    live = door.live(session)
    return str(live.status) if live is not None and live.status in ACTIVE else "running"


Saying = list[tuple[str, Data]]


def _status(door: Door, event: Event, body: ev.StatusChanged) -> Saying:
    """How a session that rests is called, and why it failed, is put in by who has the events."""
    data: Data = {"old_status": str(body.old), "new_status": str(body.new)}
    if body.reason:
        data["reason"] = body.reason
    return [(STATUS, data)]


def _renamed(door: Door, event: Event, body: ev.Renamed) -> Saying:
    return [(STATUS, {"title": body.title})]


def _updated(event: Event, kind: str, content_type: str, **data: Any) -> tuple[str, Data]:
    return CONVERSATION, {
        "claude_session_id": event.session,
        "event_type": kind,
        "content_type": content_type,
        "parent_tool_use_id": "",
        **data,
    }


def _heard(door: Door, event: Event, body: ev.TurnBegan | ev.Steered) -> Saying:
    if type(body) is ev.TurnBegan and body.by is not None and body.by.dialect == "humanlayer":
        return []  # the query of a launch: clients of this protocol do not expect it back
    return [_updated(event, "message", "text", role="user", content=text_of(body.content))]


def _spoke(door: Door, event: Event, body: ev.Spoke) -> Saying:
    told: Saying = []
    if body.usage.context:
        told.append((STATUS, {"reason": _TOKENS}))  # and its status, see `_status_at`
    cut = {"cut": True} if body.stop in ("aborted", "error") else {}
    for block in body.content:
        match block:
            case Text(text) if text:
                told.append(
                    _updated(event, "message", "text", role="assistant", content=text, **cut)
                )
            case Thinking(text) if text:
                told.append(_updated(event, "thinking", "thinking", role="assistant", content=text))
            case ToolCall(id, name, args):
                told.append(
                    _updated(
                        event, "tool_call", "tool_use", tool_id=id, tool_name=name, tool_input=args
                    )
                )
            case _:
                pass
    return told


def _ended(door: Door, event: Event, body: ev.CallEnded) -> Saying:
    text = "".join(
        f"[{part.mime_type} image]" if isinstance(part, Image) else part.text
        for part in body.content
    )
    return [
        _updated(
            event,
            "tool_result",
            "tool_result",
            tool_result_for_id=body.call_id,
            tool_result_content=text,
        )
    ]


def _compacted(door: Door, event: Event, body: ev.Compacted) -> Saying:
    return [_updated(event, "system", "system", subtype="compacted", content=body.summary)]


def _noted(door: Door, event: Event, body: ev.Noted) -> Saying:
    text = f"{body.title}: {body.text}" if body.text else body.title
    return [_updated(event, "system", "system", subtype="note", content=text)]


def _asked(door: Door, event: Event, body: ev.Asked) -> Saying:
    ask = body.ask
    data: Data = {"approval_id": ask.id, "call_id": ask.id, "tool_name": ask.tool}
    data |= {"type": kind_of(ask), "count": 1}
    if ask.call_id:
        data["tool_use_id"] = ask.call_id
    return [(NEW_APPROVAL, data)]


def _settled(door: Door, event: Event, body: ev.Settled) -> Saying:
    status = status_word(body.verdict)
    text = said(body)
    answered = body.verdict == "answer"
    data: Data = {
        "approval_id": body.ask_id,
        "call_id": body.ask_id,
        "tool_name": body.tool,
        "type": "human_contact" if answered or body.tool == "ask_user" else "function_call",
        "approved": status == "approved",
        "decision": "responded" if answered else status,
        "response_text": text,
    }
    data["response" if answered else "comment" if status == "approved" else "reason"] = text
    if body.call_id:
        data["tool_use_id"] = body.call_id
    if body.by is not None:
        data["decided_by"] = str(body.by)  # client and dialect
    return [(RESOLVED, data)]


_SETTINGS = {"tools": "auto_accept_edits", "everything": "dangerously_skip_permissions"}


def _extra(door: Door, event: Event, body: ev.ExtraSet) -> Saying:
    waiver = body.values.get(Waiver.NAME)
    if waiver is None:
        return []
    ours = body.by is not None and body.by.dialect == "humanlayer"
    changed: Data = {name: bool(waiver[key]) for key, name in _SETTINGS.items() if key in waiver}
    if not changed and not (ours and not waiver):
        return []
    if body.by is None and waiver.get("everything", True) is None:
        expired = {"reason": "expired", "expired_at": precise(event.at)}
        return [(SETTINGS, {"dangerously_skip_permissions": False, **expired})]
    until = waiver.get("until")
    if until is not None:
        changed["dangerously_skip_permissions_timeout_ms"] = max(0, until - event.at)
    return [(SETTINGS, {"event_type": "settings_updated", **changed})]


_SAY: dict[type, Any] = {
    ev.StatusChanged: _status,
    ev.Renamed: _renamed,
    ev.TurnBegan: _heard,
    ev.Steered: _heard,
    ev.Spoke: _spoke,
    ev.CallEnded: _ended,
    ev.Compacted: _compacted,
    ev.Noted: _noted,
    ev.Asked: _asked,
    ev.Settled: _settled,
    ev.ExtraSet: _extra,
}
