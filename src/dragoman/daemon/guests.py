"""Counts who is connected; an ephemeral daemon leaves some time after the last one left."""

import asyncio
from collections.abc import Callable

from dragoman.wire.link import Hearer, Link, Opener


class Guests:
    """How many clients are connected now, and whether there ever was one."""

    def __init__(self, limit: int, refused: Callable[[Link], None]) -> None:
        self.count = 0
        self.limit = limit
        self._refused = refused
        self._any = False
        self._changed = asyncio.Event()

    def counting(self, open: Opener) -> Opener:
        """The same opener, whose connections are counted and bounded."""

        def opened(link: Link) -> Hearer:
            if self.count >= self.limit:
                self._refused(link)
                return _Refused(link)
            self.enter()
            return _Counted(open(link), self)

        return opened

    def enter(self) -> None:
        self.count += 1
        self._any = True
        self._changed.set()

    def leave(self) -> None:
        self.count -= 1
        self._changed.set()

    async def gone(self, grace: float) -> None:
        """Return when the last client has left and none came back for `grace` seconds."""
        while True:
            while not self._any or self.count:
                self._changed.clear()
                await self._changed.wait()
            self._changed.clear()
            try:
                async with asyncio.timeout(grace):
                    await self._changed.wait()
            except TimeoutError:
                return


class _Counted:
    """A hearer that tells the guest list when its connection is gone."""

    def __init__(self, inner: Hearer, guests: Guests) -> None:
        self.max_line = inner.max_line
        self.limit_counts_newline = inner.limit_counts_newline
        self.max_pending = inner.max_pending
        # Bound methods of the inner one: counting costs nothing per line.
        self.hear = inner.hear
        self.overlong = inner.overlong
        self.ended = inner.ended
        self._inner = inner
        self._guests = guests

    def lost(self) -> None:
        self._guests.leave()
        self._inner.lost()


class _Refused:
    """A connection beyond the limit."""

    max_line = 1
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, link: Link) -> None:
        link.abort()

    def hear(self, lines: list[bytes]) -> None:
        return None

    def overlong(self, size: int) -> None:
        return None

    def ended(self) -> None:
        return None

    def lost(self) -> None:
        return None
