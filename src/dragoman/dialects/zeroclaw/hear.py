"""One connection: lines in, answers out, and the sessions it watches."""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Invalid,
    Outbound,
    Reader,
    Request,
    Response,
    Rules,
    error,
    reply,
)
from dragoman.wire.link import Link
from dragoman.wire.serve import Pause, Shell
from dragoman.wire.verbs import BadParams, Crowded, Table, UnknownMethod, Verb

from .desk import Desk, log
from .faults import AUTH_REQUIRED, Refusal, code_of, message_of
from .seats import Seats
from .spelling import spoken, spoken_text
from .unused import drop_unused
from .verbs import VERBS

if TYPE_CHECKING:
    from dragoman.engine.hub import Watch

MAX_LINE = 8 * 1024 * 1024
IN_FLIGHT = 4_096  # requests of one connection that may be worked on at once

_NONE: Mapping[str, str] = MappingProxyType({})
_INITIALIZE = VERBS["initialize"]
_FIRST = Refusal(AUTH_REQUIRED, "First call must be 'initialize'")


def _answer(conn: "ZeroclawHearer", verb: Verb, id: Any, value: Any) -> bytes:
    return reply(id, spoken(value) if conn.camel and not verb.plain else value)


TABLE = Table(
    VERBS,
    read=Reader(Rules()).read,
    expected=(Fault, Refusal),
    answer=_answer,
    bare=b"",
    gated=True,
    at_once=IN_FLIGHT,
)


class Held:
    """What few connections have: watches of our own kind, sessions on their way in."""

    __slots__ = ("follows_log", "on_lost", "opening", "watches")

    def __init__(self) -> None:
        self.watches: dict[str, Watch] = {}  # of `dragoman/watch`, by id
        self.opening: dict[str, asyncio.Future[None]] = {}
        self.on_lost: list[Callable[[], None]] = []
        self.follows_log = False


class ZeroclawHearer:
    """The dialect's side of one connection.

    Thousands may be open and silent, so most of what a connection can have is made when it does.
    """

    __slots__ = (
        "_counted", "_held", "_outbound", "_pause", "_seats", "_who", "camel", "desk", "door",
        "env", "form", "gone", "link", "ready", "shell", "terminal", "untap",
    )  # fmt: skip
    max_line = MAX_LINE
    limit_counts_newline = True
    max_pending = 0

    def __init__(self, door: Door, link: Link, desk: Desk) -> None:
        self.door = door
        self.link = link
        self.desk = desk
        self.ready = False  # `initialize` succeeded
        self.camel = True
        self.form = False  # the client shows questions when it is asked by a request
        self.terminal = ""  # the version that ZeroClaw's own terminal is to hear, if it is that
        self.env: Mapping[str, str] = _NONE  # of the client, when it told
        self.untap: Callable[[], None] | None = None
        self.gone = False
        self._who: Who | None = None
        self._held: Held | None = None
        self._outbound: Outbound | None = None
        self._seats: Seats | None = None
        self._pause: Pause | None = None
        self._counted = 0
        self.shell = Shell(TABLE, self)
        door.visitors.enter(self)

    @property
    def who(self) -> Who:
        if self._who is None:
            self._who = self.desk.who(self.link)
        return self._who

    @who.setter
    def who(self, given: Who) -> None:
        self._who = given

    @property
    def outbound(self) -> Outbound:
        """Our own requests to this client."""
        if self._outbound is None:
            self._outbound = Outbound(self.link.send)
            if self.gone:
                self._outbound.lose()
        return self._outbound

    @property
    def held(self) -> "Held":
        """What few connections have."""
        if self._held is None:
            self._held = Held()
        return self._held

    @property
    def seats(self) -> Seats:
        """The sessions it watches."""
        if self._seats is None:
            self._seats = Seats(self)
        return self._seats

    # --- wire.link.Hearer ---

    def hear(self, lines: list[bytes]) -> None:
        self.shell.hear(lines)

    def overlong(self, size: int) -> None:
        text = f"Invalid request: a line may have {MAX_LINE} bytes with its newline"
        self.link.send(error(None, INVALID_REQUEST, text))
        self.link.close()

    def ended(self) -> None:
        self.shell.end()

    def lost(self) -> None:
        """The client is gone. What it began goes on."""
        self.gone = True
        self.shell.ended = True
        if self._outbound is not None:
            self._outbound.lose()
        if self._seats is not None:
            taken = self._seats.close()
            if self.terminal and taken and not self.door.stopping:
                self.door.spawn(drop_unused(self.door, taken))
        held, self._held = self._held, None
        if held is not None:
            for watch in held.watches.values():
                watch.close()
            for told in held.on_lost:
                told()
        if self.untap is not None:
            self.untap()
        who = self._who
        if who is not None:
            self.desk.tuis.pop(who.id, None)
        self.door.visitors.exit(self, who)

    # --- wire.serve.RpcParty ---

    def refuses(self, verb: Verb, request: Request) -> BaseException | None:
        return None if self.ready or verb is _INITIALIZE else _FIRST

    def responded(self, response: Response) -> None:
        self.outbound.settle(response)

    def invalid(self, message: Invalid) -> bytes:
        return message.reply()

    def rested(self) -> None:
        self.link.close()

    def failure(self, verb: Verb | None, id: Any, problem: BaseException) -> bytes:
        """The error response for whatever went wrong."""
        native = verb is not None and verb.plain
        if isinstance(problem, Refusal):
            data = UNSET if problem.data is None else problem.data
            return error(id, problem.code, problem.message, data)
        if isinstance(problem, BadParams):
            text = f"Invalid params: {problem}"
            return error(id, INVALID_PARAMS, spoken_text(text) if self.camel else text)
        if isinstance(problem, Fault):
            data = UNSET
            if native:
                data = {"code": problem.code, "message": problem.message, "hint": problem.hint}
            text = problem.message if native else message_of(problem)
            if self.camel and not native:
                text = spoken_text(text)
            return error(id, code_of(problem), text, data)
        if isinstance(problem, UnknownMethod):
            return error(id, METHOD_NOT_FOUND, f"Unknown method: {str(problem)[:200]}")
        if isinstance(problem, Crowded):
            text = f"{problem} requests of this connection are worked on already"
            return error(id, INTERNAL_ERROR, text)
        return error(id, INTERNAL_ERROR, f"Internal error: {type(problem).__name__}")

    def trouble(self, verb: Verb | None, problem: BaseException) -> None:
        import traceback

        trace = "".join(traceback.format_exception(problem)[-6:])
        log.error("request failed", problem=str(problem), trace=trace)

    async def opened(self, session_id: str) -> None:
        """Wait for a `session/new` of this id that came before on this connection."""
        opening = self._held.opening.get(session_id) if self._held is not None else None
        if opening is not None:
            await asyncio.wait({opening})

    def counter(self) -> int:
        """A number that this connection did not use yet."""
        self._counted += 1
        return self._counted

    # --- a client that reads slowly ---

    def is_paused(self) -> bool:
        if self._pause is None:
            if not self.link.paused:
                return False
            self._pause = Pause(self.link, self._resume)
        return self._pause()

    def _resume(self) -> None:
        if self._seats is not None:
            self._seats.resume()
        if self._held is not None:
            for watch in tuple(self._held.watches.values()):
                watch.resume()
