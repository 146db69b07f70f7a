"""Sessions, events and approvals as JSON for REST and the dashboard; secrets stay here."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.events import Event
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AskRow
from dragoman.observe.redact import redact

_encode = msgspec.json.Encoder().encode


def session(info: SessionInfo) -> SessionInfo:
    """A session as everybody may see it."""
    if not info.extra:
        return info
    return msgspec.structs.replace(info, extra=redact(info.extra))


def event(one: Event) -> Event:
    body = one.body
    if isinstance(body, ev.ExtraSet):
        hidden: Any = msgspec.structs.replace(body, values=redact(body.values))
    elif isinstance(body, ev.Opened) and body.extra:
        hidden = msgspec.structs.replace(body, extra=redact(body.extra))
    else:
        return one
    return msgspec.structs.replace(one, body=hidden)


def encode(one: Event) -> bytes:
    return _encode(event(one))


class Approval(msgspec.Struct, frozen=True):
    """An approval or question, and how it was settled."""

    ask: ev.Ask
    settled: ev.Settled | None = None
    settled_at: int | None = None


def approval(row: AskRow) -> Approval:
    return Approval(row.ask, row.settled, row.settled_at)


def sse(name: str, data: bytes, id: int = 0) -> bytes:
    """One server-sent event; JSON has no bare newlines, so one data line is enough."""
    head = b"event: " + name.encode() + b"\n"
    if id:
        head += b"id: " + str(id).encode() + b"\n"
    return head + b"data: " + data + b"\n\n"


class EventShape:
    """`watch.Shape` that speaks server-sent events, one per event, shared by all who watch.

    Kept events carry their place as the id, so that `Last-Event-ID` says where to go on.
    """

    def __init__(self, *, by_gseq: bool = False, passing: bool = True) -> None:
        self._by_gseq = by_gseq
        self._passing = passing

    def speak(self, events: Sequence[Event]) -> bytes | None:
        said = []
        for one in events:
            if not one.seq and not self._passing:
                continue
            tag = one.body.__struct_config__.tag
            said.append(sse(str(tag), encode(one), one.gseq if self._by_gseq else one.seq))
        return b"".join(said) or None
