"""Who is connected to the host."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from .events import Who
from .ports import Clock


class Visitor(msgspec.Struct, frozen=True):
    """A connected client, as lists of connections show it."""

    who: Who
    since: int


class Known(Protocol):
    """A connection that can say whose it is, and need not while nobody asks."""

    @property
    def who(self) -> Who: ...


class Visitors:
    """All clients that are connected."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._named: dict[str, Visitor] = {}
        self._connected: dict[Known, int] = {}  # and since when
        self.on_change: list[Callable[[], None]] = []

    @property
    def clients(self) -> dict[str, Visitor]:
        """Who is connected, by id."""
        found = {one.who.id: Visitor(one.who, since) for one, since in self._connected.items()}
        found.update(self._named)
        return found

    def enter(self, client: Known) -> None:
        """Somebody is connected; it is asked who it is when somebody wants to know."""
        self._connected[client] = self._clock.now_ms()
        self._changed()

    def exit(self, client: Known, who: Who | None = None) -> None:
        """It is gone; `who` is what it was, if that was ever said."""
        self._connected.pop(client, None)
        if who is not None:
            self._named.pop(who.id, None)
        self._changed()

    def arrive(self, who: Who) -> None:
        """Somebody is there, or has another name than before."""
        self._named[who.id] = Visitor(who, self._clock.now_ms())
        self._changed()

    def leave(self, who: Who) -> None:
        self._named.pop(who.id, None)
        self._changed()

    def _changed(self) -> None:
        for told in self.on_change:
            told()
