"""What all connections of this dialect share: the apps, what they own, and who comes back."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import uuid4

import msgspec

from dragoman.engine.faults import Fault
from dragoman.engine.hooks import GatewayLife, HookContext
from dragoman.engine.traits import Correspondent
from dragoman.observe.log import get_log

from . import grants
from .faults import Wrong
from .hooks import Delivery
from .outbox import Outbox
from .seat import Seat
from .sessions import Sessions
from .shapes import Settings
from .speak import Voice

if TYPE_CHECKING:
    from dragoman.engine.door import Door
    from dragoman.wire.link import Link

    from .grants import Grant
    from .hear import OpenclawosHearer
    from .manifest import Manifest

log = get_log("apps")
_LEFT_SECONDS = 300.0
_MOST_LEFT = 256


class Left(NamedTuple):
    """An app whose connection broke: it may go on with its token on another one."""

    manifest: "Manifest"
    grants: list[tuple[str, dict[str, Any], str]]
    hears: list[str]
    ready: bool
    until: float


class Configured(Protocol):
    """Anything that has these, so that the configuration's own section can be given."""

    @property
    def require_token(self) -> bool: ...

    @property
    def invoke_timeout_ms(self) -> int: ...

    @property
    def heartbeat_timeout_secs(self) -> float: ...

    @property
    def apps(self) -> Mapping[str, Any]: ...


