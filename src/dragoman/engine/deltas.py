"""Pieces of streamed text, and how neighbouring ones become one."""

from collections.abc import Sequence
from typing import Any

from . import events as ev
from .events import Event

MERGED = (ev.TextDelta, ev.ThoughtDelta, ev.Progress, ev.CallArgs)


def merge(events: Sequence[Event]) -> Sequence[Event]:
    """Join neighbouring deltas of the same kind, turn and call into one."""
    if len(events) < 2:
        return events
    merged: list[Event] = []
    run: list[str] = []  # texts of the delta at the end of `merged`, joined when the run ends

    def close() -> None:
        if len(run) > 1:
            last = merged[-1]
            merged[-1] = Event(last.session, last.at, _with_text(last.body, "".join(run)))
        run.clear()

    for event in events:
        body = event.body
        if isinstance(body, MERGED):
            if run and _same_stream(merged[-1], event):
                run.append(_text(body))
                continue
            close()
            run.append(_text(body))
        else:
            close()
        merged.append(event)
    close()
    return merged


def _text(body: Any) -> str:
    return body.fragment if type(body) is ev.CallArgs else body.text


def _with_text(body: Any, text: str) -> Any:
    kind = type(body)
    if kind is ev.TextDelta or kind is ev.ThoughtDelta:
        return kind(body.turn, text)
    return kind(body.turn, body.call_id, text)


def _same_stream(one: Event, other: Event) -> bool:
    a: Any = one.body
    b: Any = other.body
    return (
        type(a) is type(b)
        and one.session == other.session
        and a.turn == b.turn
        and getattr(a, "call_id", "") == getattr(b, "call_id", "")
    )


def weight_of(event: Event) -> int:
    body: Any = event.body
    return 200 + len(_text(body)) if isinstance(body, MERGED) else 1_000
