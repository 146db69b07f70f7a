"""The one asyncio protocol behind every byte stream: Unix sockets, TCP, pipes.

Reading: a chunk becomes lines, the dialect hears them in one call, and all it said meanwhile leaves
in one write. Writing outside of that: what is sent during one turn of the loop is written at its
end, for all connections by a single callback. There is no task and no queue object per connection.

A client that does not read cannot make us grow: over `bound` bytes we stop reading from it, and
when it takes nothing for `stall` seconds it is cut off.
"""

import asyncio
import select
import socket
import sys
from collections.abc import Callable
from typing import Protocol

from dragoman.holding import Holder
from dragoman.wire.lines import Lines
from dragoman.wire.link import Blob, Hearer, Opener, Peer, tell_overlong

BOUND = 16 * 1024 * 1024
STALL = 120.0
_LONG = 1_000_000  # bytes that are not copied once more
_LOOK = 5.0  # seconds between two looks whether a client that has ended its side is there at all


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


class Slow(Holder):
    """What is kept of a client only while it does not read what it is sent."""

    throttled: bool = False
    timer: asyncio.TimerHandle | None = None
    waiting: list[Callable[[], None]] = []
    written: int = 0  # since the timer was set
    seen: int = 0  # how much waited when the timer was set

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


_idle: dict[tuple[int, bool, int], Lines] = {}  # framers that hold nothing, by their limits


def framer_of(hearer: Hearer) -> Lines:
    """What cuts a connection into the lines that its dialect takes."""
    return Lines(
        hearer.max_line,
        counts_newline=hearer.limit_counts_newline,
        max_pending=hearer.max_pending,
    )


def _tells_of_leaving(outlet: asyncio.WriteTransport) -> bool:
    """Whether the system tells who has closed its socket from who has only said all it had."""
    connection = outlet.get_extra_info("socket")
    return sys.platform == "linux" and getattr(connection, "family", None) == socket.AF_UNIX


def _has_left(outlet: asyncio.WriteTransport) -> bool:
    number = outlet.get_extra_info("socket").fileno()
    if number < 0:
        return True
    looked = select.poll()
    looked.register(number, 0)  # of the end of both directions it tells unasked
    return bool(looked.poll(0))


