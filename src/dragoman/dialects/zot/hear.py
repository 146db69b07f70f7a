"""One zot connection: lines in, commands run in order, answers out.

Commands that only look at what is in memory are answered while the line is heard. The others go
one after the other through a queue of short jobs; a prompt's job ends when the session has it, so
nothing here waits for a model or a tool.
"""

import asyncio
from collections import deque
from os import urandom
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.wire.codec import is_deep, is_utf8, mend_text
from dragoman.wire.link import Link

from .frames import failure, pong, success
from .shapes import MAX_LINE, Envelope

if TYPE_CHECKING:
    from dragoman.engine.events import Who

    from .desk import Desk
    from .seat import Seat
    from .verbs import Verb

_JOBS = 4_096  # commands that may wait while the engine is put together
_decode = msgspec.json.Decoder(Envelope).decode
_SPELLINGS = (b'"I', b'"T', b'"iD', b'"tY', b'"tyP', b'"typE')


class ZotHearer:
    """Implements `wire.link.Hearer`."""

    __slots__ = (
        "_jobs", "_present", "_task", "_trusted", "_who", "desk", "has_ended", "has_left", "link",
        "seat",
    )  # fmt: skip
    max_line = MAX_LINE
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, desk: "Desk", link: Link) -> None:
        self.desk = desk
        self.link = link
        self.seat: Seat | None = None
        self.has_ended = False  # the client will send nothing more
        self._trusted = not desk.settings.token
        self._jobs: deque[tuple[Verb, str, str, Any]] | None = None
        self._task: asyncio.Task[None] | None = None
        self.has_left = False
        self._who: Who | None = None
        self._present = False  # the engine knows of it
        self._arrive()

    # --- the transport's side ---

    def hear(self, lines: list[bytes]) -> None:
        for line in lines:
            if self.has_left:
                return
            envelope = None
            if line.isascii():
                try:
                    envelope = _decode(line)
                except (msgspec.DecodeError, RecursionError):
                    envelope = None  # looked at once more, to say what is wrong
                else:
                    if envelope.type == "ping" and envelope.id and self._trusted:
                        self.link.send(pong(envelope.id))
                        continue
            self._line(line, envelope)

    def overlong(self, size: int) -> None:
        limit = f"the limit is {MAX_LINE} bytes"
        self.link.send(failure("", "", f"line too long: over {size} bytes came, {limit}"))

    def ended(self) -> None:
        self.has_ended = True
        if self.seat is not None:
            self.seat.input_ended()
        self.maybe_leave()

    def lost(self) -> None:
        self.has_left = True
        self._jobs = None
        if self.seat is not None:
            self.seat.leave()
        if self._present and self.desk.door is not None:
            self.desk.door.visitors.exit(self, self._who)

    # --- one line ---

    def _line(self, line: bytes, envelope: Envelope | None) -> None:
        if envelope is None:
            line = line.strip()
            if not line:
                return
            if not is_utf8(line):
                line = mend_text(line)
            try:
                envelope = _decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as trouble:
                line, found = _second_look(line, trouble)
                if isinstance(found, str):
                    self.link.send(failure("", "", f"malformed json: {found}"))
                    return
                envelope = found
        command = envelope.type or ""
        request_id = envelope.id or ""
        if not command or not request_id:
            if any(spelling in line for spelling in _SPELLINGS):
                line, envelope = _lower_keys(line, envelope)
                command, request_id = envelope.type or "", envelope.id or ""
        if not self._trusted:
            self._greet(command, request_id, line)
        elif command == "ping":
            self.link.send(pong(request_id))
        else:
            self._command(command, request_id, line)

    def _greet(self, command: str, request_id: str, line: bytes) -> None:
        """The first command of a client that must show a token."""
        from .faults import AUTH_REQUIRED, INVALID_TOKEN

        if command == "hello" and _token_fits(line, self.desk.settings.token):
            self._trusted = True
            self._command(command, request_id, line)
            return
        reason = INVALID_TOKEN if command == "hello" else AUTH_REQUIRED
        self.desk.failure = self.desk.failure or "rpc: bad auth token"
        self.link.send(failure(command, request_id, reason))
        self._leave()

    def _command(self, command: str, request_id: str, line: bytes) -> None:
        from .verbs import VERBS

        verb = VERBS.get(command)
        if verb is None:
            self.link.send(failure(command, request_id, "unknown command"))
            return
        try:
            params = _params(verb, line)
        except (msgspec.DecodeError, ValueError, RecursionError) as trouble:
            self.link.send(failure(command, request_id, f"invalid {command}: {trouble}"))
            return
        if self._task is None and not verb.waits and self._is_ready():
            self._answer(verb, command, request_id, params)
        elif self._jobs is not None and len(self._jobs) >= _JOBS:
            self.link.send(failure(command, request_id, "agent is busy: too many commands wait"))
        else:
            if self._jobs is None:
                self._jobs = deque()
            self._jobs.append((verb, command, request_id, params))
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._work())

    def _answer(self, verb: "Verb", command: str, request_id: str, params: Any) -> None:
        try:
            data = verb.run(self, params, request_id)
        except Exception as error:
            self._fail(command, request_id, error)
        else:
            self.link.send(success(command, request_id, data))

    def _fail(self, command: str, request_id: str, error: Exception) -> None:
        from dragoman.engine.faults import Fault

        from .faults import told

        if isinstance(error, Fault):
            text = told(error)
        else:  # a defect of ours: the client still gets an answer
            text = f"internal error: {type(error).__name__}: {error}"
            if self.desk.door is not None:
                self.desk.door.host.trouble("zot command broke", error)
        self.link.send(failure(command, request_id, text))

    # --- commands that wait ---

    async def _work(self) -> None:
        try:
            while self._jobs and not self.has_left:
                verb, command, request_id, params = self._jobs.popleft()
                try:
                    await self._ready()
                    if self.link.closed:
                        break  # nobody is there any more
                    data = verb.run(self, params, request_id)
                    if verb.waits:
                        data = await data
                except Exception as error:
                    self._fail(command, request_id, error)
                    if self.desk.door is None:  # there is no engine and will be none
                        self._leave()
                else:
                    if not verb.works:  # those are answered when they start
                        self.link.send(success(command, request_id, data))
        finally:
            self._task = None
        self.maybe_leave()

    async def _ready(self) -> None:
        from dragoman.engine.faults import Fault

        if self.desk.door is None:
            try:
                await self.desk.ready()
            except Fault as fault:
                self.desk.failure = str(fault)
                raise
            self._arrive()
        if not self._is_ready() and not self.has_left:
            from .verbs import sit

            await sit(self, self.desk.settings.session)

    def _is_ready(self) -> bool:
        """Whether there is an engine, and the session that the settings name is attached."""
        named = self.desk.settings.session
        return self.desk.door is not None and (self.seat is not None or not named)

    @property
    def who(self) -> "Who":
        if self._who is None:
            from dragoman.engine.events import Who

            self._who = Who("zot", self.link.peer.label, "", urandom(16).hex())
        return self._who

    def _arrive(self) -> None:
        if self.desk.door is not None and not self._present and not self.has_left:
            self._present = True
            self.desk.door.visitors.enter(self)

    # --- leaving ---

    def maybe_leave(self) -> None:
        """At the end of input: go when all that was accepted is done and said."""
        if not self.has_ended or self.has_left or self._task is not None or self._jobs:
            return
        if self.seat is None or self.seat.is_quiet():
            self._leave()

    def _leave(self) -> None:
        self.has_left = True
        if self.seat is not None:
            self.seat.leave()
        self.link.close()


