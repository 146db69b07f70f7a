"""What all connections of this dialect in one process share."""

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.dialects.descriptor import REGISTRY
from dragoman.engine.door import Door
from dragoman.engine.faults import StoreFailed, TooMany, UnknownSession
from dragoman.wire.link import Link

from .faults import LoggedOut
from .shapes import Settings

if TYPE_CHECKING:
    from .attach import Attachment
    from .hear import AcpHearer

_LEAST_SWEEP = 0.05


class Configured(Protocol):
    """Anything that has these, so that the configuration's own section can be given."""

    @property
    def default_agent(self) -> str: ...

    @property
    def max_sessions(self) -> int: ...

    @property
    def session_timeout_secs(self) -> float: ...

    @property
    def error_codes(self) -> str: ...

    @property
    def version_2(self) -> bool: ...


class Desk:
    """Counts active sessions, lets idle ones go, and makes the hearers of new connections."""

    def __init__(self, door: Door, settings: Configured | None = None, *, agent: str = "") -> None:
        self.door = door
        self.settings: Configured = settings or Settings()
        self.agent = agent  # default of every connection that says nothing else
        self.active: dict[str, set[Attachment]] = {}
        # The lists that were encoded last, as JSON: with children, and without.
        self.pages: dict[bool, tuple[Any, Any]] = {}
        self.opening = 0  # sessions on their way in
        self.logged_out = False  # somebody logged out, and nobody in
        self._sweeper: asyncio.TimerHandle | None = None

    def hearer(self, link: Link) -> "AcpHearer":
        """The dialect's side of a new connection."""
        from .hear import AcpHearer

        return AcpHearer(self.door, link, self, link.peer.came.agent or self.agent)

    def accounts(self) -> list[str]:
        """Providers whose key somebody kept by logging in, maybe in a terminal just now."""
        known = self.door.facts.logged_in
        return list(known()) if known is not None else []

    def is_logged_out(self) -> bool:
        """Whether somebody logged out, and nobody in since."""
        self.logged_out = self.logged_out and not self.accounts()
        return self.logged_out

    def require_login(self) -> None:
        """Raises LoggedOut when somebody logged out and nobody in."""
        if self.is_logged_out():
            raise LoggedOut("Authentication required", "Log in with: dragoman login")

    # --- how many ---

    def reserve(self, session_id: str = "") -> None:
        """Take a place for a session that is about to become active. Raises TooMany."""
        if session_id and session_id in self.active:
            self.opening += 1
            return
        most = self.settings.max_sessions
        if len(self.active) + self.opening >= most:
            raise TooMany(
                f"Maximum session limit reached ({most})",
                "Close a session, or raise acp.max_sessions.",
            )
        self.opening += 1

    def release(self) -> None:
        self.opening -= 1

    def add(self, attachment: "Attachment") -> None:
        self.active.setdefault(attachment.id, set()).add(attachment)
        self._arrange()

    def remove(self, attachment: "Attachment") -> None:
        group = self.active.get(attachment.id)
        if group is not None:
            group.discard(attachment)
            if not group:
                del self.active[attachment.id]
            else:  # another connection may lend its files and terminals now
                for other in group:
                    other.seat.lend_if_free()

    def others_may_answer(self, attachment: "Attachment") -> bool:
        """Whether somebody else is connected who could answer a free question."""
        for client in self.door.visitors.clients.values():
            known = REGISTRY.find(client.who.dialect)
            if known is None or known.answers:
                return True
        return any(
            other.connection.client.forms
            for other in self.active.get(attachment.id, ())
            if other is not attachment
        )

    def take_back(self, session_id: str) -> None:
        """Take back the prompts of version 2 that wait in a session."""
        for attachment in self.active.get(session_id, ()):
            for key in tuple(attachment.held):
                attachment.take_back(key)

    # --- letting go ---

    def _arrange(self) -> None:
        timeout = self.settings.session_timeout_secs
        if timeout <= 0 or self._sweeper is not None or not self.active:
            return
        oldest = min(a.last_used for group in self.active.values() for a in group)
        delay = max(_LEAST_SWEEP, oldest + timeout - monotonic())
        self._sweeper = asyncio.get_running_loop().call_later(delay, self._sweep_soon)

    def _sweep_soon(self) -> None:
        self._sweeper = None
        self.door.spawn(self._sweep())

    async def _sweep(self) -> None:
        """Let go of sessions that were not used for long; never of one that works or waits."""
        timeout = self.settings.session_timeout_secs
        now = monotonic()
        for group in tuple(self.active.values()):
            for attachment in tuple(group):
                session = self.door.live(attachment.id)
                if session is not None and (session.busy or session.asks):
                    attachment.last_used = now
                if attachment.running is not None:
                    attachment.last_used = now
                if now - attachment.last_used >= timeout:
                    try:
                        await self.let_go(attachment, "idle")
                    except StoreFailed as problem:  # the others are let go all the same
                        self.door.trouble("a session was not let go", problem, id=attachment.id)
        self._arrange()

    async def let_go(self, attachment: "Attachment", cause: str) -> None:
        """Detach a session, and close it when nobody else is attached."""
        attachment.connection.forget(attachment)
        await self.close_spare(attachment.id, cause)

    async def close_spare(self, session_id: str, cause: str) -> None:
        """Close a session in which nothing runs and where nobody is."""
        session = self.door.live(session_id)
        if session is not None and not session.busy and not self.door.present(session_id):
            try:
                await self.door.close(session_id, cause)
            except UnknownSession:
                return  # it was closed already

    async def close(self) -> None:
        """Stop the timer; the host goes down."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
