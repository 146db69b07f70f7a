"""What a dialect tells the shell of its connections: its verbs, its table, its failures."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from dragoman.holding import Holder

from .jsonrpc import Request

C = TypeVar("C")  # whose verb it is: a connection, or its call
P = TypeVar("P")  # the params
Order = Literal["free", "serial", "pool"]
Quick = Callable[[Any], Any]
"""Makes what answers one connection quickly until something else is heard, or None.

Of JSON-RPC: the whole response, to be formatted with the number that is its id. Of a dialect with
an envelope of its own: what answers a request, or gives None when it takes the whole way.
"""

UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError, ValueError)


class BadParams(Exception):
    """Params that cannot be read: what is wrong with them."""


class UnknownMethod(Exception):
    """There is no verb of this name."""


class Crowded(Exception):
    """Too many requests of one connection wait already; the argument is how many may."""


class Cancelled(Exception):
    """Whoever answers the request was stopped."""


class After(Holder):
    """A result, and what is to be done once it was sent."""

    result: Any
    then: Callable[[], None]


class Verb:
    """One method.

    `run` gets the connection and the params. A `direct` one gets the call instead; when it returns
    None it answers by itself, at once or later. What `waits` is, or returns, a coroutine. The
    result of a `plain` one is written as it is, whatever the connection's spelling. `quick` makes
    the answer to requests without params; it holds until something else is heard. `takes` is the
    type of its params, for the reference.
    """

    __slots__ = ("direct", "order", "plain", "quick", "read", "run", "simple", "takes", "waits")

    def __init__(
        self,
        run: Callable[[C, P], object],
        params: type[P] | None = None,
        *,
        order: Order = "free",
        direct: bool = False,
        plain: bool = False,
        waits: bool | None = None,
        quick: Quick | None = None,
        read: Callable[[Any], P] | None = None,
        takes: object = None,
    ) -> None:
        self.run: Callable[[Any, Any], Any] = run
        self.takes = params if takes is None else takes
        self.read: Callable[[Any], Any] | None = read or (
            None if params is None else reader(params)
        )
        self.order = order
        self.direct = direct
        self.plain = plain
        self.waits = inspect.iscoroutinefunction(run) if waits is None else waits
        self.quick = quick
        self.simple = order == "free" and not direct and not self.waits


def reader(params: type[P]) -> Callable[[Any], P]:
    """Reads params of this type; its decoder is made when it is first needed."""
    decode: Callable[[Any], P] | None = None

    def read(raw: Any) -> P:
        nonlocal decode
        if decode is None:
            decode = msgspec.json.Decoder(params).decode
        return decode(raw)

    return read


class Table(Holder):
    """What a dialect tells its shells, once for all connections.

    `read` makes messages of lines. Those of type `request` have a `method`, an `id` and `params`;
    whatever else is no message of JSON-RPC goes to the party's `invalid`. `answer` writes the
    response with a result, of a party, a verb and the request's id; without it that is plain
    JSON-RPC. `bare` are the params of a request that has none. `expected` are the exceptions that
    verbs raise on purpose; every other one is a defect and is reported. In a `strict` table every
    answer keeps the order of its request; only where one `may_overtake`, those that are refused
    because too many wait go first. A `gated` party is asked before each request whether it may
    pass; one that `prepares` is waited for before a request of a lane runs.
    """

    verbs: Mapping[str, Verb]
    expected: tuple[type[BaseException], ...]
    read: Callable[[list[bytes]], Sequence[Any]] | None = None  # None: the dialect reads itself
    request: type = Request
    answer: Callable[[Any, Verb, Any, Any], bytes] | None = None
    bare: bytes = b"{}"
    gated: bool = False
    strict: bool = False
    may_overtake: bool = False
    prepares: bool = False
    at_once: int = 4_096
    pool: int = 64
    waiting: int = 65_536

    def __post_init__(self) -> None:
        self.expected = (BadParams, UnknownMethod, Crowded, Cancelled, *self.expected)


def bad_params(problem: Exception) -> BadParams:
    """What is wrong with params that cannot be read."""
    if isinstance(problem, RecursionError):
        return BadParams("nested too deeply")
    text = str(problem)
    if text.startswith("Expected `object`") and " - at " not in text:
        return BadParams("params must be an object")
    return BadParams(text)