def _second_look(line: bytes, trouble: Exception) -> tuple[bytes, Envelope | str]:
    """A line that did not decode: `null`, broken text that can be mended, or malformed."""
    if line == b"null":
        return line, Envelope()
    if isinstance(trouble, RecursionError) or is_deep(line):
        return line, "nested too deeply"
    try:
        mended = mend_text(line)
        if mended != line:
            return mended, _decode(mended)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as again:
        trouble = again
    return line, str(trouble)


def _params(verb: "Verb", line: bytes) -> Any:
    """A command's own fields; half a surrogate pair in them is mended."""
    try:
        return verb.read(line)
    except msgspec.DecodeError:
        mended = mend_text(line)
        if mended == line:
            raise
    return verb.read(mended)


def _lower_keys(line: bytes, envelope: Envelope) -> tuple[bytes, Envelope]:
    """Field names are matched whatever their case; an exact one wins."""
    try:
        fields = msgspec.json.decode(line)
        lowered = {key.lower(): value for key, value in fields.items()}
        lowered.update((key, value) for key, value in fields.items() if key == key.lower())
        changed = msgspec.json.encode(lowered)
        return changed, _decode(changed)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return line, envelope


def _token_fits(line: bytes, token: str) -> bool:
    """Compare in constant time; what is no text is wrong."""
    from hmac import compare_digest

    from .shapes import Hello

    try:
        raw = msgspec.json.decode(line, type=Hello).token
        given = msgspec.json.decode(raw, type=str) if raw else ""
    except msgspec.DecodeError:
        return False
    return compare_digest(given.encode(), token.encode())