class Desk:
    """One per process."""

    def __init__(self, door: "Door", settings: "Configured | None" = None) -> None:
        self.door = door
        self.settings: Configured = settings or Settings()
        self.voice = Voice()
        self.now: Callable[[], int] = door.now_ms
        self.passed: Callable[[], float] = monotonic  # seconds, by a clock that nobody sets
        self.new_token: Callable[[], str] = lambda: str(uuid4())
        self.apps: dict[str, Seat] = {}
        self.owned: dict[tuple[str, str], Grant] = {}
        self.conns: set[OpenclawosHearer] = set()
        self.sessions = Sessions(self)
        self.outbox = Outbox(self)
        self.on_shutdown: Callable[[str, float | None], None] = lambda app, timeout: None
        self._left: OrderedDict[str, Left] = OrderedDict()
        self._delivery = Delivery(self)
        door.hooks.subscribe("message_sending", self._delivery, intercepts=False)
        door.facts.connected_apps = self.status

    def hearer(self, link: "Link") -> "OpenclawosHearer":
        from .hear import OpenclawosHearer

        made = OpenclawosHearer(self.door, link, self)
        self.conns.add(made)
        self.door.visitors.enter(made)
        return made

    # --- who comes and goes ---

    def admit(self, conn: "OpenclawosHearer", manifest: "Manifest") -> Seat:
        """Register an app on a connection; the newest connection of an app is the one."""
        before = self.apps.get(manifest.id)
        if before is not None and before.conn is not conn and self.settings.require_token:
            if not self._is_stale(before):
                raise Wrong(
                    "CONFLICT",
                    f'App "{manifest.id}" is registered on another connection and alive',
                )
        if conn.seat is not None:
            conn.seat.leave()
            conn.stop_watching()
        if before is not None and before.conn is not conn:
            self._displace(before)
        for token, left in tuple(self._left.items()):
            if left.manifest.id == manifest.id:
                del self._left[token]
        return self._seat(conn, manifest, self.new_token())

    def _seat(self, conn: "OpenclawosHearer", manifest: "Manifest", token: str) -> Seat:
        seat = Seat(self, conn, manifest, token, self.now())
        conn.seat = seat
        self.apps[manifest.id] = seat
        self.door.visitors.leave(conn.who)
        conn.who = msgspec.structs.replace(conn.who, name=manifest.id)
        self.door.visitors.arrive(conn.who)
        log.info("registered", app=manifest.id, version=manifest.version)
        return seat

    def _displace(self, seat: Seat) -> None:
        seat.leave()
        seat.conn.seat = None
        seat.conn.link.close()

    def resume(self, conn: "OpenclawosHearer", token: str) -> bool:
        """Let an app go on where its broken connection left it; it shows the token it had."""
        for seat in self.apps.values():
            if seat.token == token and seat.conn is not conn:  # the old one is not dead yet
                self._remember(seat)
                self._displace(seat)
                break
        left = self._left.pop(token, None)
        if left is None or left.until < monotonic() or left.manifest.id in self.apps:
            return False
        seat = self._seat(conn, left.manifest, token)
        for kind, config, grant_id in left.grants:
            grants.register(seat, kind, config, grant_id)
        for name in left.hears:
            seat.subscribe(name)
        if left.ready:
            self.make_ready(seat)
        return True

    def lost(self, seat: Seat) -> None:
        """The app's connection is gone."""
        if seat.gone:
            return
        if not seat.leaving:
            self._remember(seat)
        seat.leave()
        log.info("left", app=seat.name)

    def _remember(self, seat: Seat) -> None:
        kept = [(grant.kind, grant.config, grant.id) for grant in seat.grants.values()]
        until = monotonic() + _LEFT_SECONDS
        self._left[seat.token] = Left(seat.manifest, kept, list(seat.hears), seat.ready, until)
        while len(self._left) > _MOST_LEFT:
            self._left.popitem(last=False)

    def forget(self, seat: Seat) -> None:
        """Take an app off the list, unless its place has a newer one already."""
        if self.apps.get(seat.name) is seat:
            del self.apps[seat.name]

    def make_ready(self, seat: Seat) -> None:
        seat.ready, seat.leaving = True, False
        for grant in seat.grants.values():
            grant.offer()
        log.info("ready", app=seat.name)
        if "gateway_start" in seat.hears and not self.door.stopping:  # it began before the app did
            address = self.door.facts.gateway or ""
            seat.push("gateway_start", GatewayLife(address=address), HookContext())
        asyncio.get_running_loop().call_soon(self.door.hooks.recall, seat)  # after the answer
        self.outbox.give(seat)

    def passed_over(self, name: str, hook: str, session: str) -> None:
        """Tell the session's people that an app is waited for no longer."""
        title = f"The app {name} is passed over"
        text = f"It did not answer {hook} twice in a row. It is asked again once it answers."
        self.door.spawn(self._note(session, title, text))

    async def _note(self, session: str, title: str, text: str) -> None:
        try:
            await self.door.note(session, "warning", title, text)
        except Fault as fault:  # the session is gone: the log has it
            log.info("not noted", session=session, problem=str(fault))

    def shut_down(self, seat: Seat, reason: str, timeout: float | None) -> None:
        """The app is about to go: nobody shall begin to use it any more."""
        seat.ready, seat.leaving = False, True
        for grant in seat.grants.values():
            grant.pause()
        log.info("shutting down", app=seat.name, reason=reason)
        self.on_shutdown(seat.name, timeout)

    def may(self, app: str, kind: str, name: str) -> bool:
        """Whether the owner lets an app have this; all that it declares unless he narrowed it."""
        entry = self.settings.apps.get(app)
        granted = entry.granted if entry is not None else None
        return granted is None or name in granted.get(kind, ())

    # --- what they have ---

    def grants(self) -> "Iterator[Grant]":
        for seat in self.apps.values():
            yield from seat.grants.values()

    def owner(self, kind: str, name: str) -> Seat | None:
        grant = self.owned.get((kind, name))
        return grant.seat if grant is not None else None

    def key_of(self, session_id: str) -> str:
        """The key that apps know a session by."""
        live = self.door.live(session_id)
        return (Correspondent.of(live.extra).key if live else "") or session_id

    def _is_stale(self, seat: Seat) -> bool:
        limit = self.settings.heartbeat_timeout_secs
        return bool(limit) and self.passed() - seat.heard_at > limit

    def status(self) -> list[dict[str, Any]]:
        """Every connected app, for `doctor` and lists."""
        return [self._status(seat) for seat in self.apps.values()]

    def _status(self, seat: Seat) -> dict[str, Any]:
        state = "shutting_down" if seat.leaving else "ready" if seat.ready else "registered"
        return {
            "id": seat.name,
            "name": seat.manifest.name,
            "version": seat.manifest.version,
            "state": state,
            "stale": self._is_stale(seat),
            "passed_over": seat.muted,
            "since": seat.since,
            "last_heartbeat": seat.beat_at,
            "status": seat.status,
            "capabilities": [f"{grant.kind}:{grant.name}" for grant in seat.grants.values()],
            "hooks": list(seat.hears),
        }

    async def close(self) -> None:
        """The kernel stops: end the streams, take everything back, close the connections."""
        gone = GatewayLife(address=self.door.facts.gateway or "")
        self.door.hooks.tell("gateway_stop", gone, HookContext())
        for conn in tuple(self.conns):
            for watch in conn.watches:
                watch.finish()
            conn.watches = ()
            if conn.seat is not None:
                conn.seat.leave()
            conn.link.close()
        self._left.clear()
        self.door.hooks.forget(self._delivery)
