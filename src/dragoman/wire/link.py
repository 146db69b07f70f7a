"""The seam between a dialect and whatever carries its bytes.

A transport offers a `Link` and calls a `Hearer`; a dialect is a `Hearer` and speaks to a `Link`.
Neither knows the other's class.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from .lines import Ends

if TYPE_CHECKING:
    from .jsonrpc import Response
    from .verbs import Verb


class Came(msgspec.Struct, frozen=True, gc=False):
    """What the address asked for that a client of the gateway came by."""

    agent: str = ""  # the default of its sessions
    connection: str = ""  # a name that the client keeps when it connects again
    longest: int = 0  # bytes of a message


NOT_SAID = Came()


class Peer(msgspec.Struct, frozen=True, gc=False):
    """Who is at the other end, as far as the transport can tell."""

    label: str  # "unix:pid=12,uid=0", "stdio", "wss:127.0.0.1:4711"
    transport: str  # "unix", "stdio", "pipe", "ws", "wss", "memory"
    pid: int | None = None
    uid: int | None = None
    came: Came = NOT_SAID


class Blob:
    """Messages that are encoded once and sent to many connections."""

    __slots__ = ("_body", "_frames", "_lines", "messages")

    def __init__(self, messages: Sequence[bytes]) -> None:
        self.messages = messages
        self._body: bytes | None = None
        self._lines: bytes | None = None
        self._frames: bytes | None = None

    @property
    def body(self) -> bytes:
        """The messages joined by newlines, without one at the end."""
        if self._body is None:
            messages = self.messages
            self._body = messages[0] if len(messages) == 1 else b"\n".join(messages)
        return self._body

    @property
    def lines(self) -> bytes:
        """The messages as newline-terminated lines."""
        if self._lines is None:
            self._lines = self.body + b"\n" if self.messages else b""
        return self._lines

    @property
    def frames(self) -> bytes:
        """The messages as unmasked WebSocket text frames."""
        if self._frames is None:
            from .frames import text_frame  # only where somebody speaks WebSocket

            self._frames = b"".join([text_frame(message) for message in self.messages])
        return self._frames


class Link(Protocol):
    """One connection as its dialect sees it.

    Everything sent while `Hearer.hear` runs leaves in one write when it returns; everything else
    sent within one turn of the loop leaves in one write after it. Sending on a link that is closed
    or lost does nothing.
    """

    @property
    def peer(self) -> Peer: ...

    @property
    def paused(self) -> bool:
        """The client reads too slowly: more than the high-water mark waits to be sent."""
        ...

    @property
    def buffered(self) -> int:
        """Bytes that wait to be sent."""
        ...

    @property
    def closed(self) -> bool:
        """Nothing that is sent from now on will arrive."""
        ...

    def send(self, message: bytes) -> None:
        """Queue one message, given without its newline."""
        ...

    def send_blob(self, blob: Blob) -> None:
        """Queue messages that are shared with other connections."""
        ...

    def on_resume(self, callback: Callable[[], None]) -> None:
        """Call back once when `paused` ends (at once when it is not) or the link is lost."""
        ...

    def eof(self) -> None:
        """Send what is queued, then say that nothing more will come; goes on reading."""
        ...

    def close(self) -> None:
        """Send what is queued, then end the connection; nothing more is heard."""
        ...

    def abort(self) -> None:
        """End the connection now; what is queued is lost."""
        ...


class Hearer(Protocol):
    """One connection as its transport sees it: the dialect's side.

    `max_line` is the limit of a line in bytes, `limit_counts_newline` whether the newline is part
    of it. With `max_pending` an over-long line is told at its newline with its full size, or once
    more than `max_pending` bytes came without one; without it, as soon as the limit is passed.
    """

    @property
    def max_line(self) -> int: ...

    @property
    def limit_counts_newline(self) -> bool:
        return False

    @property
    def max_pending(self) -> int:
        return 0

    def hear(self, lines: list[bytes]) -> None:
        """Take complete lines: no LF, no CR at the end, none empty. Called once per read."""
        ...

    def overlong(self, size: int) -> None:
        """A line went over the limit (`size` bytes were seen so far); the rest of it is skipped.

        The dialect may answer, close the link, or both. Called once per line, in its place among
        the others. One that has `wants_ends = True` is called with both ends of the line, too:
        see `wire.lines.Ends` and `tell_overlong`.
        """
        ...

    def ended(self) -> None:
        """The client will send nothing more; it may still read.

        A last line without newline was heard before this. The link stays open for answers until
        the dialect closes it.
        """
        ...

    def lost(self) -> None:
        """The connection is gone. Called exactly once, last."""
        ...


class Deaf:
    """A `Hearer` that takes nothing in; base of those that only want to know of the end."""

    max_line = 1024
    limit_counts_newline = False
    max_pending = 0

    def hear(self, lines: list[bytes]) -> None:
        return None

    def overlong(self, size: int) -> None:
        return None

    def ended(self) -> None:
        return None

    def lost(self) -> None:
        return None


Opener = Callable[[Link], Hearer]
"""Makes the dialect's side of a new connection."""


def tell_overlong(hearer: Hearer, size: int, ends: Ends) -> None:
    """Say to a hearer that a line was over its limit, as much as it wants to know."""
    if getattr(hearer, "wants_ends", False):
        hearer.overlong(size, ends)  # type: ignore[call-arg]
    else:
        hearer.overlong(size)


class Party:
    """A dialect's side of one connection, as its shell needs it."""

    __slots__ = ()
    link: Link

    def failure(self, verb: "Verb | None", id: Any, problem: BaseException) -> bytes:
        """The response for whatever went wrong."""
        raise NotImplementedError

    def trouble(self, verb: "Verb | None", problem: BaseException) -> None:
        """Report a defect of ours."""
        raise NotImplementedError

    def rested(self) -> None:
        """The client will say nothing more, or shall not be heard, and has all its answers."""
        raise NotImplementedError

    def refuses(self, verb: "Verb | None", request: Any) -> BaseException | None:
        """Why this request may not pass; asked when the table is gated."""
        return None

    def invalid(self, message: Any) -> bytes:
        """The response to what is no message."""
        raise NotImplementedError

    def responded(self, response: "Response") -> None:
        """The client answered a request of ours; nothing of ours waits for one."""

    def is_ready(self) -> bool:
        """Whether a request of a lane may run; asked when the table prepares."""
        return True

    async def prepare(self) -> None:
        """Waited for before a request of a lane runs, when the table prepares."""
