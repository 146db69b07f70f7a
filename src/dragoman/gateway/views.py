"""Sessions, events and approvals as JSON for REST and the dashboard; secrets stay here."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.engine import events as ev
from dragoman.engine import shown
from dragoman.engine.ask import LASTING
from dragoman.engine.events import Event
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AskRow
from dragoman.holding import Holder
from dragoman.observe.redact import redact
from dragoman.wire.codec import encode as _encode

LISTED = 16_000  # characters of a question in a list


def session(info: SessionInfo) -> SessionInfo:
    """A session as everybody may see it."""
    if not info.extra:
        return info
    return msgspec.structs.replace(info, extra=redact(info.extra))


def brief(info: SessionInfo) -> SessionInfo:
    """A session as a row of a list shows it."""
    return msgspec.structs.replace(
        info, query=info.query[:200], result="", error=info.error[:200], extra={}
    )


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


class Part(msgspec.Struct, frozen=True):
    """A piece of a question as it is to be shown; nothing in it hides."""

    kind: str
    label: str
    text: str


class Option(msgspec.Struct, frozen=True):
    """What an answer for always can be remembered by."""

    scope: str
    lasts: str
    words: str


class Approval(msgspec.Struct, frozen=True, omit_defaults=True):
    """An approval or question, and how it was settled.

    `left_out` counts the characters that a list leaves out: then the arguments, the changes and
    the digest are missing as well, and the question must be opened before it can be allowed.
    """

    ask: ev.Ask
    settled: ev.Settled | None = None
    settled_at: int | None = None
    title: str = ""
    parts: list[Part] = []
    options: list[Option] = []
    left_out: int = 0


def approval(row: AskRow) -> Approval:
    """One question, whole."""
    ask = row.ask
    parts = [Part(*part) for part in shown.parts(ask)]
    options = [
        Option(scope.id, lasts, f"{words}, {LASTING[lasts]}")
        for words, scope in shown.offers(ask)
        for lasts in scope.lasts
    ]
    return Approval(ask, row.settled, row.settled_at, shown.title(ask), parts, options)


def listed(row: AskRow) -> Approval:
    """A question in a list: whole when it is short, else with the count of what is left out."""
    left = left_out(row.ask)
    if not left:
        return approval(row)
    ask = msgspec.structs.replace(
        row.ask, args=None, changes=(), summary="", digest="", title=shown.title(row.ask)
    )
    line = Part("text", "", shown.line(row.ask, LISTED)[0])
    return Approval(ask, row.settled, row.settled_at, shown.title(row.ask), [line], [], left)


def left_out(ask: ev.Ask) -> int:
    """How many characters of a question a list leaves out."""
    if ask.kind == "question":
        return 0
    return shown.line(ask, LISTED)[1]


def sse(name: str, data: bytes, id: int = 0) -> bytes:
    """One server-sent event; JSON has no bare newlines, so one data line is enough."""
    head = b"event: " + name.encode() + b"\n"
    if id:
        head += b"id: " + str(id).encode() + b"\n"
    return head + b"data: " + data + b"\n\n"


class EventShape(Holder):
    """`engine.hub.Shape` that speaks server-sent events, one per event, shared by all who watch.

    Kept events carry their place as the id, so that `Last-Event-ID` says where to go on.
    """

    by_gseq: bool = False
    passing: bool = True

    def speak(self, events: Sequence[Event]) -> bytes | None:
        said = []
        for one in events:
            if not one.seq and not self.passing:
                continue
            tag = one.body.__struct_config__.tag
            said.append(sse(str(tag), encode(one), one.gseq if self.by_gseq else one.seq))
        return b"".join(said) or None
