"""The dashboard's stream: sessions in short, one in full, approvals, clients, the wire."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.engine import events as ev
from dragoman.engine.events import Event, Who
from dragoman.engine.hub import Watch
from dragoman.engine.ports import AskRow
from dragoman.holding import Holder
from dragoman.wire.codec import encode as _encode

from . import views
from .outlet import Feed, Outlet

if TYPE_CHECKING:
    from dragoman.engine.door import Door

    from .gate import Gate


class ShortShape(Holder):
    """Says of every session that changed what lists show of it, and of approvals what they are.

    Sessions come first: who is told of a question knows its session.
    """

    _door: "Door"

    def speak(self, events: Sequence[Event]) -> bytes | None:
        said: list[bytes] = []
        asked: list[bytes] = []
        changed: dict[str, None] = {}
        for one in events:
            body = one.body
            if isinstance(body, ev.Deleted):
                said.append(views.sse("gone", _encode({"id": one.session})))
                continue
            if not one.seq:
                continue
            changed[one.session] = None
            if isinstance(body, ev.Asked):
                asked.append(views.sse("ask", _encode(views.listed(AskRow(body.ask)))))
            elif isinstance(body, ev.Settled):
                asked.append(views.sse("settled", _encode(body)))
        for id in changed:
            session = self._door.live(id)
            if session is not None:
                said.append(views.sse("session", _encode(views.brief(session.info()))))
        return b"".join(said + asked) or None


class FullShape:
    """Speaks every event of one session under one name."""

    def speak(self, events: Sequence[Event]) -> bytes | None:
        return b"".join([views.sse("event", views.encode(one)) for one in events]) or None


class Board(Holder):
    """One dashboard page."""

    _gate: "Gate"
    _who: Who
    _feed: Feed | None = None
    _watch: Watch | None = None
    _outlet: Outlet | None = None

    async def follow(self, session: str, since: int | None) -> None:
        self._feed = feed = Feed()
        shape = await self._gate.door.shape_of(session, "board", FullShape())
        self._watch = await self._gate.door.watch(
            session, self._who, shape, feed.deliver, lambda: feed.paused, since=since
        )

    def begin(self, outlet: Outlet, *, wire: bool) -> None:
        self._outlet = outlet
        door = self._gate.door
        door.visitors.arrive(self._who)
        outlet.on_close.append(lambda: door.visitors.leave(self._who))
        door.visitors.on_change.append(self._clients)
        outlet.on_close.append(lambda: door.visitors.on_change.remove(self._clients))
        self._write("hello", {"at": door.now_ms(), "stalled": door.health.stalled})
        self._clients()
        short = Feed()
        watch = door.watch_all(self._who, self._gate.short, short.deliver, lambda: short.paused)
        short.join(outlet, watch)
        if self._feed is not None and self._watch is not None:
            self._feed.join(outlet, self._watch)
        taps = door.facts.taps
        if wire and taps is not None:
            outlet.on_close.append(taps.follow(None, self._said))
        if door.config is not None:
            outlet.on_close.append(door.config.watch(self._configured))

    def _clients(self) -> None:
        clients = [
            {"who": one.who, "since": one.since}
            for one in self._gate.door.visitors.clients.values()
        ]
        self._write("clients", clients)

    def _configured(self, path: str, old: object, new: object) -> None:
        self._write("config", {"key": path, "value": new})

    def _said(self, line: dict[str, Any]) -> None:
        self._write("wire", line)

    def _write(self, name: str, value: object) -> None:
        # These tell how things are now; a page that does not read loses nothing it cannot ask for.
        if self._outlet is not None and not self._outlet.paused:
            self._outlet.write(views.sse(name, _encode(value)))
