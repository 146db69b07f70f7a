"""Who is connected: counted, bounded, and let go in an orderly way."""

import asyncio
from collections.abc import Callable

from dragoman.wire.codec import encode
from dragoman.wire.link import Hearer, Link, Opener


class Guest:
    """A connection: a hearer that tells the guest list when it is gone.

    `hear` and the others are the dialect's own bound methods, so being counted costs nothing per
    line; a tap replaces `hear` for a while.
    """

    __slots__ = (
        "_guests",
        "dialect",
        "ended",
        "hear",
        "inner",
        "limit_counts_newline",
        "link",
        "max_line",
        "max_pending",
        "overlong",
    )

    def __init__(self, inner: Hearer, guests: "Guests", link: Link, dialect: str) -> None:
        self.inner = inner
        self.link = link
        self.dialect = dialect
        self.max_line = inner.max_line
        self.limit_counts_newline = getattr(inner, "limit_counts_newline", False)
        self.max_pending = getattr(inner, "max_pending", 0)
        self.hear = inner.hear
        self.overlong = inner.overlong
        self.ended = inner.ended
        self._guests = guests

    def lost(self) -> None:
        self._guests.leave(self)
        self.inner.lost()


class Guests:
    """The connections there are now, and whether there ever was one."""

    def __init__(self, limit: int, refused: Callable[[Link], None]) -> None:
        self.limit = limit
        self.all: set[Guest] = set()
        self.on_enter: list[Callable[[Guest], None]] = []
        self._refused = refused
        self._any = False
        self._changed = asyncio.Event()

    @property
    def count(self) -> int:
        return len(self.all)

    def counting(self, open: Opener, dialect: str = "") -> Opener:
        """The same opener, whose connections are counted and bounded."""

        def opened(link: Link) -> Hearer:
            if len(self.all) >= self.limit:
                self._refused(link)
                return _Refused(link, dialect, self.limit)
            guest = Guest(open(link), self, link, dialect)
            self.all.add(guest)
            self._any = True
            self._changed.set()
            for told in self.on_enter:
                told(guest)
            return guest

        return opened

    def leave(self, guest: Guest) -> None:
        self.all.discard(guest)
        self._changed.set()

    async def changed(self) -> None:
        """Wait until somebody comes or goes."""
        self._changed.clear()
        await self._changed.wait()

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
