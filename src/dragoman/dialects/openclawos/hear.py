"""One connection: lines in, answers out."""

from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import msgspec
from msgspec import Raw

from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.wire.codec import DEPTH, ascii_encode, is_deep, is_utf8, mend_text
from dragoman.wire.serve import Served
from dragoman.wire.verbs import BadParams, Cancelled, Crowded, Table, UnknownMethod, Verb

from .faults import Wrong, error_of
from .shapes import Request
from .speak import EMPTY_ID
from .verbs import VERBS

if TYPE_CHECKING:
    from dragoman.engine.door import Door
    from dragoman.wire.link import Link

    from .desk import Desk
    from .seat import Seat
    from .watching import ConfigWatch

MAX_LINE = 262_144  # characters, as JavaScript counts them
MAX_BUFFER = 1_048_576  # bytes without a newline
_FIRST = frozenset(b'"-0123456789')
_TOO_DEEP = f"Malformed JSON: nesting is deeper than {DEPTH} levels"
_OTHER_TYPES = frozenset(("response", "event", "stream"))

_decode = msgspec.json.Decoder(Request).decode
_REGISTER = VERBS["app.register"]


def _answer(conn: "OpenclawosHearer", verb: Verb, id: bytes, value: object) -> bytes:
    return conn.desk.voice.success(conn.desk.now(), id, value)


class Odd(NamedTuple):
    """A line that is no request, and what is wrong with it."""

    id: bytes
    text: str


def read(lines: list[bytes]) -> list[Request | Odd]:
    """What each line is; what is nothing to us is left out."""
    found: list[Request | Odd] = []
    decode, first, add = _decode, _FIRST, found.append
    for line in lines:
        try:
            one = decode(line) if len(line) <= MAX_LINE else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            one = None
        if one is not None and (id := bytes(one.id))[0] in first and id.isascii():
            add(Odd(id, _TOO_DEEP) if is_deep(line) else one)  # its id can be repeated as it came
        elif (looked := _second_look(line)) is not None:
            add(looked)
    return found


def _second_look(line: bytes) -> Request | Odd | None:
    """A line that is no plain request: mend it, pass it over, or say what is wrong."""
    if len(line) > MAX_LINE and _too_long(line):
        return Odd(EMPTY_ID, "Message too large")
    text = line.strip()
    if not text:
        return None
    if is_deep(text):
        return Odd(EMPTY_ID, _TOO_DEEP)
    try:
        value = msgspec.json.decode(mend_text(text))
    except (msgspec.DecodeError, RecursionError, ValueError) as trouble:
        return Odd(EMPTY_ID, f"Malformed JSON: {trouble}")
    if not isinstance(value, dict):
        return Odd(EMPTY_ID, "A message must be a JSON object")
    kind, given = value.get("type"), value.get("id")
    if isinstance(kind, str) and kind in _OTHER_TYPES:
        return None
    usable = isinstance(given, str | int | float) and not isinstance(given, bool)
    request_id = ascii_encode(given) if usable else EMPTY_ID
    token = value.get("token")
    if kind != "request":
        return Odd(request_id, 'type must be "request"')
    if not usable:
        return Odd(request_id, "id must be a string")
    if not isinstance(value.get("method"), str) or not value["method"]:
        return Odd(request_id, "method must be a string")
    if token is not None and not isinstance(token, str):
        return Odd(request_id, "token must be a string")
    params = Raw(ascii_encode(value.get("params")))
    return Request("request", Raw(request_id), value["method"], params, token)


TABLE = Table(
    VERBS, read=read, request=Request, answer=_answer, expected=(Fault,), gated=True,
    prepares=True, pool=64, waiting=65_536,
)  # fmt: skip


class OpenclawosHearer(Served):
    """Implements `wire.link.Hearer`."""

    # One byte less than the buffer: `Lines` grants one for a CR.
    table = TABLE
    max_line = MAX_BUFFER - 1
    limit_counts_newline = False
    max_pending = MAX_BUFFER

    __slots__ = (
        "_who", "desk", "door", "link", "seat", "watches",
    )  # fmt: skip

    def __init__(self, door: "Door", link: "Link", desk: "Desk") -> None:
        super().__init__()
        self.door = door
        self.link = link
        self.desk = desk
        self.seat: Seat | None = None
        self.watches: tuple[ConfigWatch, ...] = ()
        self._who: Who | None = None

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

    def overlong(self, size: int) -> None:
        over = size > MAX_BUFFER
        text = "Message too large - buffer limit exceeded" if over else "Message too large"
        self.link.send(self.invalid(Odd(EMPTY_ID, text)))
        if over:
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

    def stop_watching(self) -> None:
        for watch in self.watches:
            watch.close()
        self.watches = ()

    # --- wire.link.Party ---

    def refuses(self, verb: Verb | None, request: Request) -> Wrong | None:
        """Why this request may not pass: who sends it is not known."""
        seat, token = self.seat, request.token
        if self.link.closed:
            return Wrong("CONNECTION_CLOSED", "The connection was closed")
        if verb is _REGISTER or (seat is None and token and self.desk.resume(self, token)):
            return None
        if seat is None:
            return Wrong("APP_NOT_REGISTERED", "Must call app.register first")
        if token == seat.token or token is None and not self.desk.settings.require_token:
            return None
        return Wrong("UNAUTHORIZED", "Invalid or missing authentication token")

    def invalid(self, message: Odd) -> bytes:
        return self.failure(None, message.id, Wrong("INVALID_REQUEST", message.text))

    async def prepare(self) -> None:
        if self.seat is None:  # it left while this waited its turn
            raise Wrong("APP_NOT_REGISTERED", "Must call app.register first")

    def rested(self) -> None:
        """The app says no more and has all its answers: close our side."""
        self.link.close()

    def failure(self, verb: Verb | None, id: bytes | None, problem: BaseException) -> bytes:
        desk = self.desk
        return desk.voice.failure(desk.now(), id or EMPTY_ID, error_of(_fault(problem)))

    def trouble(self, verb: Verb | None, problem: BaseException) -> None:
        self.door.trouble("openclawos request broke", problem)


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
