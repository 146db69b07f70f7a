"""The one asyncio protocol behind every byte stream: Unix sockets, TCP, pipes.

Reading: a chunk becomes lines, the dialect hears them in one call, and all it said meanwhile leaves
in one write. Writing outside of that: what is sent during one turn of the loop is written at its
end, for all connections by a single callback. There is no task and no queue object per connection.

A client that does not read cannot make us grow: over `bound` bytes we stop reading from it, and
when it takes nothing for `stall` seconds it is cut off.
"""

import asyncio
from collections.abc import Callable

from dragoman.wire.lines import Lines
from dragoman.wire.link import Blob, Hearer, Opener, Peer

BOUND = 16 * 1024 * 1024
STALL = 120.0


class Tick:
    """Flushes the connections that were written to during this turn of the loop."""

    __slots__ = ("_due", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._due: list[Pump] = []

    def add(self, pump: "Pump") -> None:
        """Have this connection flushed at the end of the turn."""
        if not self._due:
            self.loop.call_soon(self._flush)
        self._due.append(pump)

    def _flush(self) -> None:
        due, self._due = self._due, []
        for pump in due:
            pump.flush()


_tick: Tick | None = None


def _tick_of(loop: asyncio.AbstractEventLoop) -> Tick:
    global _tick
    if _tick is None or _tick.loop is not loop:
        _tick = Tick(loop)
    return _tick


Identify = Callable[[asyncio.BaseTransport], Peer | None]
"""Says who connected; None refuses the connection."""


class Pump(asyncio.Protocol):
    """One connection: the transport's protocol and the dialect's `Link`."""

    __slots__ = (
        "_bound",
        "_closing",
        "_due",
        "_ended",
        "_framer",
        "_hearer",
        "_hearing",
        "_identify",
        "_inlet",
        "_lost",
        "_open",
        "_outlet",
        "_queue",
        "_seen",
        "_stall",
        "_throttled",
        "_tick",
        "_timer",
        "_waiting",
        "_written",
        "paused",
        "peer",
        "spy",
    )

    def __init__(
        self,
        open: Opener,
        identify: Identify | Peer,
        *,
        bound: int = BOUND,
        stall: float = STALL,
    ) -> None:
        self._open = open
        self._identify = identify
        self._bound = bound
        self._stall = stall
        self._inlet: asyncio.ReadTransport | None = None
        self._outlet: asyncio.WriteTransport | None = None
        self._hearer: Hearer | None = None
        self._queue: list[bytes] = []
        self._due = False  # a flush at the end of the turn is arranged
        self._hearing = False
        self._ended = False
        self._closing = False
        self._lost = False
        self._throttled = False
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[Callable[[], None]] | None = None
        self._written = 0
        self._seen = 0  # how much the client had taken when the stall timer was set
        self.paused = False
        self.spy: Callable[[bytes], None] | None = None  # is shown what is written

    # --- asyncio's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        identify = self._identify
        peer = identify if isinstance(identify, Peer) else identify(transport)
        if peer is None:
            self._lost = True
            transport.abort()  # type: ignore[attr-defined]
            return
        self.begin(peer, transport, transport)  # type: ignore[arg-type]

    def begin(
        self,
        peer: Peer,
        inlet: asyncio.ReadTransport | None,
        outlet: asyncio.WriteTransport,
    ) -> None:
        """Start on these transports; a duplex one is given twice."""
        self.peer = peer
        self._inlet = inlet
        self._outlet = outlet
        self._tick = _tick_of(asyncio.get_running_loop())
        self._hearer = hearer = self._open(self)
        self._framer = self._make_framer(hearer)

    def data_received(self, data: bytes) -> None:
        if self._closing or self._lost:
            return
        self._hearing = True
        try:
            self._take(data)
        finally:
            self._hearing = False
            self._settle()

    def eof_received(self) -> bool:
        if self._lost or self._ended:
            return False
        self._ended = True
        if self._closing:
            return True
        self._hearing = True
        try:
            self._take_end()
            if not self._closing:
                self._hearer.ended()  # type: ignore[union-attr]
        finally:
            self._hearing = False
            self._settle()
        return True  # keep the writing side: answers may be on their way

    def connection_lost(self, exc: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
        hearer, self._hearer = self._hearer, None
        inlet: object = self._inlet
        if self._inlet is not None and inlet is not self._outlet:
            self._inlet.close()
        if hearer is not None:
            hearer.lost()
        self._wake()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self._throttled:
            self._throttled = False
            if self._timer is not None and not self._closing:
                self._timer.cancel()
                self._timer = None
            if not self._closing and not self._ended and self._inlet is not None:
                self._inlet.resume_reading()
        self._wake()

    # --- the dialect's side ---------------------------------------------------------------------

    @property
    def buffered(self) -> int:
        queued = sum(map(len, self._queue))
        if self._outlet is None or self._lost:
            return queued
        return queued + self._outlet.get_write_buffer_size()

    @property
    def closed(self) -> bool:
        return self._closing or self._lost

    def send(self, message: bytes) -> None:
        if self._closing or self._lost:
            return
        self._queue.append(message + b"\n")
        if not self._hearing and not self._due:
            self._due = True
            self._tick.add(self)

    def send_blob(self, blob: Blob) -> None:
        if self._closing or self._lost:
            return
        self._queue.append(blob.lines)
        if not self._hearing and not self._due:
            self._due = True
            self._tick.add(self)

    def on_resume(self, callback: Callable[[], None]) -> None:
        if self._lost or not self.paused:
            callback()
        elif self._waiting is None:
            self._waiting = [callback]
        else:
            self._waiting.append(callback)

    def eof(self) -> None:
        if self._closing or self._lost:
            return
        self.flush()
        outlet = self._outlet
        if outlet is not None and outlet.can_write_eof():
            outlet.write_eof()

    def close(self) -> None:
        if self._closing or self._lost:
            return
        self._closing = True
        if not self._hearing:
            self._settle()

    def abort(self) -> None:
        self._closing = True
        self._queue.clear()
        if self._outlet is not None:
            self._outlet.abort()

    # --- inside ---------------------------------------------------------------------------------

    def _make_framer(self, hearer: Hearer) -> Lines:
        return Lines(
            hearer.max_line,
            counts_newline=getattr(hearer, "limit_counts_newline", False),
            max_pending=getattr(hearer, "max_pending", 0),
        )

    def _take(self, data: bytes) -> None:
        framer = self._framer
        lines = framer.feed(data)
        if framer.overlong:
            self._hear_between(lines)
        elif lines:
            self._hearer.hear(lines)  # type: ignore[union-attr]

    def _take_end(self) -> None:
        lines = self._framer.end()
        if lines or self._framer.overlong:
            self._hear_between(lines)

    def _hear_between(self, lines: list[bytes]) -> None:
        """Let the dialect hear lines and over-long ones in the order they came."""
        hearer = self._hearer
        assert hearer is not None
        start = 0
        for before, size in self._framer.overlong:
            if before > start:
                hearer.hear(lines[start:before])
                start = before
            if self.closed:
                return
            hearer.overlong(size)
        if self.closed:
            return
        if start < len(lines):
            hearer.hear(lines[start:])

    def _settle(self) -> None:
        """Write what was said; end the connection when the dialect wants that."""
        if self._queue:
            self.flush()
        if self._closing and not self._lost and self._outlet is not None:
            if self._outlet.get_write_buffer_size() and self._timer is None:
                self._watch()  # a closing client that never reads must not stay for ever
            self._outlet.close()

    def flush(self) -> None:
        """Write everything that is queued, in one go."""
        self._due = False
        queue = self._queue
        if not queue:
            return
        data = queue[0] if len(queue) == 1 else b"".join(queue)
        queue.clear()
        outlet = self._outlet
        if self._lost or outlet is None:
            return
        self._written += len(data)
        if self.spy is not None:
            self.spy(data)
        outlet.write(data)
        if self.paused and not self._throttled:
            if outlet.get_write_buffer_size() > self._bound:
                self._throttled = True
                if not self._ended and self._inlet is not None:
                    self._inlet.pause_reading()
                self._watch()

    def _watch(self) -> None:
        outlet = self._outlet
        assert outlet is not None
        self._seen = self._written - outlet.get_write_buffer_size()
        self._timer = self._tick.loop.call_later(self._stall, self._check_stall)

    def _check_stall(self) -> None:
        self._timer = None
        if self._lost or self._outlet is None:
            return
        if not (self._throttled or self._closing):
            return
        if self._written - self._outlet.get_write_buffer_size() == self._seen:
            self.abort()
        else:
            self._watch()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        for callback in waiting or ():
            callback()
