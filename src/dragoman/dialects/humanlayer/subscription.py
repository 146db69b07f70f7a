"""One subscription: a hundred events of patience, heartbeats in silence, a word about losses."""

import asyncio
from collections import deque
from time import monotonic
from uuid import uuid4

from dragoman.engine.events import Who
from dragoman.engine.hub import Watch
from dragoman.wire.link import Blob, Link
from dragoman.wire.serve import Pause

from .desk import Desk
from .speak import DROPPED, HEARTBEAT, PER_EVENT, Filter, line, number_of

BUFFER = 100  # events that wait for a client that does not read


class Subscription:
    """Carries events from the host to one connection until it is closed."""

    __slots__ = (
        "_desk", "_dropped", "_last", "_link", "_pause", "_since", "_timer", "_waiting",
        "_wanted", "_watch", "id",
    )  # fmt: skip

    def __init__(self, desk: Desk, link: Link, wanted: Filter) -> None:
        self.id = f"sub_{uuid4()}"
        self._desk = desk
        self._link = link
        self._wanted = wanted
        self._waiting: deque[bytes] = deque()
        self._dropped = 0
        self._pause = Pause(link, self._resume)
        self._since: int | None = None
        self._last = 0.0
        self._watch: Watch | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, who: Who, since: int | None) -> None:
        """Listen from now on, or from after the wire event with the number `since`."""
        loop = asyncio.get_running_loop()
        self._last = monotonic()
        if self._desk.heartbeat > 0:
            self._timer = loop.call_later(self._desk.heartbeat, self._beat)
        self._desk.recall_expiries()
        shape = self._desk.borrow(self._wanted)
        place = None
        if since is not None:
            # The kept event that it was made from is read again: others may have come of it.
            self._since = since
            place = max(since // PER_EVENT - 1, 0)
        self._watch = self._desk.door.watch_all(
            who, shape, self._deliver, self._must_wait, since=place,
            only=self._wanted.session or self._wanted.run_session, ready=self._desk.past.look,
        )  # fmt: skip

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
            self._desk.give_back(self._wanted)
        self._waiting.clear()

    def _must_wait(self) -> bool:
        """Whether the hub must hold events back: only while it reads old ones for this client.

        New ones are never held there: this protocol drops them after a hundred.
        """
        if not self._link.paused:
            return False
        watch = self._watch
        if watch is None or watch.replaying or watch.behind:
            self._pause.ask()
            return True
        return False

    def _deliver(self, blob: Blob) -> None:
        if self._since is not None:
            unseen = self._unseen(blob, self._since)
            if unseen is None:
                return
            self._since, blob = None, unseen
        self._last = monotonic()
        link = self._link
        if not self._waiting:
            watch = self._watch
            if not link.paused or (watch is not None and watch.replaying):
                link.send_blob(blob)
                return
        self._pause.ask()
        for message in blob.messages:
            if len(self._waiting) < BUFFER:
                self._waiting.append(message)
            else:
                self._dropped += 1

    def _unseen(self, blob: Blob, since: int) -> Blob | None:
        """Without the events that the client has seen already: they are the first."""
        said = blob.messages
        for place, message in enumerate(said):
            if number_of(message) > since:
                return Blob(said[place:]) if place else blob
        return None

    def _resume(self) -> None:
        """The client reads again."""
        if self._watch is None or self._link.closed:
            return
        if self._waiting:
            self._link.send_blob(Blob(tuple(self._waiting)))
            self._waiting.clear()
        if self._dropped and self._wanted.types and DROPPED not in self._wanted.types:
            self._dropped = 0  # the client asked for other events alone
        if self._dropped:
            data = {"count": self._dropped, "subscription_id": self.id}
            door = self._desk.door
            self._link.send(line(DROPPED, door.now_ms(), data, None))
            self._dropped = 0
        self._watch.resume()

    def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        silent = monotonic() - self._last
        left = self._desk.heartbeat - silent
        if left <= 0.001:
            if not self._link.paused and not self._waiting:
                self._link.send(HEARTBEAT)
            self._last = monotonic()
            left = self._desk.heartbeat
        self._timer = loop.call_later(left, self._beat)
