"""What events say of their session beside themselves, the same when they are read again later.

Live ones find it in the session as it is. Of those that come from the store the session may be out
of memory, and is another by now: its run is looked up, and how it rested is told by its own events.
"""

from collections.abc import Sequence

from dragoman.engine import events as ev
from dragoman.engine.door import Door
from dragoman.engine.events import Event
from dragoman.engine.faults import UnknownSession
from dragoman.engine.view import SessionView
from dragoman.holding import Holder

from .rows import run_of

_MOST = 8_192  # sessions and events that are remembered
_BACK = 64  # events before a change of status, among which the end of the turn before it is


class About(Holder):
    """What never changes of a session."""

    run: str = ""
    parent: str = ""


class Past(Holder):
    """Remembers for all subscriptions of a process."""

    _door: Door
    _about: dict[str, About] = {}
    _rests: dict[int, str] = {}  # of events that were read again, by `gseq`
    _last: dict[str, tuple[int, str]] = {}  # how many turns a session had, and how it rested then

    def about(self, session_id: str) -> About:
        live = self._door.live(session_id)
        if live is None:
            return self._about.get(session_id) or About()
        return About(run_of(session_id, live.extra), live.parent or "")

    # --- how sessions rest ---

    def rest(self, events: Sequence[Event], at: int, *, before: bool) -> str:
        """What an idle session is called after a change of its status, or was `before` it."""
        event = events[at]
        known = self._rests.get(event.gseq)
        if known is not None:
            return known
        live = self._door.live(event.session)
        if live is None:
            return "completed"
        return self._before(events, at, live) if before else self._after(events, at, live)

    def _after(self, events: Sequence[Event], at: int, live: SessionView) -> str:
        word = _ended(events[:at], live.id)
        if not word:
            word = "failed" if live.error else "completed" if live.turns else "draft"
        _bound(self._last)
        self._last[live.id] = (live.turns - _began(events[at:], live.id), word)
        return word

    def _before(self, events: Sequence[Event], at: int, live: SessionView) -> str:
        if word := _ended(events[:at], live.id):
            return word
        turns = live.turns - _began(events, live.id)  # the session is ahead of them
        if turns <= 0:
            return "draft"
        counted, word = self._last.get(live.id, (0, ""))
        if counted == turns:
            return word
        return "failed" if live.error else "completed"

    # --- what is read again ---

    async def look(self, page: Sequence[Event]) -> None:
        """Look up what is to be known of events from the store, before they are told."""
        rests: dict[str, str] = {}
        for event in page:
            session_id = event.session
            if session_id not in self._about:
                await self._meet(session_id)
            body = event.body
            if isinstance(body, ev.TurnEnded):
                rests[session_id] = _rest(body)
            elif isinstance(body, ev.StatusChanged) and "idle" in (body.old, body.new):
                if session_id not in rests:
                    rests[session_id] = await self._before_that(session_id, event.seq)
                _bound(self._rests)
                self._rests[event.gseq] = rests[session_id]

    async def _meet(self, session_id: str) -> None:
        _bound(self._about)
        try:
            info = await self._door.info(session_id)
        except UnknownSession:  # deleted since
            self._about[session_id] = About(session_id)
        else:
            self._about[session_id] = About(run_of(session_id, info.extra), info.parent or "")

    async def _before_that(self, session_id: str, seq: int) -> str:
        first = max(0, seq - 1 - _BACK)
        try:
            earlier = await self._door.history(session_id, first, seq - 1 - first)
        except UnknownSession:
            return "completed"
        return _ended(earlier, session_id) or ("completed" if first else "draft")


def _rest(end: ev.TurnEnded) -> str:
    return "failed" if end.error else "completed"


def _ended(events: Sequence[Event], session_id: str) -> str:
    """How the last turn among these that ended left the session; empty: none did."""
    for event in reversed(events):
        if event.session == session_id and isinstance(event.body, ev.TurnEnded):
            return _rest(event.body)
    return ""


def _began(events: Sequence[Event], session_id: str) -> int:
    """How many turns of the session begin among these."""
    bodies = (event.body for event in events if event.session == session_id)
    return sum(isinstance(body, ev.TurnBegan) for body in bodies)


def _bound(kept: dict) -> None:  # type: ignore[type-arg]
    """Forget the oldest half of what grew too large."""
    if len(kept) >= _MOST:
        for key in list(kept)[: _MOST // 2]:
            del kept[key]
