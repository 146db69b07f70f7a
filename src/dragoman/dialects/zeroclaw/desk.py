"""What all connections of this protocol share: settings, who is there, the answer of `status`."""

import asyncio
from functools import cached_property
from os import urandom
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.ids import token
from dragoman.engine.view import SessionView
from dragoman.observe.log import get_log
from dragoman.wire.codec import encode
from dragoman.wire.link import Hearer, Link

from .spelling import spoken

if TYPE_CHECKING:
    from .terminals import Signer

PROTOCOL = 1
TERMINAL = "0.8.4"  # the release of ZeroClaw's terminal whose calls and answers were compared

_SPELLINGS = 16  # answers of `status` that are kept ready

Status = tuple[tuple[str, ...], "Configured", msgspec.Raw, bytes]

log = get_log("dialect.zeroclaw")


class Settings(msgspec.Struct, frozen=True):
    """`[zeroclaw]` of the configuration."""

    server_version: str = ""
    max_sessions: int = 1024
    queue: int = 32
    queue_wait_secs: float = 30.0
    approval_timeout_secs: float = 0.0


class Configured(Protocol):
    """Anything that has these, so that the configuration's own section can be given."""

    @property
    def server_version(self) -> str: ...

    @property
    def max_sessions(self) -> int: ...

    @property
    def queue(self) -> int: ...

    @property
    def queue_wait_secs(self) -> float: ...

    @property
    def approval_timeout_secs(self) -> float: ...


class Tui(msgspec.Struct, frozen=True):
    """A connection that said `initialize`."""

    tui_id: str
    at: int  # milliseconds
    peer: str
    transport: str


class Desk:
    """The protocol's side of one process. `hearer(link)` serves a connection."""

    def __init__(self, door: Door, settings: Configured | None = None) -> None:
        self.door = door
        self.settings: Configured = settings or Settings()
        self.tuis: dict[str, Tui] = {}  # by connection
        self._reading: dict[str, asyncio.Future[SessionView]] = {}
        self.opening: dict[str, asyncio.Future[None]] = {}  # sessions that are being made now
        self.left: dict[str, set[str]] = {}  # who closed a session while something of theirs ran
        self._status: dict[tuple[bool, str], Status] = {}

    def hearer(self, link: Link) -> Hearer:
        """The dialect's side of a new connection."""
        from .hear import ZeroclawHearer

        return ZeroclawHearer(self.door, link, self)

    def who(self, link: Link) -> Who:
        return Who("zeroclaw", link.peer.label, id=f"zeroclaw-{token()[:12]}")

    @property
    def version(self) -> str:
        """The version that clients are told."""
        return self.settings.server_version or self.door.facts.version or "0"

    def version_for(self, terminal: str) -> str:
        """The version that a client is told: `terminal` is what ZeroClaw's own is to hear."""
        return self.settings.server_version or terminal or self.version

    @cached_property
    def signer(self) -> "Signer":
        """Signs the names of terminals; not in a fleet, whose nodes have keys of their own."""
        from .terminals import Signer

        facts = self.door.facts
        return Signer(facts.data_dir if facts.fleet is None else "")

    def enlist(self, who: Who, link: Link, claimed: str) -> str:
        """Note a client that said `initialize`; returns its id."""
        tui_id = claimed or f"tui_{urandom(4).hex()}"
        for other in [key for key, tui in self.tuis.items() if tui.tui_id == tui_id]:
            del self.tuis[other]  # a client that came back under its own name
        peer = link.peer
        self.tuis[who.id] = Tui(tui_id, self.door.now_ms(), peer.label, peer.transport)
        return tui_id

    def status(self, camel: bool, terminal: str = "") -> msgspec.Raw:
        """The answer of `status`."""
        return self._known_status(camel, terminal)[2]

    def status_line(self, camel: bool, terminal: str = "") -> bytes:
        """The whole response to a `status`, to be formatted with the number that is its id."""
        return self._known_status(camel, terminal)[3]

    def _known_status(self, camel: bool, terminal: str) -> "Status":
        """Made again only when the sessions or the settings changed."""
        ids = self.door.live_ids()
        known = self._status.get((camel, terminal))
        if known is not None and known[0] == ids and known[1] is self.settings:
            return known
        made: dict[str, Any] = {
            "server_version": self.version_for(terminal),
            "protocol_version": PROTOCOL,
            "active_sessions": len(ids),
            "session_ids": ids,
        }
        facts = self.door.facts
        if facts.config_dir:
            made["config_dir"] = facts.config_dir
            made["config_file"] = facts.config_file
            made["config_kind"] = facts.config_kind
        endpoint = facts.addresses.get("zeroclaw")
        if endpoint:
            made["local_ipc_endpoint"] = endpoint
        raw = encode(spoken(made) if camel else made)
        line = b'{"jsonrpc":"2.0","result":' + raw.replace(b"%", b"%%") + b',"id":%d}'
        if len(self._status) > _SPELLINGS:  # clients choose the version they name
            self._status.clear()
        known = self._status[camel, terminal] = (ids, self.settings, msgspec.Raw(raw), line)
        return known

    async def state(self, session_id: str) -> SessionView:
        """A session's state; those who want one that is not in memory share one reading of it."""
        if self.door.live(session_id) is not None:
            return await self.door.look(session_id)
        reading = self._reading.get(session_id)
        if reading is None:
            reading = self._reading[session_id] = asyncio.ensure_future(self.door.look(session_id))
            reading.add_done_callback(lambda _: self._reading.pop(session_id, None))
        return await asyncio.shield(reading)
