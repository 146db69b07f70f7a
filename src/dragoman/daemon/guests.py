"""Who is connected: counted, bounded, and let go in an orderly way."""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from dragoman.dialects.descriptor import REGISTRY, rpc_refusal
from dragoman.wire.codec import encode
from dragoman.wire.link import Deaf, Hearer, Link, Opener

_PATIENCE = 1.0  # seconds for the first line of one that is to be refused
_MOST_UNHEARD = 64  # of those at once
_FIRST_LINE = 64 * 1024


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
        # Beyond the limit, and not heard yet: they are refused in the protocol of their first line.
        self._unheard: dict[Link, asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()  # somebody came or went; each is set once

    def counting(self, open: Opener, dialect: str = "") -> Opener:
        """The same opener, whose connections are counted and bounded."""

        all, leave = self.all, self._leave

        def opened(link: Guest) -> Hearer:
            if len(all) >= self.limit:
                self._refused(link)
                if dialect == "any" and len(self._unheard) < _MOST_UNHEARD:
                    return self._unknown(link)
                return self._refuse(link, dialect)
            hearer = open(link)
            all[link] = dialect
            link.left = leave
            self._any = True
            self._wake()
            for between in self.on_enter:
                hearer = between(link, hearer)
            return hearer

        return cast(Opener, opened)

    def _unknown(self, link: Guest) -> Hearer:
        """Refuse one whose protocol its first line tells; it is not waited for long."""
        from dragoman.dialects.sniff import AnyHearer

        def heard(link: Link) -> None:
            if (timer := self._unheard.pop(link, None)) is not None:
                timer.cancel()

        def refusing(name: str) -> Opener:
            if link not in self._unheard:  # too late: it was refused already
                return lambda link: Deaf()
            heard(link)
            return lambda link: self._refuse(link, name)

        loop = asyncio.get_running_loop()
        self._unheard[link] = loop.call_later(_PATIENCE, lambda: refusing("")(link))
        link.left = heard
        return AnyHearer(link, refusing, _FIRST_LINE)

    def _refuse(self, link: Link, dialect: str) -> Hearer:
        """Tell it so, and end it."""
        most = self.limit
        text = f"{most} clients are connected already. Close one, or raise limits.max_clients."
        known = REGISTRY.find(dialect)
        link.send(encode(known.refusal(text) if known is not None else rpc_refusal(text)))
        link.close()
        return Deaf()

    def _leave(self, guest: Guest) -> None:
        self.all.pop(guest, None)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Wait until somebody comes or goes."""
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
            guest.close()
        try:
            async with asyncio.timeout(within):
                while self.all:
                    await self.changed()
        except TimeoutError:
            for guest in tuple(self.all):
                guest.abort()
