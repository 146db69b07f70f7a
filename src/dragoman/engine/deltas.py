"""Pieces of streamed text: how neighbours become one, and the rhythm in which they go out."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.holding import Holder

from . import events as ev
from .events import Event

MERGED = (ev.TextDelta, ev.ThoughtDelta, ev.Progress, ev.CallArgs)
_KINDS = frozenset[type[object]](MERGED)
_TEXTS = (ev.TextDelta, ev.ThoughtDelta)
_ENDS = frozenset({ev.Spoke, ev.CallEnded, ev.TurnEnded})  # what streamed before is part of it
_DRAFTED = _KINDS | {ev.StepBegan, ev.StreamOpened, ev.CallDrafted, ev.CallReady, ev.Retrying}


class Run(Holder):
    """Neighbouring deltas of one kind, turn and part of it, not joined yet.

    The part is a call's id, or the number of the step whose text it is.
    """

    session: str
    at: int
    kind: type[ev.Delta]
    turn: str
    part: str | int
    texts: list[str]
    size: int  # of all of them

    def event(self, text: str) -> Event:
        """One delta of this kind."""
        kind: Any = self.kind  # no type says which part goes with which kind
        if kind in _TEXTS:
            return Event(self.session, self.at, kind(self.turn, text, self.part))
        return Event(self.session, self.at, kind(self.turn, self.part, text))


def joined(items: Iterable[Event | Run]) -> list[Event]:
    """Each run as one delta."""
    return [item.event("".join(item.texts)) if isinstance(item, Run) else item for item in items]


def single(items: Iterable[Event | Run]) -> list[Event]:
    """Every delta on its own."""
    found: list[Event] = []
    for item in items:
        if isinstance(item, Run):
            found += [item.event(text) for text in item.texts]
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
        body = event.body
        if not isinstance(body, MERGED):
            run = None
            items.append(event)
            continue
        kind, part = type(body), part_of(body)
        if (
            run is not None
            and run.kind is kind
            and run.turn == body.turn
            and run.part == part
            and run.session == event.session
        ):
            run.texts.append(text_of(body))
        else:
            run = Run(event.session, event.at, kind, body.turn, part, [text_of(body)], 0)
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


def text_of(body: ev.Delta) -> str:
    return body.fragment if isinstance(body, ev.CallArgs) else body.text


def part_of(body: ev.Delta) -> str | int:
    """The step whose text it is, or the call."""
    return body.step if isinstance(body, _TEXTS) else body.call_id


def weight_of(event: Event) -> int:
    """About how many bytes it takes: a fact may have pictures, files and long answers in it."""
    body = event.body
    return 200 + len(text_of(body)) if isinstance(body, MERGED) else 1_000 + _size(body)


def _size(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, msgspec.Struct):
        return sum(_size(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dict):
        return sum(len(name) + _size(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return 0


FLUSH_SECONDS = 0.002
SLOWEST_SECONDS = 0.008  # still far quicker than the eye
_CROWD = 4  # for every so many that stream at once, the beat is slower by its own length


class Beating(Protocol):
    """Something that gathers between beats."""

    beating: bool
    flushed: float

    def flush(self) -> bool:
        """Hand on what was gathered; False: nothing was, leave me out from now on."""
        ...


class Beat:
    """Calls everybody that gathers, while there is anybody.

    Every two milliseconds when few stream. Every call means a write per client, so with many at
    once the beat slows down: a busy host spends its time on text, not on small writes.
    """

    __slots__ = ("_due", "_timer", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._due: list[Beating] = []
        self._timer: asyncio.TimerHandle | None = None

    def is_free(self, one: Beating) -> bool:
        """Whether one may hand something on at once: it has not done so for a beat.

        Who speaks more slowly than the beat is never woken by it.
        """
        now = self.loop.time()
        if now - one.flushed < FLUSH_SECONDS:
            return False
        one.flushed = now
        return True

    def add(self, one: Beating) -> None:
        """Include one that has something to hand on soon."""
        one.beating = True
        self._due.append(one)
        if self._timer is None:
            self._timer = self.loop.call_later(FLUSH_SECONDS, self._strike)

    def _strike(self) -> None:
        due, self._due = self._due, []
        # One that came just before this beat waits for the next: no two writes close together.
        since = self.loop.time() - FLUSH_SECONDS / 2
        stay = self._due
        for one in due:
            try:
                one.beating = one.flushed > since or one.flush()
            except Exception as error:  # must not stop the others' beat
                one.beating = False
                self.loop.call_exception_handler({"message": "a beat failed", "exception": error})
            if one.beating:
                stay.append(one)
        self._timer = None
        if self._due:
            pause = FLUSH_SECONDS * (1 + len(self._due) // _CROWD)
            self._timer = self.loop.call_later(min(pause, SLOWEST_SECONDS), self._strike)


_beat: Beat | None = None


def beat_of(loop: asyncio.AbstractEventLoop) -> Beat:
    """The beat of the running loop."""
    global _beat
    if _beat is None or _beat.loop is not loop:
        _beat = Beat(loop)
    return _beat
