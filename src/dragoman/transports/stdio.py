"""The process's own standard input and output as one connection.

Pipes and sockets go through the event loop. Regular files, terminals and devices cannot be watched
by every loop, so a thread reads or writes those.
"""

import asyncio
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

from dragoman.wire.link import Opener, Peer

from .pump import Pump, Terms

_CHUNK = 65536
_LOOK_SECONDS = 0.5
Begin = Callable[[asyncio.ReadTransport, asyncio.WriteTransport], None]


def claim_stdout() -> int:
    """Make the real standard output private and return its descriptor.

    Afterwards descriptor 1 and `sys.stdout` lead to standard error, so that nothing else, be it a
    library or a child process, can print on the wire.
    """
    sys.stdout.flush()
    wire = os.dup(1)  # not inherited by child processes
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return wire


async def serve(
    open: Opener,
    *,
    stdin: int = 0,
    stdout: int | None = None,
    first: bytes = b"",
) -> "Stdio":
    """Connect a dialect to standard input and output; `stdout` None claims the real one.

    `first` was read of the input already: it comes before everything else.
    """
    if stdout is None:
        stdout = claim_stdout()
    line = Stdio(open, first)
    await line.connect(stdin, stdout)
    return line


class Stdio:
    """A connection over two descriptors; `gone` is set when it is over and all is flushed."""

    def __init__(self, open: Opener, first: bytes = b"") -> None:
        self.peer = Peer("stdio", "stdio")
        self._first = first
        self.pump = Pump(Terms(open, self.peer))
        self.gone = asyncio.Event()

    async def connect(self, stdin: int, stdout: int) -> None:
        """Choose a way for each side and start."""
        pump, gone = self.pump, self.gone
        if _is_same_socket(stdin, stdout):
            await _open_socket(_Duplex(pump, gone, self.begin), stdout)
            return
        outlet = await self._outlet(stdout)
        if not _is_watchable(stdin):
            inlet: asyncio.ReadTransport = ReadThread(pump, stdin)
            self.begin(inlet, outlet)
            inlet.start()  # type: ignore[attr-defined]
            return
        protocol = _Inlet(pump, self.begin, outlet)
        if stat.S_ISSOCK(os.fstat(stdin).st_mode):
            await _open_socket(protocol, stdin)
        else:
            source = os.fdopen(stdin, "rb", 0, closefd=stdin != 0)
            await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, source)

    def begin(self, inlet: asyncio.ReadTransport, outlet: asyncio.WriteTransport) -> None:
        """Both transports are there, and nothing was read from them yet."""
        self.pump.begin(self.peer, inlet, outlet)
        if self._first:
            self.pump.data_received(self._first)

    async def _outlet(self, stdout: int) -> asyncio.WriteTransport:
        protocol = _Outlet(self.pump, self.gone)
        mode = os.fstat(stdout).st_mode
        if stat.S_ISSOCK(mode):
            found: asyncio.WriteTransport = await _open_socket(protocol, stdout)
        elif not stat.S_ISFIFO(mode):
            return WriteThread(protocol, stdout)
        else:
            sink = os.fdopen(stdout, "wb", 0)
            loop = asyncio.get_running_loop()
            found, _ = await loop.connect_write_pipe(lambda: protocol, sink)
        _end_with_reader(found, stdout)
        return found


def _end_with_reader(outlet: asyncio.WriteTransport, fd: int) -> None:
    """Notice within a second that nobody reads any more: not every loop tells before a write."""
    import select

    if not hasattr(select, "poll"):
        return
    state = select.poll()
    state.register(fd, 0)  # an error or a hang-up is told in any case
    loop = asyncio.get_running_loop()

    def look() -> None:
        if outlet.is_closing():
            return
        if state.poll(0):
            outlet.abort()
        else:
            loop.call_later(_LOOK_SECONDS, look)

    loop.call_later(_LOOK_SECONDS, look)


