"""What an HTTP client does for us, and how it may fail."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec


class HttpFault(Exception):
    """A request that got no whole answer. The text says what happened."""


class BadRequest(HttpFault):
    """It cannot be sent: the address, a header or the proxy's address is wrong."""


class Unreachable(HttpFault):
    """There is no connection: nobody is there, or the name is not known."""


class Untrusted(Unreachable):
    """Nobody whom we believe vouches for its certificate."""


class TimedOut(HttpFault):
    """Something took longer than it may."""


class HungUp(HttpFault):
    """The connection ended before the answer did."""


class NotHttp(HttpFault):
    """What came is no answer in HTTP/1.1."""


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds to connect, from the request to the answer's head, and between two of its bytes."""

    connect: float = 10.0
    first: float = 120.0
    between: float = 120.0


class Whole(msgspec.Struct, frozen=True):
    """An answer that was read to its end. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Answer(Protocol):
    """An answer whose head has come, and whose body is coming."""

    status: int
    headers: dict[str, str]

    def into(self, sink: Callable[[bytes], None]) -> None:
        """Hand the body over as it comes, straight from the read; `sink` must not raise."""
        ...

    async def more(self) -> bool:
        """Wait until something came since the last time; False at the end. Raises HttpFault."""
        ...

    async def read(self, most: int) -> bytes:
        """The body, cut after so many bytes. Raises HttpFault."""
        ...

    def leave(self) -> None:
        """Nobody wants the rest: the connection is kept if the answer ends soon."""
        ...


class Http(Protocol):
    """A client that keeps its connections."""

    def open(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = ...,
        body: bytes = ...,
        timeouts: Timeouts | None = ...,
    ) -> AbstractAsyncContextManager[Answer]:
        """Send a request; entered when the head of the answer is there. Leaving early aborts.

        Redirects are not followed: a key must not go where nobody sent it. Raises HttpFault.
        """
        ...

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = ...,
        body: bytes = ...,
        timeouts: Timeouts | None = ...,
        most: int = ...,
    ) -> Whole:
        """Send a request and read its answer, cut after `most` bytes. Raises HttpFault."""
        ...

    async def close(self) -> None: ...
