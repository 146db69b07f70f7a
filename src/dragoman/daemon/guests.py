"""Who is connected: counted, bounded, and let go in an orderly way."""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from dragoman.dialects.descriptor import REGISTRY, rpc_refusal
from dragoman.wire.codec import encode
from dragoman.wire.link import Hearer, Link, Opener


class Guest(Link, Protocol):
    """A connection as the guest list needs it: it tells when it is gone, and can be looked into.

    The dialect hears it directly, so that being counted costs nothing per line.
    """

    left: Callable[["Guest"], None] | None
    hearer: Hearer | None
    spy: Callable[[bytes], None] | None


class Guests:
    """The connections there are now, and whether there ever was one."""

    def __init__(self, limit: int, refused: Callable[[Link], None]) -> None:
        self.limit = limit
        self.all: dict[Guest, str] = {}  # and what each speaks
        self.on_enter: list[Callable[[Guest, Hearer], Hearer]] = []  # may put itself between
        self._refused = refused
        self._any = False
        self._waiting: list[asyncio.Future[None]] = []  # for somebody to come or go

    @property
    def count(self) -> int:
        return len(self.all)

    def counting(self, open: Opener, dialect: str = "") -> Opener:
        """The same opener, whose connections are counted and bounded."""

        all, leave = self.all, self._leave

        def opened(link: Guest) -> Hearer:
            if len(all) >= self.limit:
                self._refused(link)
                return _Refused(link, dialect, self.limit)
            hearer = open(link)
            all[link] = dialect
            link.left = leave
            self._any = True
            if self._waiting:
                self._wake()
            for between in self.on_enter:
                hearer = between(link, hearer)
            return hearer

        return cast(Opener, opened)

    def _leave(self, guest: Guest) -> None:
        self.all.pop(guest, None)
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
            guest.close()
        try:
            async with asyncio.timeout(within):
                while self.all:
                    await self.changed()
        except TimeoutError:
            for guest in tuple(self.all):
                guest.abort()


class _Refused:
    """A connection beyond the limit: it is told so, and ended."""

    max_line = 1024
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, link: Link, dialect: str, limit: int) -> None:
        text = f"{limit} clients are connected already. Close one, or raise limits.max_clients."
        known = REGISTRY.find(dialect)
        answer = known.refusal(text) if known is not None else rpc_refusal(text)
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
