"""The rhythm in which gathered deltas are handed on: one timer for all sessions of a loop."""

import asyncio
from typing import Protocol

FLUSH_SECONDS = 0.002
SLOWEST_SECONDS = 0.008  # still far quicker than the eye
_CROWD = 4  # for every so many that stream at once, the beat is slower by its own length


class Beating(Protocol):
    """Something that gathers between beats."""

    beating: bool
    flushed: float

    def beat(self) -> bool:
        """Hand on what was gathered; False: leave me out from now on."""
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

    def add(self, one: Beating) -> None:
        """Include one that has just handed something on."""
        one.beating = True
        one.flushed = self.loop.time()
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
                one.beating = one.flushed > since or one.beat()
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
