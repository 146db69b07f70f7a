"""One client at one session: what it is told there, and what it may do.

A client has one seat at a session and a seat has one watch, however often it asks for either. What
its requests do to a session happens in the order in which they came: those that have to wait for
something do so `in_order`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, cast

from dragoman.holding import Holder

from .content import Prompt
from .events import Event, Who
from .faults import NothingRunning, UnknownSession
from .host import Host
from .hub import S, Shape, T, Watch
from .ports import Files, Terminals
from .view import SessionView

if TYPE_CHECKING:
    from .work import Work


class Outlet(Protocol):
    """Where a client's events go; a connection's `Link` is one."""

    @property
    def paused(self) -> bool:
        """The client does not read."""
        ...

    def on_resume(self, callback: Callable[[], None]) -> None:
        """Call back once, when it reads again."""
        ...


class Seats:
    """The seats of one client, by session. Made by the door."""

    __slots__ = ("_host", "_listening", "_outlet", "_seats", "closed", "on_resume")

    def __init__(self, host: Host, outlet: Outlet) -> None:
        self._host = host
        self._outlet = outlet
        self._seats: dict[str, Seat[Any]] = {}
        self._listening = False  # for the client to read again
        self.on_resume: Callable[[], None] = lambda: None
        self.closed = False

    def __len__(self) -> int:
        return len(self._seats)

    def at(self, session_id: str) -> "Seat[Any]":
        """The client's seat at a session, whether it watches or not."""
        seat = self._seats.get(session_id)
        if seat is None:
            seat = self._seats[session_id] = Seat(self._host, self, session_id)
            seat.gone = self.closed
        return seat

    def get(self, session_id: str) -> "Seat[Any] | None":
        return self._seats.get(session_id)

    def ids(self) -> tuple[str, ...]:
        """The sessions at which there is a seat."""
        return tuple(self._seats)

    def forget(self, session_id: str) -> None:
        """Leave a session: it goes on without this client."""
        seat = self._seats.pop(session_id, None)
        if seat is not None:
            seat.leave()

    def close(self) -> None:
        """The client is gone."""
        self.closed = True
        for session_id in tuple(self._seats):
            self.forget(session_id)

    def is_paused(self) -> bool:
        """Whether the client does not read now; if so, all seats go on when it does again."""
        if not self._outlet.paused:
            return False
        if not self._listening:
            self._listening = True
            self._outlet.on_resume(self.resume)
        return True

    def resume(self) -> None:
        self._listening = False
        for seat in tuple(self._seats.values()):
            if seat.watch is not None:
                seat.watch.resume()
        self.on_resume()