def _is_watchable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _is_same_socket(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    return stat.S_ISSOCK(first.st_mode) and os.path.samestat(first, second)


async def _open_socket(protocol: asyncio.Protocol, fd: int) -> asyncio.Transport:
    """Use a descriptor that is a socket.

    Not as a pipe: asyncio takes input on a pipe's writing end for its closing.
    """
    loop = asyncio.get_running_loop()
    sock = socket.socket(fileno=os.dup(fd))
    sock.setblocking(False)
    if sock.family == socket.AF_UNIX:
        transport, _ = await loop.create_unix_connection(lambda: protocol, sock=sock)
    else:
        transport, _ = await loop.create_connection(lambda: protocol, sock=sock)
    return transport


class _Inlet(asyncio.Protocol):
    """The reading side; its end is no end of the connection."""

    def __init__(self, pump: Pump, begin: Begin, outlet: asyncio.WriteTransport) -> None:
        self.data_received = pump.data_received  # type: ignore[method-assign]
        self._pump = pump
        self._begin = begin
        self._outlet = outlet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._begin(transport, self._outlet)  # type: ignore[arg-type]

    def eof_received(self) -> bool:
        self._pump.eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._pump.eof_received()  # a broken input is an ended one; does nothing the second time


class _Outlet(asyncio.Protocol):
    """The writing side; its end is the end of the connection."""

    def __init__(self, pump: Pump, gone: asyncio.Event) -> None:
        self.pause_writing = pump.pause_writing  # type: ignore[method-assign]
        self.resume_writing = pump.resume_writing  # type: ignore[method-assign]
        self._pump = pump
        self._gone = gone

    def eof_received(self) -> bool:
        return True  # a client that only reads may shut down its other direction

    def connection_lost(self, exc: Exception | None) -> None:
        self._pump.connection_lost(exc)
        self._gone.set()


class _Duplex(_Outlet):
    """Both directions on one socket."""

    def __init__(self, pump: Pump, gone: asyncio.Event, begin: Begin) -> None:
        super().__init__(pump, gone)
        self.data_received = pump.data_received  # type: ignore[method-assign]
        self.eof_received = pump.eof_received  # type: ignore[method-assign]
        self._begin = begin

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._begin(transport, transport)  # type: ignore[arg-type]


class ReadThread(asyncio.ReadTransport):
    """Reads a file, terminal or device by blocking reads in a thread."""

    def __init__(self, pump: Pump, fd: int) -> None:
        super().__init__()
        self._pump = pump
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._may_read = threading.Event()
        self._may_read.set()
        self._closed = False

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def close(self) -> None:
        self._closed = True
        self._may_read.set()

    def is_closing(self) -> bool:
        return self._closed

    def _run(self) -> None:
        while not self._closed:
            try:
                data = os.read(self._fd, _CHUNK)
            except OSError:
                data = b""  # a terminal that hung up
            taken = threading.Event()
            if not _tell(self._loop, self._take, data, taken) or not data:
                return
            taken.wait()  # one chunk at a time: a large file must not be read ahead
            self._may_read.wait()

    def _take(self, data: bytes, taken: threading.Event) -> None:
        try:
            if data:
                self._pump.data_received(data)
            else:
                self._pump.eof_received()
        finally:
            taken.set()


class WriteThread(asyncio.WriteTransport):
    """Writes to a file, terminal or device by blocking writes in a thread."""

    _HIGH = 65536

    def __init__(self, protocol: asyncio.Protocol, fd: int) -> None:
        super().__init__()
        self._protocol = protocol
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._size = 0
        self._paused = False
        self._closing = False
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    def write(self, data: bytes) -> None:  # type: ignore[override]
        if self._closing:
            return
        self._size += len(data)
        self._queue.put(data)
        if self._size > self._HIGH and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self._size

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._queue.put(None)

    def abort(self) -> None:
        self._closing = True
        self._queue.put(None)
        self._loop.call_soon(self._protocol.connection_lost, None)

    def _run(self) -> None:
        failure: OSError | None = None
        while (data := self._queue.get()) is not None:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError as trouble:
                failure = trouble
                break
            if not _tell(self._loop, self._wrote, len(data)):
                return
        _tell(self._loop, self._protocol.connection_lost, failure)

    def _wrote(self, size: int) -> None:
        self._size -= size
        if self._paused and self._size <= self._HIGH // 4:
            self._paused = False
            self._protocol.resume_writing()


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: object) -> bool:
    """Call back in the loop's own thread; False: the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        return False
    return True
