"""One connection: a request out, its answer in, then the next. Grammar by httptools."""

import asyncio
import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from .gathering import CAN_BE_QUIET, Gathering
from .port import HttpFault, HungUp, NotHttp, TimedOut, Timeouts

if TYPE_CHECKING:
    from .packed import Unpacker

_HEAD = 64 * 1024  # bytes of an answer's head
_AHEAD = 1024 * 1024  # bytes that may wait for whoever reads
_REST = 64 * 1024  # bytes and seconds given to the rest of an answer that nobody wants
_SOON = 0.1
_ROOM = memoryview(bytearray(64 * 1024))


class Connection(asyncio.BaseProtocol):
    """The socket's side: knows at most one answer that is under way."""

    __slots__ = ("answer", "idle_since", "lost", "on_lost", "transport", "used")

    def __init__(self, on_lost: Callable[["Connection"], None]) -> None:
        self.transport: asyncio.Transport = None  # type: ignore[assignment]
        self.answer: Incoming | None = None
        self.on_lost = on_lost
        self.lost = False
        self.used = 0  # answers before this one
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self.answer is None:
            self.abort()  # nobody asked
        else:
            self.answer.arrived(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.on_lost(self)
        if self.answer is not None:
            self.answer.cut(exc)

    @property
    def stale(self) -> bool:
        """Whether something came from the other side while nobody asked: its end, or nonsense.

        The loop may not have read it yet, so the socket itself is looked at: a request that is
        written to such a connection is lost, and nobody could tell whether it was heard.
        """
        number = self.transport.get_extra_info("socket").fileno()
        if number < 0:
            return True
        if sys.platform == "win32":  # there is no poll
            return bool(select.select([number], [], [], 0)[0])
        else:
            looked = select.poll()
            looked.register(number, select.POLLIN | getattr(select, "POLLRDHUP", 0))
            return bool(looked.poll(0))

    def abort(self) -> None:
        """End it now; nothing more is sent or read."""
        self.lost = True
        if self.transport is not None:
            self.transport.abort()


class Plain(Connection, asyncio.Protocol):
    """Without TLS."""

    __slots__ = ()


class Secure(Connection, asyncio.BufferedProtocol):
    """With TLS, which otherwise makes room of its own for each read, a quarter of a megabyte."""

    __slots__ = ()

    def get_buffer(self, sizehint: int) -> memoryview:
        return _ROOM  # one for all: it is read in the same breath

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(_ROOM[:nbytes]))


