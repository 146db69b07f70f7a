"""One connection: lines in, answers out."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from msgspec import Raw

from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.wire.codec import ascii_encode, is_utf8, mend_text

from .faults import Wrong, error_of
from .shapes import Heartbeat, Request
from .speak import EMPTY_ID
from .verbs import VERBS, Verb

if TYPE_CHECKING:
    from dragoman.engine.door import Door
    from dragoman.wire.link import Link

    from .desk import Desk
    from .seat import Seat
    from .watching import ConfigWatch

MAX_LINE = 262_144  # characters, as JavaScript counts them
MAX_BUFFER = 1_048_576  # bytes without a newline
_AT_ONCE = 64  # requests of one connection that wait for something
_WAITING = 65_536
_NO_PARAMS = frozenset((b"", b"null"))
_BARE = frozenset((b"", b"null", b"{}"))
_OTHER_TYPES = frozenset(("response", "event", "stream"))

_decode = msgspec.json.Decoder(Request).decode
_read_status = msgspec.json.Decoder(Heartbeat).decode


class OpenclawosHearer:
    """Implements `wire.link.Hearer`."""

    # One byte less than the buffer: `Lines` grants one for a CR.
    max_line = MAX_BUFFER - 1
    limit_counts_newline = False
    max_pending = MAX_BUFFER

    __slots__ = (
        "_ended", "_jobs", "_tasks", "_who", "desk", "door", "link", "seat", "watches",
    )  # fmt: skip

    def __init__(self, door: "Door", link: "Link", desk: "Desk") -> None:
        self.door = door
        self.link = link
        self.desk = desk
        self.seat: Seat | None = None
        self.watches: list[ConfigWatch] = []
        self._who: Who | None = None
        self._jobs: deque[tuple[bytes, Verb, Any]] | None = None
        self._tasks: set[asyncio.Task[None]] | None = None
        self._ended = False

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
        desk = self.desk
        now, number, strict = desk.now(), desk.voice.number, desk.settings.require_token
        link, seat = self.link, self.seat
        beat = b""
        for line in lines:
            if len(line) > MAX_LINE and _too_long(line):
                self._refuse(EMPTY_ID, "INVALID_REQUEST", "Message too large")
                continue
            try:
                request = _decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._odd(line)
                seat = self.seat
                continue
            # Heartbeats are by far the most frequent: they take the shortest way.
            if request.method == "app.heartbeat" and seat is not None:
                token, request_id = request.token, bytes(request.id)
                if (
                    (token == seat.token if token is not None else not strict)
                    and request.type == "request"
                    and request_id[:1] in _FIRST
                    and request_id.isascii()
                    and (bytes(request.params) in _BARE or _has_status(seat, request.params))
                ):
                    seat.beat_at = now
                    if not beat:
                        beat = desk.voice.beats(now)
                    link.send(beat % (number(), request_id))
                    continue
            self._request(line, request)
            if link.closed:
                return
            seat = self.seat

    def overlong(self, size: int) -> None:
        if size <= MAX_BUFFER:
            self._refuse(EMPTY_ID, "INVALID_REQUEST", "Message too large")
            return
        text = "Message too large - buffer limit exceeded"
        self._refuse(EMPTY_ID, "INVALID_REQUEST", text)
        self.link.close()

    def ended(self) -> None:
        self._ended = True
        self._maybe_close()

    def lost(self) -> None:
        self._ended = True
        self._jobs = None
        for task in tuple(self._tasks or ()):
            task.cancel()
        self.stop_watching()
        if self.seat is not None:
            self.desk.lost(self.seat)
        self.desk.conns.discard(self)
        self.door.visitors.exit(self, self._who)

    # --- one request ---

    def _request(self, line: bytes, request: Request) -> None:
        request_id = bytes(request.id)
        if request.type != "request" or not request.method or not _is_plain(request_id):
            self._odd(line)
            return
        method, token = request.method, request.token
        if method != "app.register":
            problem = self._unknown_app(token)
            if problem is not None:
                self._refuse(request_id, *problem)
                return
        verb = VERBS.get(method)
        if verb is None:
            self._refuse(request_id, "METHOD_NOT_FOUND", f"Unknown method: {method}")
            return
        given = bytes(request.params)
        try:
            params = verb.read(b"{}" if given in _NO_PARAMS else given)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as trouble:
            self._refuse(request_id, "INVALID_PARAMS", f"Invalid params: {trouble}")
            return
        if verb.waits:
            self._later(request_id, verb, params)
            return
        try:
            result = verb.run(self, params, request_id)
        except Fault as fault:
            self._fail(request_id, error_of(fault))
        except Exception as error:  # a defect of ours: the app still gets an answer
            self._broken(request_id, error)
        else:
            self._answer(request_id, result)

    def _unknown_app(self, token: str | None) -> tuple[str, str] | None:
        """Why this request may not pass: who sends it is not known."""
        seat = self.seat
        if seat is None and token and self.desk.resume(self, token):
            return None
        if seat is None:
            return "APP_NOT_REGISTERED", "Must call app.register first"
        if token == seat.token or token is None and not self.desk.settings.require_token:
            return None
        return "UNAUTHORIZED", "Invalid or missing authentication token"

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
            self._request(line, again)

    # --- requests that wait ---

    def _later(self, request_id: bytes, verb: Verb, params: Any) -> None:
        if self._jobs is None:
            self._jobs = deque()
        if self._tasks is None or len(self._tasks) < _AT_ONCE:
            self._start(request_id, verb, params)
        elif len(self._jobs) < _WAITING:
            self._jobs.append((request_id, verb, params))
        else:
            self._refuse(request_id, "CONFLICT", "Too many requests wait on this connection")

    def _start(self, request_id: bytes, verb: Verb, params: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._run(request_id, verb, params))
        if self._tasks is None:
            self._tasks = set()
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _run(self, request_id: bytes, verb: Verb, params: Any) -> None:
        try:
            if self.seat is None:  # it left while this waited its turn
                raise Wrong("APP_NOT_REGISTERED", "Must call app.register first")
            result = await verb.run(self, params, request_id)
        except Fault as fault:
            self._fail(request_id, error_of(fault))
        except Exception as error:  # a defect of ours: the app still gets an answer
            self._broken(request_id, error)
        else:
            self._answer(request_id, result)

    def _done(self, task: "asyncio.Task[None]") -> None:
        if self._tasks is not None:
            self._tasks.discard(task)
        if self._jobs:
            self._start(*self._jobs.popleft())
        elif self._ended:
            self._maybe_close()

    def _maybe_close(self) -> None:
        """The app says no more: close our side once it has all its answers."""
        if not self._tasks and not self._jobs:
            self.link.close()

    def stop_watching(self) -> None:
        for watch in self.watches:
            watch.close()
        self.watches.clear()

    # --- answers ---

    def _answer(self, request_id: bytes, result: Any) -> None:
        desk = self.desk
        self.link.send(desk.voice.success(desk.now(), request_id, result))

    def _fail(self, request_id: bytes, error: dict[str, Any]) -> None:
        desk = self.desk
        self.link.send(desk.voice.failure(desk.now(), request_id, error))

    def _refuse(self, request_id: bytes, code: str, message: str) -> None:
        self._fail(request_id, {"code": code, "message": message})

    def _broken(self, request_id: bytes, error: Exception) -> None:
        self.door.host.trouble("openclawos request broke", error)
        text = f"{type(error).__name__}: {error}"
        self._refuse(request_id, "INTERNAL_ERROR", text)


def _has_status(seat: "Seat", params: Raw) -> bool:
    """Take the status of a heartbeat; False when it is none and must be refused."""
    try:
        seat.status = _read_status(params).status
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _is_plain(request_id: bytes) -> bool:
    """Whether an id can be repeated as it came: a text or a number, in ASCII."""
    return request_id[:1] in _FIRST and request_id.isascii()


_FIRST = frozenset(bytes((byte,)) for byte in b'"-0123456789')


def _too_long(line: bytes) -> bool:
    """Whether a line has more characters than are allowed, as JavaScript counts them."""
    text = line.strip()
    if len(text) <= MAX_LINE:
        return False
    if not is_utf8(text):
        return True
    return len(text.decode().encode("utf-16-le")) // 2 > MAX_LINE
