"""Who is connected: counted, bounded, and let go in an orderly way."""

import asyncio
from collections.abc import Callable

from dragoman.wire.codec import encode
from dragoman.wire.link import Hearer, Link, Opener


class Guest:
    """A connection: a hearer that tells the guest list when it is gone.

    There may be thousands of them, so it holds no more than it needs.
    """

    __slots__ = ("_room", "inner", "link", "max_line", "tap")

    def __init__(self, inner: Hearer, room: "Room", link: Link) -> None:
        self.inner = inner
        self.link = link
        self.max_line = inner.max_line
        self.tap: Callable[[list[bytes]], None] | None = None  # is shown what is heard
        self._room = room

    @property
    def dialect(self) -> str:
        return self._room.dialect

    @property
    def limit_counts_newline(self) -> bool:
        return getattr(self.inner, "limit_counts_newline", False)

    @property
    def max_pending(self) -> int:
        return getattr(self.inner, "max_pending", 0)

    def hear(self, lines: list[bytes]) -> None:
        if self.tap is not None:
            self.tap(lines)
        self.inner.hear(lines)

    def overlong(self, size: int) -> None:
        self.inner.overlong(size)

    def ended(self) -> None:
        self.inner.ended()

    def lost(self) -> None:
        self._room.guests.leave(self)
        self.inner.lost()


class Room:
    """What the connections of one listener share."""

    __slots__ = ("dialect", "guests")

    def __init__(self, guests: "Guests", dialect: str) -> None:
        self.guests = guests
        self.dialect = dialect


class Guests:
    """The connections there are now, and whether there ever was one."""

    def __init__(self, limit: int, refused: Callable[[Link], None]) -> None:
        self.limit = limit
        self.all: set[Guest] = set()
        self.on_enter: list[Callable[[Guest], None]] = []
        self._refused = refused
        self._any = False
        self._waiting: list[asyncio.Future[None]] = []  # for somebody to come or go

    @property
    def count(self) -> int:
        return len(self.all)

    def counting(self, open: Opener, dialect: str = "") -> Opener:
        """The same opener, whose connections are counted and bounded."""

        room = Room(self, dialect)

        def opened(link: Link) -> Hearer:
            if len(self.all) >= self.limit:
                self._refused(link)
                return _Refused(link, dialect, self.limit)
            guest = Guest(open(link), room, link)
            self.all.add(guest)
            self._any = True
            if self._waiting:
                self._wake()
            for told in self.on_enter:
                told(guest)
            return guest

        return opened

    def leave(self, guest: Guest) -> None:
        self.all.discard(guest)
        if self._waiting:
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def changed(self) -> None:
        """Wait until somebody comes or goes."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    async def gone(self, grace: float) -> None:
        """Return when the last client has left and none came back for `grace` seconds."""
        while True:
            while not self._any or self.all:
                await self.changed()
            try:
                async with asyncio.timeout(grace):
                    await self.changed()
            except TimeoutError:
                return

    async def dismiss(self, within: float) -> None:
        """End every connection: what is queued is sent first, if the client takes it in time."""
        for guest in tuple(self.all):
            guest.link.close()
        try:
            async with asyncio.timeout(within):
                while self.all:
                    await self.changed()
        except TimeoutError:
            for guest in tuple(self.all):
                guest.link.abort()


class _Refused:
    """A connection beyond the limit: it is told so, and ended."""

    max_line = 1024
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, link: Link, dialect: str, limit: int) -> None:
        text = f"{limit} clients are connected already. Close one, or raise limits.max_clients."
        answer: object = {
            "jsonrpc": "2.0",
            "error": {"code": -32001, "message": text},
            "id": None,
        }
        if dialect == "openclawos":
            code = "TOO_MANY_CLIENTS"
            answer = {
                "type": "response",
                "success": False,
                "error": {"code": code, "message": text},
            }
        link.send(encode(answer))
        link.close()

    def hear(self, lines: list[bytes]) -> None:
        return None

    def overlong(self, size: int) -> None:
        return None

    def ended(self) -> None:
        return None

    def lost(self) -> None:
        return None
