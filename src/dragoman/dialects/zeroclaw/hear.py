"""One connection: lines in, answers out, and the sessions it watches."""

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault
from dragoman.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Batch,
    BatchReply,
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

from .desk import Desk, log
from .faults import AUTH_REQUIRED, Refusal, code_of, message_of
from .seats import Seats
from .spelling import heard, spoken, spoken_text
from .verbs import VERBS
from .verbs.table import Verb

if TYPE_CHECKING:
    from dragoman.engine.hub import Watch

MAX_LINE = 8 * 1024 * 1024
IN_FLIGHT = 4_096  # requests of one connection that may be worked on at once

_decode = msgspec.json.Decoder().decode
_read = Reader(Rules()).read
Send = Callable[[bytes], None]


class Call:
    """One request that is not answered on the spot."""

    __slots__ = ("conn", "done", "id", "native", "send")

    def __init__(self, conn: "ZeroclawHearer", id: Any, send: Send, native: bool) -> None:
        self.conn = conn
        self.id = id
        self.send = send
        self.native = native
        self.done = False

    @property
    def silent(self) -> bool:
        """It is a notification: nobody waits for an answer."""
        return self.id is UNSET

    def reply(self, value: Any) -> None:
        self.answer(value if self.native or self.done else self.conn.spelled(value))

    def answer(self, value: Any) -> None:
        """Reply with names that are spelled as this client spells them."""
        if not self.done and not self.silent:
            self.send(reply(self.id, value))
        self.finish()

    def fail(self, problem: BaseException) -> None:
        if not self.done and not self.silent:
            self.send(self.conn.failure(self.id, problem, self.native))
        self.finish()

    def finish(self) -> None:
        if not self.done:
            self.done = True
            self.conn.answered()


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
        "_armed", "_counted", "_ended", "_held", "_outbound", "_seats", "_tasks", "_who",
        "_working", "camel", "desk", "door", "form", "gone", "link", "named", "ready", "untap",
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
        self.untap: Callable[[], None] | None = None
        self.gone = False
        self.named: Collection[str] = ()
        self._who: Who | None = None
        self._held: Held | None = None
        self._outbound: Outbound | None = None
        self._seats: Seats | None = None
        self._tasks: set[asyncio.Task[None]] | None = None
        self._working = 0
        self._ended = False
        self._armed = False
        self._counted = 0
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
        send = self.link.send
        status: bytes | None = None  # the same until something else is heard
        for message in _read(lines):
            if type(message) is Request:
                if message.method == "status" and self.ready and type(message.id) is int:
                    if status is None:
                        status = self.desk.status_line(self.camel)
                    send(status % message.id)
                    continue
                status = None
                self._request(message, send)
            elif type(message) is Invalid:
                send(message.reply())
            elif type(message) is Response:
                self.outbound.settle(message)
            elif type(message) is Batch:
                self._batch(message)

    def overlong(self, size: int) -> None:
        text = f"Invalid request: a line may have {MAX_LINE} bytes with its newline"
        self.link.send(error(None, INVALID_REQUEST, text))
        self.link.close()

    def ended(self) -> None:
        self._ended = True
        if not self._working:
            self.link.close()

    def lost(self) -> None:
        """The client is gone. What it began goes on."""
        self.gone = True
        if self._outbound is not None:
            self._outbound.lose()
        if self._seats is not None:
            self._seats.close()
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

    # --- requests ---

    def _batch(self, batch: Batch) -> None:
        answers = BatchReply(batch, self.link.send)
        for item in batch.items:
            if type(item) is Request:
                self._request(item, answers.sink(item))
            elif type(item) is Invalid:
                answers.sink(item)(item.reply())
            elif type(item) is Response:
                self.outbound.settle(item)

    def _request(self, message: Request, send: Send) -> None:
        verb = VERBS.get(message.method)
        id = message.id
        if verb is None:
            if id is not UNSET:
                send(error(id, METHOD_NOT_FOUND, f"Unknown method: {message.method[:200]}"))
            return
        if not self.ready and message.method != "initialize":
            if id is not UNSET:
                send(error(id, AUTH_REQUIRED, "First call must be 'initialize'"))
            return
        if verb.awaits:
            self._begin(verb, message, send)
            return
        try:
            params = None if verb.params is None else self._params(verb, message.params)
            value = verb.run(self, params)
        except Exception as problem:
            if id is not UNSET:
                send(self.failure(id, problem, verb.native))
            elif not isinstance(problem, Fault | Refusal | msgspec.ValidationError):
                self._log(message.method, problem)
            return
        if id is not UNSET:
            send(reply(id, value if verb.native else self.spelled(value)))

    def _begin(self, verb: Verb, message: Request, send: Send) -> None:
        if self._working >= IN_FLIGHT:
            if message.id is not UNSET:
                text = f"{IN_FLIGHT} requests of this connection are worked on already"
                send(error(message.id, INTERNAL_ERROR, text))
            return
        self._working += 1
        call = Call(self, message.id, send, verb.native)
        task = asyncio.ensure_future(self._work(verb, message, call))
        if self._tasks is None:
            self._tasks = set()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, verb: Verb, message: Request, call: Call) -> None:
        try:
            params = None if verb.params is None else self._params(verb, message.params)
            session_id = getattr(params, "session_id", None)
            if session_id is not None:
                await self.opened(session_id)
            if verb.direct:
                await verb.run(call, params)
            else:
                call.reply(await verb.run(self, params))
        except Exception as problem:
            if not isinstance(problem, Fault | Refusal | msgspec.ValidationError):
                self._log(message.method, problem)
            call.fail(problem)
        except BaseException:
            call.finish()
            raise

    def _log(self, method: str, problem: BaseException) -> None:
        import traceback

        trace = "".join(traceback.format_exception(problem)[-6:])
        log.error("request failed", method=method, problem=str(problem), trace=trace)

    def answered(self) -> None:
        self._working -= 1
        if self._ended and not self._working:
            self.link.close()

    async def opened(self, session_id: str) -> None:
        """Wait for a `session/new` of this id that came before on this connection."""
        opening = self._held.opening.get(session_id) if self._held is not None else None
        if opening is not None:
            await asyncio.wait({opening})

    def _params(self, verb: Verb, raw: msgspec.Raw) -> Any:
        if not raw:
            raise BadInput("Invalid params: this method needs params.")
        given = _decode(raw)
        if verb.sees_names:
            self.named = given
        if isinstance(given, list):  # by position
            given = dict(zip(verb.names, given, strict=False))
        return msgspec.convert(heard(given, verb.nested), verb.params)

    # --- answers ---

    def spelled(self, value: Any) -> Any:
        return spoken(value) if self.camel else value

    def failure(self, id: Any, problem: BaseException, native: bool = False) -> bytes:
        """The error response for whatever went wrong."""
        if isinstance(problem, Refusal):
            data = UNSET if problem.data is None else problem.data
            return error(id, problem.code, problem.message, data)
        if isinstance(problem, msgspec.ValidationError):
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
        return error(id, INTERNAL_ERROR, f"Internal error: {type(problem).__name__}")

    def counter(self) -> int:
        """A number that this connection did not use yet."""
        self._counted += 1
        return self._counted

    # --- a client that reads slowly ---

    def is_paused(self) -> bool:
        if not self.link.paused:
            return False
        if not self._armed:
            self._armed = True
            self.link.on_resume(self._resume)
        return True

    def _resume(self) -> None:
        self._armed = False
        if self._seats is not None:
            self._seats.resume()
        if self._held is not None:
            for watch in tuple(self._held.watches.values()):
                watch.resume()
