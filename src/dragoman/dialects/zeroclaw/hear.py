"""One connection: lines in, answers out, the sessions it watches and what it is told of them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from dragoman.engine.arrivals import Arrivals
from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.engine.seat import Seat, Seats
from dragoman.engine.view import SessionView
from dragoman.holding import Holder
from dragoman.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Reader,
    Request,
    Rules,
    error,
    reply,
)
from dragoman.wire.lines import READ_ON, UNSEEN, Ends
from dragoman.wire.link import Link
from dragoman.wire.serve import Conversing, Pause
from dragoman.wire.verbs import BadParams, Crowded, Table, UnknownMethod, Verb

from .desk import Desk, log
from .faults import AUTH_REQUIRED, Refusal, code_of, message_of
from .speak import Updates
from .spelling import spoken, spoken_text
from .terminals import drop_unused
from .verbs import VERBS

if TYPE_CHECKING:
    from dragoman.engine.hub import Watch

    from .elicit import Questions


MAX_LINE = 8 * 1024 * 1024
IN_FLIGHT = 4_096  # requests of one connection that may be worked on at once

_NONE: Mapping[str, str] = MappingProxyType({})
_INITIALIZE = VERBS["initialize"]
_FIRST = Refusal(AUTH_REQUIRED, "First call must be 'initialize'")


def _answer(conn: "ZeroclawHearer", verb: Verb, id: object, value: object) -> bytes:
    return reply(id, spoken(value) if conn.camel and not verb.plain else value)


def _table(*, gated: bool) -> Table:
    return Table(
        VERBS,
        read=_READ,
        expected=(Fault, Refusal),
        answer=_answer,
        bare=b"",
        gated=gated,
        at_once=IN_FLIGHT,
    )


_READ = Reader(Rules()).read
TABLE = _table(gated=True)  # until `initialize` succeeded
OPEN = _table(gated=False)


class Held(Holder):
    """What few connections have: watches of our own kind, sessions on their way in."""

    watches: "dict[str, Watch]" = {}  # of `dragoman/watch`, by id
    on_lost: list[Callable[[], None]] = []
    follows_log: bool = False
    untap: Callable[[], None] | None = None
    counted: int = 0  # the numbers that were given to watches


class ZeroclawHearer(Conversing):
    """The dialect's side of one connection.

    Thousands may be open and silent, so most of what a connection can have is made when it does.
    """

    __slots__ = (
        "_held", "_pause", "_questions", "_seats", "_who", "camel", "desk", "door", "env",
        "form", "gone", "link", "order", "ready", "terminal",
    )  # fmt: skip
    table = TABLE
    max_line = MAX_LINE
    limit_counts_newline = True
    max_pending = READ_ON * MAX_LINE  # an over-long line is answered at its end
    wants_ends = True

    def __init__(self, door: Door, link: Link, desk: Desk) -> None:
        super().__init__()
        self.door = door
        self.link = link
        self.desk = desk
        self.ready = False  # `initialize` succeeded
        self.camel = True
        self.form = False  # the client shows questions when it is asked by a request
        self.terminal = ""  # the version that ZeroClaw's own terminal is to hear, if it is that
        self.env: Mapping[str, str] = _NONE  # of the client, when it told
        self.order: Arrivals | None = None  # what must be done before what is asked next
        self.gone = False
        self._who: Who | None = None
        self._held: Held | None = None
        self._seats: Seats | None = None
        self._questions: Questions | None = None
        self._pause: Pause | None = None
        door.visitors.enter(self)

    @property
    def who(self) -> Who:
        if self._who is None:
            self._who = self.desk.who(self.link)
        return self._who

    @who.setter
    def who(self, given: Who) -> None:
        self._who = given

    def in_line(self, session_id: str) -> AbstractAsyncContextManager[None]:
        """Let what this connection asks of the session next wait until this is done."""
        if self.order is None:
            self.order = Arrivals()
        return self.order.turn(session_id)

    @property
    def held(self) -> "Held":
        """What few connections have."""
        if self._held is None:
            self._held = Held()
        return self._held

    # --- the sessions it watches ---

    @property
    def seats(self) -> Seats:
        """Its seats, by session."""
        if self._seats is None:
            self._seats = self.door.seats(self.link)
            if self.gone:  # a request that was on its way when the client left asks for the first
                self._seats.close()
        return self._seats

    async def sit(self, session_id: str, *, joins: bool = False) -> Seat[Updates]:
        """Watch a session; with `joins`, be told what is open in it. Raises UnknownSession."""
        seat: Seat[Updates] = self.seats.at(session_id)
        if seat.watches:
            return seat
        async with seat.in_order():
            if await seat.renew():
                return seat
            terminal, asking = bool(self.terminal), self._asking()
            updates = Updates(self.door, session_id, self.camel, asking, terminal=terminal)
            # One that is asked by requests of its own has a stream that is not shared.
            key = None if self.form else ("zeroclaw", self.camel, terminal)
            shape = await seat.follow(self.who, updates, self.link.send_blob, key=key)
            if joins and not seat.gone:
                self._tell_open(seat.view, shape)
            return seat

    def _asking(self) -> "Questions | None":
        if self.form and self._questions is None:
            from .elicit import Questions

            self._questions = Questions(self)
        return self._questions

    def _tell_open(self, session: SessionView, updates: Updates) -> None:
        """Calls that run and questions that wait, for a client that comes in the middle."""
        send = self.link.send
        for call in session.running():
            send(updates.called(call.id, call.name, call.args or {}))
        for ask in tuple(session.asks.values()):
            for message in updates.asked(ask):
                send(message)
        if session.plan and not self.camel:
            send(updates.planned(session.plan))

    # --- wire.link.Hearer ---

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        from dragoman.wire.overlong import id_of  # seldom needed

        text, id = (
            f"Invalid request: a line may have {MAX_LINE} bytes with its newline",
            id_of(ends),
        )
        self.link.send(error(id, INVALID_REQUEST, text))
        if id is None:  # whoever sent a prompt without an id learns from the end that it is lost
            self.link.close()

    def ended(self) -> None:
        self.shell.end()

    def lost(self) -> None:
        """The client is gone. What it began goes on."""
        self.gone = True
        self.shell.ended = True
        self.unheard()
        if self._seats is not None:
            taken = self._seats.ids()
            self._seats.close()
            if self.terminal and taken and not self.door.stopping:
                self.door.spawn(drop_unused(self.door, taken))
        held, self._held = self._held, None
        if held is not None:
            for watch in held.watches.values():
                watch.close()
            for told in held.on_lost:
                told()
            if held.untap is not None:
                held.untap()
        who = self._who
        if who is not None:
            self.desk.tuis.pop(who.id, None)
        self.door.visitors.exit(self, who)

    # --- wire.link.Party ---

    def refuses(self, verb: Verb | None, request: Request) -> BaseException | None:
        return None if verb is _INITIALIZE or verb is None else _FIRST

    def let_in(self) -> None:
        """`initialize` succeeded: nothing is refused from now on."""
        self.ready = True
        self.shell.use(OPEN)

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
