"""Pieces of streamed text, and how neighbouring ones become one."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import events as ev
from .events import Event

MERGED = (ev.TextDelta, ev.ThoughtDelta, ev.Progress, ev.CallArgs)
_KINDS = frozenset(MERGED)
_TEXTS = frozenset({ev.TextDelta, ev.ThoughtDelta})
_ENDS = frozenset({ev.Spoke, ev.CallEnded, ev.TurnEnded})  # what streamed before is part of it
_DRAFTED = _KINDS | {ev.StepBegan, ev.StreamOpened, ev.CallDrafted, ev.CallReady, ev.Retrying}


class Run:
    """Neighbouring deltas of one kind, turn and part of it, not joined yet.

    The part is a call's id, or the number of the step whose text it is.
    """

    __slots__ = ("at", "kind", "part", "session", "size", "texts", "turn")

    def __init__(
        self, session: str, at: int, kind: type[Any], turn: str, part: str | int, text: str
    ) -> None:
        self.session = session
        self.at = at
        self.kind = kind
        self.turn = turn
        self.part = part
        self.texts = [text]
        self.size = len(text)

    def joined(self) -> Event:
        texts = self.texts
        return self._event(texts[0] if len(texts) == 1 else "".join(texts))

    def single(self) -> list[Event]:
        return [self._event(text) for text in self.texts]

    def _event(self, text: str) -> Event:
        kind = self.kind
        if kind in _TEXTS:
            return Event(self.session, self.at, kind(self.turn, text, self.part))
        return Event(self.session, self.at, kind(self.turn, self.part, text))


def joined(items: Iterable[Event | Run]) -> list[Event]:
    """Each run as one delta."""
    return [item.joined() if isinstance(item, Run) else item for item in items]


def single(items: Iterable[Event | Run]) -> list[Event]:
    """Every delta on its own."""
    found: list[Event] = []
    for item in items:
        if isinstance(item, Run):
            found += item.single()
        else:
            found.append(item)
    return found


def merge(events: Sequence[Event]) -> Sequence[Event]:
    """Join neighbouring deltas of the same kind, turn and part into one."""
    if len(events) < 2:
        return events
    items: list[Event | Run] = []
    run: Run | None = None
    for event in events:
        body: Any = event.body
        kind = type(body)
        if kind not in _KINDS:
            run = None
            items.append(event)
            continue
        part = body.step if kind in _TEXTS else body.call_id
        if (
            run is not None
            and run.kind is kind
            and run.turn == body.turn
            and run.part == part
            and run.session == event.session
        ):
            run.texts.append(text_of(body))
        else:
            run = Run(event.session, event.at, kind, body.turn, part, text_of(body))
            items.append(run)
    return joined(items)


def unread(held: Sequence[Event], given: Callable[[Event], bool]) -> list[Event]:
    """What was held without the facts that were given meanwhile, and what streamed before them."""
    ended: dict[str, int] = {}
    for number, event in enumerate(held):
        if type(event.body) in _ENDS and given(event):
            ended[event.session] = number
    return [
        event
        for number, event in enumerate(held)
        if (not given(event) if event.seq else type(event.body) not in _DRAFTED)
        or (not event.seq and number > ended.get(event.session, -1))
    ]


def drafted(held: Sequence[Event], draft: Sequence[Event]) -> list[Event]:
    """Facts first, then the draft in place of what it repeats, then whatever else passed."""
    facts = [event for event in held if event.seq]
    rest = (event for event in held if not event.seq)
    return [*facts, *draft, *(e for e in rest if not draft or type(e.body) not in _DRAFTED)]


def text_of(body: Any) -> str:
    return body.fragment if type(body) is ev.CallArgs else body.text


def weight_of(event: Event) -> int:
    body: Any = event.body
    return 200 + len(text_of(body)) if type(body) in _KINDS else 1_000