class Pump(asyncio.Protocol):
    """One connection: the transport's protocol and the dialect's `Link`.

    There may be thousands that say nothing, so each holds only what it needs just now: a framer
    while a line is unfinished, a queue while something is to be written.
    """

    __slots__ = (
        "_due",
        "_ended",
        "_framer",
        "_hearing",
        "_inlet",
        "_lost",
        "_outlet",
        "_queue",
        "_slow",
        "_terms",
        "closed",
        "hearer",
        "left",
        "paused",
        "peer",
        "spy",
    )

    _glue = b"\n"  # ends every message

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._inlet: asyncio.ReadTransport | None = None
        self._outlet: asyncio.WriteTransport | None = None
        self.hearer: Hearer | None = None  # the dialect's side, while there is a connection
        self._framer: Lines | None = None
        self._queue: list[bytes] | Blob | None = None
        self._due = False  # a flush at the end of the turn is arranged
        self._hearing = False
        self._ended = False
        self.closed = False  # also when it is lost
        self._lost = False
        self._slow: Slow | None = None
        self.paused = False
        self.left: Callable[[Pump], None] | None = None  # is told when it is gone
        self.spy: Callable[[bytes], None] | None = None  # is shown what is written

    # --- asyncio's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        identify = self._terms.identify
        peer = identify if isinstance(identify, Peer) else identify(transport)
        if peer is None:
            self._lost = self.closed = True
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
        terms = self._terms
        terms.ticking = tick_of(asyncio.get_running_loop())
        self.hearer = terms.open(self)

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        self._hearing = True
        try:
            hearer = self.hearer
            assert hearer is not None
            framer = self._framer
            if framer is None:  # one that holds nothing serves all: making one takes 2 µs
                limits = (hearer.max_line, hearer.limit_counts_newline, hearer.max_pending)
                framer = _idle.get(limits)
                if framer is None:
                    framer = _idle[limits] = framer_of(hearer)
            lines = framer.feed(data)
            if not framer.idle or framer.overlong:  # it is ours as long as it holds something
                _idle.pop(framer.limits, None)
                self._framer = None if framer.idle else framer
                if framer.overlong:
                    self._hear_between(lines, framer)
                    return
            elif self._framer is not None:
                self._framer = None
                _idle[framer.limits] = framer
            if lines:
                hearer.hear(lines)
        finally:
            self._hearing = False
            if self.closed:
                self._settle()  # type: ignore[unreachable]
            elif self._queue is not None:
                self.flush()

    def eof_received(self) -> bool:
        if self._lost or self._ended:
            return False
        self._ended = True
        if self.closed:
            return True
        self._hearing = True
        try:
            if self._framer is not None:
                self._take_end()
            if not self.closed:
                assert self.hearer is not None
                self.hearer.ended()
        finally:
            self._hearing = False
            self._settle()
        if not self.closed and self._outlet is not None and _tells_of_leaving(self._outlet):
            self._later(_LOOK, self._look)
        return True  # keep the writing side: answers may be on their way

    def _look(self) -> None:
        """Let a client go that has left for good: what it waits for may be hours away."""
        if self.closed or self._outlet is None:
            return
        if _has_left(self._outlet):
            self.abort()
        else:
            self._later(_LOOK, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._lost:
            return
        self._lost = self.closed = True
        self._queue = None
        hearer, self.hearer = self.hearer, None
        inlet: object = self._inlet
        if self._inlet is not None and inlet is not self._outlet:
            self._inlet.close()
        if self._slow is not None:
            self._slow.stop()
        if self.left is not None:
            self.left(self)
        if hearer is not None:
            hearer.lost()
        if self._slow is not None:
            self._wake()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        slow = self._slow
        if slow is not None and slow.throttled:
            slow.throttled = False
            if not self.closed:
                slow.stop()
                if not self._ended and self._inlet is not None:
                    self._inlet.resume_reading()
        self._wake()

    # --- the dialect's side ---------------------------------------------------------------------

    @property
    def buffered(self) -> int:
        queue = self._queue
        if queue is None:
            queued = 0
        elif isinstance(queue, list):
            queued = sum(map(len, queue)) + len(queue) * len(self._glue)
        else:
            queued = len(queue.lines)
        if self._outlet is None or self._lost:
            return queued
        return queued + self._outlet.get_write_buffer_size()

    # Something in the queue means that it will be written: we hear, or a flush is due.

    def send(self, message: bytes) -> None:
        if self.closed:
            return
        queue = self._queue
        if queue is None:
            self._queue = [message]
            if not self._hearing and not self._due:
                self._due = True
                self._terms.ticking.add(self)
        elif isinstance(queue, list):
            queue.append(message)
        else:
            self._queue = [queue.body, message]

    def send_blob(self, blob: Blob) -> None:
        if self.closed or not blob.messages:
            return
        queue = self._queue
        if queue is None:
            self._queue = blob
            if not self._hearing and not self._due:
                self._due = True
                self._terms.ticking.add(self)
        elif isinstance(queue, list):
            queue.append(blob.body)
        else:
            self._queue = [queue.body, blob.body]

    def on_resume(self, callback: Callable[[], None]) -> None:
        if self._lost or not self.paused:
            callback()
        else:
            self._slowed().waiting.append(callback)

    def eof(self) -> None:
        if self.closed:
            return
        self.flush()
        outlet = self._outlet
        if outlet is not None and outlet.can_write_eof():
            outlet.write_eof()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if not self._hearing:
            self._settle()

    def abort(self) -> None:
        self.closed = True
        self._queue = None
        if self._outlet is not None:
            self._outlet.abort()

    # --- inside ---------------------------------------------------------------------------------

    def _take_end(self) -> None:
        framer = self._framer
        assert framer is not None
        lines = framer.end()
        if lines or framer.overlong:
            self._hear_between(lines, framer)

    def _hear_between(self, lines: list[bytes], framer: Lines) -> None:
        """Let the dialect hear lines and over-long ones in the order they came."""
        hearer = self.hearer
        assert hearer is not None
        start = 0
        for (before, size), ends in zip(framer.overlong, framer.ends, strict=True):
            if before > start:
                hearer.hear(lines[start:before])
                start = before
            if self.closed:
                return
            tell_overlong(hearer, size, ends)
        if self.closed:
            return
        if start < len(lines):
            hearer.hear(lines[start:])

    def _settle(self) -> None:
        """Write what was said; end the connection when the dialect wants that."""
        if self._queue is not None:
            self.flush()
        if self.closed and not self._lost and self._outlet is not None:
            if self._outlet.get_write_buffer_size() and not self._is_watched():
                self._watch()  # a closing client that never reads must not stay for ever
            self._outlet.close()

    def flush(self) -> None:
        """Write everything that is queued, in one go."""
        self._due = False
        queue = self._queue
        if queue is None:
            return
        self._queue = None
        outlet = self._outlet
        if self._lost or outlet is None:
            return
        if isinstance(queue, list):
            glue = self._glue
            if len(queue) == 1:
                data = queue[0]
                if len(data) < _LONG:
                    data += glue
                elif glue:  # a copy of a hundred MB would keep everybody waiting
                    self._write(outlet, data)
                    data = glue
            else:
                queue.append(b"")
                data = glue.join(queue)
        else:
            data = queue.lines
        self._write(outlet, data)

    def _write(self, outlet: asyncio.WriteTransport, data: bytes) -> None:
        if self.spy is not None:
            self.spy(data)
        outlet.write(data)
        if self.paused:
            self._throttle(len(data))

    def _throttle(self, size: int) -> None:
        """More was written than the client takes: stop hearing it when that is too much."""
        slow, outlet = self._slowed(), self._outlet
        assert outlet is not None
        slow.written += size
        if not slow.throttled and outlet.get_write_buffer_size() > self._terms.bound:
            slow.throttled = True
            if not self._ended and self._inlet is not None:
                self._inlet.pause_reading()
            self._watch()

    def _slowed(self) -> Slow:
        slow = self._slow
        if slow is None:
            slow = self._slow = Slow()
        return slow

    def _is_watched(self) -> bool:
        return self._slow is not None and self._slow.timer is not None

    def _watch(self) -> None:
        slow, outlet = self._slowed(), self._outlet
        assert outlet is not None
        slow.seen = outlet.get_write_buffer_size()
        slow.written = 0
        slow.timer = self._later(self._terms.stall, self._check_stall)

    def _later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._terms.ticking.loop.call_later(delay, callback)

    def _check_stall(self) -> None:
        slow = self._slow
        if slow is None:
            return
        slow.timer = None
        if self._lost or self._outlet is None:
            return
        if not (slow.throttled or self.closed):
            return
        if slow.seen + slow.written == self._outlet.get_write_buffer_size():
            self.abort()
        else:
            self._watch()

    def _wake(self) -> None:
        slow = self._slow
        if slow is None:
            return
        waiting, slow.waiting = slow.waiting, []
        if slow.timer is None and not slow.throttled:
            self._slow = None
        for callback in waiting:
            callback()
