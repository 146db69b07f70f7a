"""What connections share, and what is kept of one that does not read."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from dragoman.wire.lines import Lines
from dragoman.wire.link import Hearer, Opener, Peer

BOUND = 16 * 1024 * 1024
STALL = 120.0


class Flushed(Protocol):
    """What has something to write at the end of a turn of the loop."""

    def flush(self) -> None: ...


class Tick:
    """Flushes the connections that were written to during this turn of the loop."""

    __slots__ = ("_due", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._due: list[Flushed] = []

    def add(self, one: Flushed) -> None:
        """Have this connection flushed at the end of the turn."""
        if not self._due:
            self.loop.call_soon(self._flush)
        self._due.append(one)

    def _flush(self) -> None:
        due, self._due = self._due, []
        for one in due:
            one.flush()


_tick: Tick | None = None


def tick_of(loop: asyncio.AbstractEventLoop) -> Tick:
    global _tick
    if _tick is None or _tick.loop is not loop:
        _tick = Tick(loop)
    return _tick


Identify = Callable[[asyncio.BaseTransport], Peer | None]
"""Says who connected; None refuses the connection."""


class Terms:
    """What all connections of one listener have in common."""

    __slots__ = ("bound", "identify", "open", "stall", "ticking")

    def __init__(
        self,
        open: Opener,
        identify: Identify | Peer,
        *,
        bound: int = BOUND,
        stall: float = STALL,
    ) -> None:
        self.open = open
        self.identify = identify
        self.bound = bound
        self.stall = stall
        self.ticking: Tick  # of the loop, once there is a connection


class Slow:
    """What is kept of a client only while it does not read what it is sent."""

    __slots__ = ("seen", "throttled", "timer", "waiting", "written")

    def __init__(self) -> None:
        self.throttled = False
        self.timer: asyncio.TimerHandle | None = None
        self.waiting: list[Callable[[], None]] = []
        self.written = 0  # since the timer was set
        self.seen = 0  # how much waited when the timer was set

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def framer_of(hearer: Hearer) -> Lines:
    """What cuts a connection into the lines that its dialect takes."""
    return Lines(
        hearer.max_line,
        counts_newline=getattr(hearer, "limit_counts_newline", False),
        max_pending=getattr(hearer, "max_pending", 0),
    )
