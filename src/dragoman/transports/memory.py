"""A connection inside the process, through the same pump as the real ones. For tests."""

import asyncio
from collections.abc import Callable

from dragoman.wire.link import Opener, Peer

from .pump import BOUND, STALL, Pump, Terms

HIGH = 65536
LOW = 16384


class Wire(asyncio.Transport):
    """The server's end: keeps what is written, and how often."""

    def __init__(self, told: Callable[[], None]) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.reading = True
        self.eof = False
        self.stuck = False  # nothing is taken from the buffer
        self._held: list[bytes] = []
        self._size = 0
        self._closing = False
        self._told = told
        self.pump: Pump
        self.out = bytearray()

    def write(self, data: bytes) -> None:  # type: ignore[override]
        if self._closing:
            return
        self.writes.append(data)
        if self.stuck:
            self._held.append(data)
            self._size += len(data)
            if self._size > HIGH and not self.pump.paused:
                self.pump.pause_writing()
        else:
            self.out += data
            self._told()

    def sip(self, size: int) -> None:
        """Let the client read a little while it stays stuck."""
        held = b"".join(self._held)
        self.out += held[:size]
        self._held = [held[size:]]
        self._size = len(self._held[0])
        self._told()

    def take(self) -> None:
        """Let the client read again: all that was held arrives."""
        self.stuck = False
        self.out += b"".join(self._held)
        self._held.clear()
        self._size = 0
        self._told()
        if self.pump.paused:
            self.pump.resume_writing()
        if self._closing:
            self._lose()

    def get_write_buffer_size(self) -> int:
        return self._size

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.eof = True
        self._told()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._size:
                self._lose()

    def abort(self) -> None:
        self._closing = True
        self._lose()

    def _lose(self) -> None:
        asyncio.get_running_loop().call_soon(self._lost)

    def _lost(self) -> None:
        self.eof = True
        self.pump.connection_lost(None)
        self._told()


class Client:
    """The client's end of an in-process connection."""

    def __init__(
        self,
        open: Opener,
        peer: Peer = Peer("memory", "memory"),  # noqa: B008 - frozen
        *,
        bound: int = BOUND,
        stall: float = STALL,
    ) -> None:
        self._news = asyncio.Event()
        self.wire = Wire(self._news.set)
        self.pump = self.wire.pump = Pump(Terms(open, peer, bound=bound, stall=stall))
        self._read = 0
        self.pump.connection_made(self.wire)

    def send(self, *messages: bytes) -> None:
        """Send messages, each with its newline, as one chunk."""
        self.feed(b"".join([message + b"\n" for message in messages]))

    def feed(self, chunk: bytes) -> None:
        """Send bytes as they are, as one chunk."""
        self.pump.data_received(chunk)

    def end(self) -> None:
        """Half-close: say that nothing more will be sent."""
        self.pump.eof_received()

    def drop(self) -> None:
        """Break the connection."""
        self.wire.abort()

    def received(self) -> list[bytes]:
        """All complete lines so far that were not read yet, without waiting."""
        cut = self.wire.out.rfind(b"\n")
        if cut < self._read:
            return []
        lines = bytes(self.wire.out[self._read : cut]).split(b"\n")
        self._read = cut + 1
        return lines

    async def receive(self, within: float = 30.0) -> bytes:
        """The next line. Raises TimeoutError, and EOFError when the server ended the connection."""
        async with asyncio.timeout(within):
            while True:
                cut = self.wire.out.find(b"\n", self._read)
                if cut >= 0:
                    line = bytes(self.wire.out[self._read : cut])
                    self._read = cut + 1
                    return line
                if self.wire.eof:
                    raise EOFError("the server ended the connection")
                self._news.clear()
                await self._news.wait()