class Incoming:
    """One answer, from the request on.

    Bytes go from the read through httptools straight into the sink; whoever waits is woken once
    for each read. One timer serves all limits: it looks at a deadline that each read moves.
    """

    __slots__ = (
        "_ahead", "_bare", "_between", "_body", "_connection", "_deadline", "_done", "_fault",
        "_gathering", "_headed", "_keep", "_left", "_loop", "_news", "_packed", "_parser",
        "_paused", "_pieces", "_release", "_seen", "_sink", "_size", "_timer", "_unsent", "_waiter",
        "headers", "on_body", "status",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        request: bytes,
        timeouts: Timeouts,
        release: Callable[[Connection], None],
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._connection = connection
        self._release = release
        self._between = timeouts.between
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append
        self._sink: Callable[[bytes], None] | None = None
        self._packed: Unpacker | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._fault: HttpFault | None = None
        self._headed = self._done = self._keep = self._left = self._news = self._paused = False
        self._seen = 0  # bytes of the head, then of the rest that nobody wants
        self._ahead = 0
        self._bare = 0  # bytes since the last of a body
        self._body = False  # the head was whole at the last read
        self._size = 0
        self._unsent = len(request)
        self._gathering: Gathering | None = None
        connection.answer = self
        self._parser: Any = HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + timeouts.first
        self._timer = self._loop.call_at(self._deadline, self._look, timeouts.first)
        connection.transport.write(request)

    # --- what the connection tells ---

    def arrived(self, data: bytes) -> None:
        """Bytes of this answer."""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._broke(data, error)
            return
        if self._fault is not None:
            return
        if not self._headed:
            self._seen += len(data)
            if self._seen > _HEAD:
                self._fail(NotHttp(f"the head of the answer is longer than {_HEAD} bytes"))
            return
        now = self._loop.time()
        if self._gathering is not None and not self._done:
            self._gathering.read(now)
        pieces = self._pieces
        if self._done:
            del pieces[self._size :]  # of an answer that nobody asked for
        if pieces or not self._body:
            self._body, self._deadline, self._bare = True, now + self._between, 0
        else:  # nothing but what is around a body: it is no sign of life
            self._bare += len(data)
            if self._bare > _HEAD and not self._done:
                self._fail(NotHttp(f"more than {_HEAD} bytes came that hold nothing"))
                return
        if pieces:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if self._left:
                pieces.clear()
                self._seen += len(body)
            elif self._sink is not None:
                pieces.clear()
                self._give(body)
            else:
                self._ahead = len(body)
            if self._ahead > _AHEAD and not self._done:
                self._paused = True
                self._connection.transport.pause_reading()
        if self._done:
            self._ended()
        elif self._left and self._seen > _REST:
            self._connection.abort()
        self._wake()

    def cut(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._fault is not None or self._done:
            return
        known = "content-length" in self.headers or "transfer-encoding" in self.headers
        if self._headed and not known and exc is None:
            self._done = True  # an answer without a length ends with its connection
            self._ended()
            self._wake()
            return
        when = "in the middle of its answer" if self._headed else "before it answered"
        if self._connection.used and not self._headed:
            when += ", and may have heard the request"
        why = f": {exc}" if exc else ""
        self._fail(HungUp(f"it closed the connection {when}{why}"))

    @property
    def unanswered(self) -> bool:
        """Whether a kept connection ended without a byte of an answer: it may have been heard."""
        return bool(
            self._connection.used
            and self._seen == 0
            and not self._headed
            and isinstance(self._fault, HungUp)
        )

    # --- what httptools tells ---

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._headed:
            return  # trailers say nothing that matters here
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self.headers.get(key)
        self.headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        if self._done or self._fault is not None:
            return
        self.status = self._parser.get_status_code()
        if self.status >= 200:
            self._headed = True
            packed = self.headers.get("content-encoding", "identity").strip().lower()
            if packed not in ("", "identity"):
                from .packed import Unpacker

                self._packed = Unpacker(packed)

    def on_message_complete(self) -> None:
        if self._done or self._fault is not None:
            self._keep = False  # more than one answer to one request
        elif self.status < 200:
            self.headers = {}  # on the way to the real one
        else:
            self._done = True
            self._size = len(self._pieces)
            self._keep = bool(self._parser.should_keep_alive())

    def on_message_begin(self) -> None:
        if self._done:
            self._keep = False

    # --- what the reader asks ---

    async def head(self) -> None:
        """Wait for the status and the headers. Raises HttpFault."""
        while not self._headed:  # what went wrong after it is told after what came
            if self._fault is not None:
                raise self._fault
            await self._wait()

    def into(self, sink: Callable[[bytes], None]) -> None:
        """Hand the body over as it comes, straight from the read; `sink` must not raise."""
        self._sink = sink
        if CAN_BE_QUIET and self._gathering is None and not self._done:
            self._gathering = Gathering(self._loop, self._connection.transport)
        if self._pieces:
            body = b"".join(self._pieces)
            self._pieces.clear()
            self._give(body)
            if self._done:
                self._check_packed()

    async def more(self) -> bool:
        """Wait until something came since the last time; False at the end. Raises HttpFault."""
        while not self._news:
            if self._fault is not None:
                raise self._fault
            if self._done:
                return False
            await self._wait()
        self._news = False
        self._ahead = 0
        if self._paused:
            self._paused = False
            self._deadline = self._loop.time() + self._between
            self._connection.transport.resume_reading()
        return True

    async def read(self, most: int) -> bytes:
        """The body, cut after so many bytes. Raises HttpFault."""
        body = bytearray()
        self.into(lambda data: body.extend(data[: most - len(body)]))
        while len(body) < most and await self.more():
            continue
        return bytes(body)

    def leave(self) -> None:
        """Nobody wants the rest: the connection is kept if the answer ends soon."""
        if self._done or self._fault is not None or self._connection.lost:
            return
        self._left = True
        self._be_heard()
        self._sink = None
        self._pieces.clear()
        self._seen = 0
        self._timer.cancel()
        self._timer = self._loop.call_later(_SOON, self._connection.abort)
        if self._paused:
            self._connection.transport.resume_reading()

    def close(self) -> None:
        """Whoever read it is done; what is not whole and was not left is cut off."""
        if not self._left:
            self._timer.cancel()
            self._be_heard()
            if not self._done:
                self._connection.abort()

    # --- inside ---

    def _be_heard(self) -> None:
        """From now on every byte is told at once."""
        if self._gathering is not None:
            self._gathering.stop()
            self._gathering = None

    def _give(self, body: bytes) -> None:
        assert self._sink is not None
        if self._packed is not None:
            trouble = self._packed.feed(body, self._sink)
            if trouble:
                self._fail(NotHttp(trouble))
                return
        else:
            self._sink(body)
        self._ahead += len(body)
        self._news = True

    def _ended(self) -> None:
        """The whole answer is here: the connection is free, if it can be used again."""
        self._timer.cancel()
        self._be_heard()
        connection = self._connection
        connection.answer = None
        self._parser = None  # it holds on to us
        if not self._pieces:
            self._check_packed()
        if self._keep and not connection.lost:
            connection.used += 1
            self._release(connection)
        else:
            connection.abort()

    def _check_packed(self) -> None:
        if self._packed is not None and not self._packed.whole:
            self._fail(HungUp("the packed answer breaks off"))

    def _broke(self, data: bytes, error: Exception) -> None:
        if self._fault is not None:
            return
        if self._done:  # the answer is whole, what follows it is not ours
            self._keep = False
            del self._pieces[self._size :]
            if self._sink is not None and self._pieces:
                self.into(self._sink)
            self._ended()
            self._wake()
        elif not self._headed and data[3:5] == b"\x04\x00":
            self._fail(NotHttp("it speaks HTTP/2 though HTTP/1.1 was asked for"))
        elif self._headed:
            self._deadline = self._loop.time()
            if self._sink is not None and self._pieces:
                self.into(self._sink)  # what came before the break counts
            self._fail(NotHttp(f"the answer breaks the rules of HTTP: {error}"))
        elif isinstance(error, HttpParserUpgrade):
            self._fail(NotHttp("it changes to another protocol though nobody asked"))
        else:
            self._fail(NotHttp(f"what came is no HTTP: {error}"))

    def _fail(self, fault: HttpFault) -> None:
        if self._fault is None:
            self._fault = fault
            self._timer.cancel()
            self._parser = None
            self._be_heard()
            if not self._done:  # else the connection is not ours any more
                self._connection.answer = None
                self._connection.abort()
            self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _look(self, first: float) -> None:
        """The timer: is the deadline past, or has it moved?"""
        now = self._loop.time()
        if not self._headed:
            unsent = self._connection.transport.get_write_buffer_size()
            if 0 < unsent < self._unsent:  # a long request on a slow line is still going out
                self._deadline = now + first
            self._unsent = unsent
        elif self._paused:
            self._deadline = now + self._between
        if now < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._look, first)
        elif self._headed:
            self._fail(TimedOut(f"nothing came for {self._between:g} s"))
        else:
            self._fail(TimedOut(f"no answer began within {first:g} s"))
