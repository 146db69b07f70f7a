"""What is said to an HTTP client and by it, and how it may fail."""

from collections.abc import Mapping

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
