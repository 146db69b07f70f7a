"""What a connection asks of the application, where a stream is written, what is joined to it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.engine.hub import Watch
from dragoman.holding import Holder

from .http import Answer, Request, Response, Stream

if TYPE_CHECKING:
    from .server import Connection

_MOST_HELD = 1_000  # pieces that may wait between a watch and the first byte of the answer


class Doorkeeper(Protocol):
    """Who may ask what."""

    def limit(self, request: Request) -> int:
        """How many bytes the body may have; called when the head is there. Raises Refusal."""
        ...

    async def admit(self, request: Request) -> None:
        """Raises Refusal when the client may not do this; called before the body is read."""
        ...


class ServerNeeds(Doorkeeper, Protocol):
    """What a server asks of the application behind it."""

    def spawn(self, work: Awaitable[Any]) -> object: ...

    async def answer(self, request: Request) -> Answer: ...

    def dress(self, request: Request | None, response: Response | Stream) -> None:
        """Add the headers that every answer has."""
        ...

    def answered(self, method: str, status: int) -> None:
        """An answer has begun; called once for each. No method: no head was understood."""
        ...

    def is_owner(self, peer: tuple[str, int], here: tuple[str, int]) -> bool:
        """Whether a program of the host's owner is at the other end; called in a thread."""
        ...

    def is_tools(self, peer: tuple[str, int], here: tuple[str, int]) -> bool:
        """Whether a program that a tool started is at the other end; called in a thread."""
        ...

    def joined(self, connection: "Connection") -> bool:
        """A client connected; False refuses it."""
        ...

    def left(self, connection: "Connection") -> None: ...

    def failure(self, request: Request, trouble: Exception) -> Response:
        """What a client is told when its request was refused, or something broke."""
        ...


class Outlet(Holder):
    """Where a stream is written to."""

    _connection: "Connection"
    _resumed: list[Callable[[], None]] = []
    closed: bool = False
    on_close: list[Callable[[], None]] = []

    @property
    def paused(self) -> bool:
        return self._connection.paused

    def write(self, data: bytes) -> None:
        if not self.closed and data:
            self._connection.write_chunk(data)

    def on_resume(self, callback: Callable[[], None]) -> None:
        """Call back when the client reads again."""
        if self.closed or not self.paused:
            callback()
        else:
            self._resumed.append(callback)

    def resumed(self) -> None:
        waiting, self._resumed = self._resumed, []
        for callback in waiting:
            callback()

    def close(self) -> None:
        """End the answer."""
        if not self.closed:
            self._connection.end_stream(self)

    def lost(self) -> None:
        if not self.closed:
            self.closed = True
            for callback in self.on_close:
                callback()
            self._resumed.clear()


class Feed(Holder):
    """What a watch delivers, kept until the stream has begun and then written to it."""

    _held: list[bytes] = []
    _outlet: Outlet | None = None
    _watch: Watch | None = None
    _waiting: bool = False

    @property
    def paused(self) -> bool:
        if self._outlet is None:
            return len(self._held) > _MOST_HELD
        if not self._outlet.paused:
            return False
        if not self._waiting:
            self._waiting = True
            self._outlet.on_resume(self._resumed)
        return True

    def deliver(self, said: bytes) -> None:
        if self._outlet is None:
            self._held.append(said)
        else:
            self._outlet.write(said)

    def join(self, outlet: Outlet, watch: Watch) -> None:
        """The stream has begun."""
        self._outlet = outlet
        self._watch = watch
        held, self._held = self._held, []
        for said in held:
            outlet.write(said)
        outlet.on_close.append(watch.close)
        watch.resume()

    def _resumed(self) -> None:
        self._waiting = False
        if self._watch is not None:
            self._watch.resume()