class Seat(Holder, Generic[S]):
    """A client's place at one session; `shape` is how it is told what happens there."""

    _host: Host
    _seats: Seats
    id: str
    gone: bool = False
    watch: Watch | None = None
    shape: S | None = None
    lent: tuple[Files | None, Terminals | None] = (None, None)
    _order: asyncio.Lock | None = None
    _coming: int = 0  # prompts of this client that are not in the inbox yet
    _stop: str = ""  # why the one that comes first is to be stopped

    @asynccontextmanager
    async def in_order(self) -> AsyncIterator[None]:
        """After what this client asked of this session before."""
        if self._order is None:
            self._order = asyncio.Lock()
        async with self._order:
            yield

    async def reached(self) -> None:
        """Wait until what this client asked of this session before was done."""
        async with self.in_order():
            return

    def require(self) -> None:
        """Raises UnknownSession when somebody closed the session."""
        if self.id not in self._host.live:
            raise UnknownSession(self.id)

    @property
    def view(self) -> SessionView:
        """The live session. Raises UnknownSession when somebody closed it."""
        session = self._host.live.get(self.id)
        if session is None:
            raise UnknownSession(self.id)
        return SessionView(session.ledger, session)

    # --- watching ---

    @property
    def watches(self) -> bool:
        """Whether it is told what happens in the session as it is now."""
        session = self._host.live.get(self.id)
        watch = self.watch
        if watch is None or watch.closed or session is None or session.ledger.closing:
            return False
        return session.ledger.watched is watch.hub

    async def follow(
        self,
        who: Who,
        shape: Shape[T],
        deliver: Callable[[T], None],
        *,
        key: object = None,
        since: int | None = None,
        exact: bool = False,
        draft: bool = True,
        begun: Callable[[int, int], None] | None = None,
    ) -> S:
        """Be told what happens from now on, or after `since`, instead of what it was told before.

        The first shape that is given with a `key` serves all watchers of that key; it is returned.
        Raises UnknownSession, InUse.
        """
        session = await self._host.get(self.id)
        if since is not None and since > session.ledger.seen:  # known from a list, not told yet
            await session.ledger.told()
            session = await self._host.get(self.id)
        hub = session.ledger.hub
        if key is not None:
            shape = hub.shape(key, shape)
        if self.watch is not None:
            self.watch.close()
        self.shape = own = cast("S", shape)
        self.watch = hub.watch(
            who, shape, deliver, self._seats.is_paused, since=since, exact=exact, draft=draft,
            begun=begun,
        )  # fmt: skip
        if self.gone:  # it left while the session was fetched
            self.leave()
        else:
            self._lend()
        return own

    async def renew(self) -> bool:
        """Bring the session back if somebody let it go; False: it must be followed anew."""
        await self._host.get(self.id)
        return self.watches

    def then(self, callback: Callable[[], None]) -> None:
        """Call back once the client was given all events so far; at once when it has, or left."""
        if self.watch is None:
            callback()
        else:
            self.watch.then(callback)

    async def read(self, after: int, limit: int) -> Sequence[Event]:
        """Kept events after a sequence number, oldest first."""
        return await self._host.read(self.id, after, limit)

    def leave(self) -> None:
        """Stop watching for good; the session goes on without this client."""
        self.gone = True
        if self.watch is not None:
            self.watch.close()
            self.watch = None
        self.lend(None, None)

    # --- what the client lends ---

    def lend(self, files: Files | None, terminals: Terminals | None) -> None:
        """Let the session use the client's files and terminals; None: take them back."""
        session = self._host.live.get(self.id)
        if session is not None and any(self.lent):
            gear, (old_files, old_terminals) = session.gear, self.lent
            if old_files is not None and gear.files is old_files:
                gear.files = None
            if old_terminals is not None and gear.terminals is old_terminals:
                gear.terminals = None
        self.lent = (files, terminals)
        self._lend()

    def bring(self, variables: Mapping[str, str]) -> None:
        """Let commands of the session find the client's environment, as far as rules let them."""
        session = self._host.live.get(self.id)
        if session is not None:
            session.gear.variables = variables

    def lend_if_free(self) -> None:
        """Lend what this client has, when nobody lends files now."""
        session = self._host.live.get(self.id)
        if session is not None and any(self.lent) and session.gear.files is None:
            self._lend()

    def _lend(self) -> None:
        session = self._host.live.get(self.id)
        if session is not None and any(self.lent):
            files, terminals = self.lent
            session.gear.files = files or session.gear.files
            session.gear.terminals = terminals or session.gear.terminals

    # --- driving ---

    async def prompt(
        self,
        content: Prompt,
        by: Who,
        *,
        key: str = "",
        metadata: dict[str, Any] | None = None,
        when_busy: Literal["queue", "refuse"] = "queue",
        limit: int = 32,
        wait: float | None = None,
    ) -> "Work":
        """Give the session something to do. A `cancel` that comes meanwhile is for this prompt."""
        self._coming += 1
        try:
            work = await self._host.prompt(
                self.id, content, by, key=key, metadata=metadata, when_busy=when_busy,
                limit=limit, wait=wait,
            )  # fmt: skip
        finally:
            self._coming -= 1
            stop, self._stop = self._stop, ""
        if stop:
            work.stopped = work.stopped or (stop, False)
        return work

    def cancel(self, cause: str = "client") -> str:
        """Stop the turn that runs, or the next that waits or comes; returns its id if known."""
        session = self._host.live.get(self.id)
        try:
            if session is not None:
                return session.inbox.cancel(cause)
        except NothingRunning:
            pass
        if self._coming:
            self._stop = cause
        return ""
