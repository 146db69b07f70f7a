"""One connection: lines in, answers out."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from msgspec import Raw

from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.wire.codec import ascii_encode, is_utf8, mend_text
from dragoman.wire.serve import Shell
from dragoman.wire.verbs import BadParams, Cancelled, Crowded, Table, UnknownMethod, Verb

from .faults import Wrong, error_of
from .shapes import Request
from .speak import EMPTY_ID
from .verbs import VERBS, is_plain

if TYPE_CHECKING:
    from dragoman.engine.door import Door
    from dragoman.wire.link import Link

    from .desk import Desk
    from .seat import Seat
    from .watching import ConfigWatch

MAX_LINE = 262_144  # characters, as JavaScript counts them
MAX_BUFFER = 1_048_576  # bytes without a newline
_OTHER_TYPES = frozenset(("response", "event", "stream"))

_decode = msgspec.json.Decoder(Request).decode
_REGISTER = VERBS["app.register"]


def _answer(conn: "OpenclawosHearer", verb: Verb, id: bytes, value: Any) -> bytes:
    return conn.desk.voice.success(conn.desk.now(), id, value)


TABLE = Table(VERBS, answer=_answer, expected=(Fault,), prepares=True, pool=64, waiting=65_536)


class OpenclawosHearer:
    """Implements `wire.link.Hearer`."""

    # One byte less than the buffer: `Lines` grants one for a CR.
    max_line = MAX_BUFFER - 1
    limit_counts_newline = False
    max_pending = MAX_BUFFER

    __slots__ = (
        "_who", "desk", "door", "link", "seat", "shell", "watches",
    )  # fmt: skip

    def __init__(self, door: "Door", link: "Link", desk: "Desk") -> None:
        self.door = door
        self.link = link
        self.desk = desk
        self.seat: Seat | None = None
        self.watches: list[ConfigWatch] = []
        self._who: Who | None = None
        self.shell = Shell(TABLE, self)

    @property
    def who(self) -> Who:
        if self._who is None:
            name = f"kernel-{uuid4().hex[:12]}"
            self._who = Who("openclawos", self.link.peer.label, "", name)
        return self._who

    @who.setter
    def who(self, given: Who) -> None:
        self._who = given

    # --- what the transport calls ---

    def hear(self, lines: list[bytes]) -> None:
        link, decode = self.link, _decode
        send = link.send
        at_hand: str | None = None  # the method whose quick answers are made
        quick: Callable[[Request], bytes | None] | None = None
        for line in lines:
            try:
                if len(line) > MAX_LINE and _too_long(line):
                    self._refuse(EMPTY_ID, "INVALID_REQUEST", "Message too large")
                    continue
                request = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                at_hand = None
                self._odd(line)
                continue
            if request.method != at_hand:
                at_hand, verb = request.method, VERBS.get(request.method)
                quick = None if verb is None or verb.quick is None else verb.quick(self)
            if quick is not None:
                said = quick(request)
                if said is not None:
                    send(said)
                    continue
            at_hand = None
            self._request(line, request, VERBS.get(request.method))
            if link.closed:
                return

    def overlong(self, size: int) -> None:
        if size <= MAX_BUFFER:
            self._refuse(EMPTY_ID, "INVALID_REQUEST", "Message too large")
            return
        text = "Message too large - buffer limit exceeded"
        self._refuse(EMPTY_ID, "INVALID_REQUEST", text)
        self.link.close()

    def ended(self) -> None:
        self.shell.end()

    def lost(self) -> None:
        self.shell.lose(cancel=True)
        self.stop_watching()
        if self.seat is not None:
            self.desk.lost(self.seat)
        self.desk.conns.discard(self)
        self.door.visitors.exit(self, self._who)

    # --- one request ---

    def _request(self, line: bytes, request: Request, verb: Verb | None) -> None:
        request_id = bytes(request.id)
        if request.type != "request" or not request.method or not is_plain(request_id):
            self._odd(line)
            return
        send, shell = self.link.send, self.shell
        if verb is not _REGISTER:
            problem = self._unknown_app(request.token)
            if problem is not None:
                shell.fail(verb, request_id, problem, send)
                return
        if verb is None:
            shell.fail(verb, request_id, UnknownMethod(request.method), send)
        else:
            params = bytes(request.params)
            shell.take(verb, request_id, b"" if params == b"null" else params, send)

    def _unknown_app(self, token: str | None) -> Wrong | None:
        """Why this request may not pass: who sends it is not known."""
        seat = self.seat
        if seat is None and token and self.desk.resume(self, token):
            return None
        if seat is None:
            return Wrong("APP_NOT_REGISTERED", "Must call app.register first")
        if token == seat.token or token is None and not self.desk.settings.require_token:
            return None
        return Wrong("UNAUTHORIZED", "Invalid or missing authentication token")

    def _odd(self, line: bytes) -> None:
        """A line that is no plain request: mend it, pass it over, or say what is wrong."""
        text = line.strip()
        if not text:
            return
        try:
            value = msgspec.json.decode(mend_text(text))
        except (msgspec.DecodeError, RecursionError, ValueError) as trouble:
            self._refuse(EMPTY_ID, "INVALID_REQUEST", f"Malformed JSON: {trouble}")
            return
        if not isinstance(value, dict):
            self._refuse(EMPTY_ID, "INVALID_REQUEST", "A message must be a JSON object")
            return
        kind, given = value.get("type"), value.get("id")
        if kind in _OTHER_TYPES if isinstance(kind, str) else False:
            return
        usable = isinstance(given, str | int | float) and not isinstance(given, bool)
        request_id = ascii_encode(given) if usable else EMPTY_ID
        token = value.get("token")
        if kind != "request":
            self._refuse(request_id, "INVALID_REQUEST", 'type must be "request"')
        elif not usable:
            self._refuse(request_id, "INVALID_REQUEST", "id must be a string")
        elif not isinstance(value.get("method"), str) or not value["method"]:
            self._refuse(request_id, "INVALID_REQUEST", "method must be a string")
        elif token is not None and not isinstance(token, str):
            self._refuse(request_id, "INVALID_REQUEST", "token must be a string")
        else:
            params = Raw(ascii_encode(value.get("params")))
            again = Request("request", Raw(request_id), value["method"], params, token)
            self._request(line, again, VERBS.get(again.method))

    def stop_watching(self) -> None:
        for watch in self.watches:
            watch.close()
        self.watches.clear()

    # --- wire.serve.Party ---

    def is_ready(self) -> bool:
        return True

    async def ready(self) -> None:
        if self.seat is None:  # it left while this waited its turn
            raise Wrong("APP_NOT_REGISTERED", "Must call app.register first")

    def rested(self) -> None:
        """The app says no more and has all its answers: close our side."""
        self.link.close()

    def failure(self, verb: Verb | None, id: bytes, problem: BaseException) -> bytes:
        desk = self.desk
        return desk.voice.failure(desk.now(), id, error_of(_fault(problem)))

    def trouble(self, verb: Verb | None, problem: BaseException) -> None:
        self.door.trouble("openclawos request broke", problem)

    def _refuse(self, request_id: bytes, code: str, message: str) -> None:
        self.link.send(self.failure(None, request_id, Wrong(code, message)))


def _fault(problem: BaseException) -> Fault:
    match problem:
        case Fault():
            return problem
        case BadParams():
            return Wrong("INVALID_PARAMS", f"Invalid params: {problem}")
        case UnknownMethod():
            return Wrong("METHOD_NOT_FOUND", f"Unknown method: {problem}")
        case Crowded():
            return Wrong("CONFLICT", "Too many requests wait on this connection")
        case Cancelled():
            return Wrong("CONNECTION_CLOSED", "The connection was closed")
    return Wrong("INTERNAL_ERROR", f"{type(problem).__name__}: {problem}")


def _too_long(line: bytes) -> bool:
    """Whether a line has more characters than are allowed, as JavaScript counts them."""
    text = line.strip()
    if len(text) <= MAX_LINE:
        return False
    if not is_utf8(text):
        return True
    return len(text.decode().encode("utf-16-le")) // 2 > MAX_LINE
