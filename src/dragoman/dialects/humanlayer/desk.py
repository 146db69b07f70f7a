"""What all connections of this protocol share: settings, rows of sessions, encodings."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import InUse, UnknownSession
from dragoman.engine.ids import token
from dragoman.engine.info import SessionQuery, each_session
from dragoman.engine.traits import Waiver
from dragoman.wire.codec import encode
from dragoman.wire.link import Hearer, Link

from .session_rows import SessionRows

if TYPE_CHECKING:
    from .past import Past
    from .rest.table import Rest
    from .speak import Filter, Subscribed, Waiting

MAX_LINE = 10 * 1024 * 1024
_PAGE = 500


class Settings(msgspec.Struct, frozen=True):
    """`[humanlayer]` of the configuration."""

    max_message_bytes: int = MAX_LINE  # a line with its newline
    heartbeat_secs: float = 30.0
    version: str = "0.1.0"


class Configured(Protocol):
    """Anything that has these, so that the configuration's own section can be given."""

    @property
    def max_message_bytes(self) -> int: ...

    @property
    def heartbeat_secs(self) -> float: ...

    @property
    def version(self) -> str: ...


class Desk:
    """The protocol's side of one process. `hearer(link)` serves a connection."""

    def __init__(self, door: Door, settings: Configured | None = None) -> None:
        self.door = door
        self.settings = settings or Settings()
        self.session_rows = SessionRows(door)
        self.subscriptions = 0
        self._shapes: dict[Filter, tuple[Subscribed, int]] = {}
        self._expiries: dict[str, asyncio.TimerHandle] = {}
        self._recalled = False

    @property
    def settings(self) -> Configured:
        return self._settings

    @settings.setter
    def settings(self, given: Configured) -> None:
        """Take a changed configuration; connections that exist keep their line limit."""
        self._settings = given
        self.max_line = min(max(given.max_message_bytes, 1024), MAX_LINE)
        self.heartbeat = float(given.heartbeat_secs)
        self.version = given.version
        known = encode({"status": "ok", "version": given.version}).replace(b"%", b"%%")
        # The answer of `health` but for its id; the whole way takes twice as long (decision 0073).
        self.health = b'{"jsonrpc":"2.0","result":' + known + b',"id":%d}'

    def hearer(self, link: Link) -> Hearer:
        """The dialect's side of a new connection."""
        from .hear import HumanlayerHearer

        return HumanlayerHearer(self.door, link, self)

    def who(self, link: Link) -> Who:
        return Who("humanlayer", link.peer.label, id=f"humanlayer-{token()[:12]}")

    @cached_property
    def waiting(self) -> "Waiting":
        from .speak import Waiting

        return Waiting(self.door)

    @cached_property
    def past(self) -> "Past":
        from .past import Past

        return Past(self.door)

    @cached_property
    def rest(self) -> "Rest":
        """The same over HTTP; loaded when it is first asked for."""
        from .rest.table import Rest

        return Rest(self)

    # --- encodings that subscriptions with the same filter share ---

    def borrow(self, wanted: "Filter") -> "Subscribed":
        from .speak import Subscribed

        known = self._shapes.get(wanted)
        shape, users = known or (Subscribed(self.door, wanted, self.waiting, self.past), 0)
        self._shapes[wanted] = (shape, users + 1)
        self.subscriptions += 1
        return shape

    def give_back(self, wanted: "Filter") -> None:
        shape, users = self._shapes[wanted]
        self.subscriptions -= 1
        if users > 1:
            self._shapes[wanted] = (shape, users - 1)
        else:
            del self._shapes[wanted]

    # --- skipped permissions that end by themselves ---

    def expire_later(self, session_id: str, until: int | None) -> None:
        """Switch skipping off, and tell so, when its time is over."""
        timer = self._expiries.pop(session_id, None)
        if timer is not None:
            timer.cancel()
        if until is not None:
            delay = max(0.0, (until - self.door.now_ms()) / 1000)
            loop = asyncio.get_running_loop()
            self._expiries[session_id] = loop.call_later(delay, self._expire, session_id, until)

    def _expire(self, session_id: str, until: int) -> None:
        self._expiries.pop(session_id, None)
        self.door.spawn(self._switch_off(session_id, until))

    async def _switch_off(self, session_id: str, until: int) -> None:
        try:
            info = await self.door.info(session_id)
            if Waiver.of(info.extra).until == until:
                await self.door.keep(session_id, Waiver, everything=False, until=None)
        except (UnknownSession, InUse):
            return  # deleted, or it is another process that has to tell

    def recall_expiries(self) -> None:
        """Set the timers of a process that ended; once, when there is somebody to tell."""
        if not self._recalled:
            self._recalled = True
            self.door.spawn(self._recall())

    async def _recall(self) -> None:
        query = SessionQuery(extra={Waiver.NAME: {"everything": True}}, limit=_PAGE)
        async for info in each_session(self.door.list, query):
            until = Waiver.of(info.extra).until
            if until is not None and info.id not in self._expiries:
                self.expire_later(info.id, until)

    async def close(self) -> None:
        """Stop every timer."""
        self.session_rows.close()
        for timer in self._expiries.values():
            timer.cancel()
        self._expiries.clear()
