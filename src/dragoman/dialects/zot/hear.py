"""One zot connection: lines in, commands run in order, answers out.

Commands that only look at what is in memory are answered while the line is heard. The others go
one after the other; a prompt's turn ends when the session has it, so nothing here waits for a model
or a tool.
"""

import re
from os import urandom
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman.wire.codec import is_deep, is_utf8, mend_text
from dragoman.wire.lines import READ_ON, UNSEEN, Ends
from dragoman.wire.link import Link, Party

from .frames import failure, pong
from .shapes import MAX_LINE, Envelope

if TYPE_CHECKING:
    from dragoman.engine.events import Who
    from dragoman.wire.serve import Shell
    from dragoman.wire.verbs import Verb

    from .desk import Desk
    from .seat import ZotSeat

_decode = msgspec.json.Decoder(Envelope).decode
_NOTHING = Envelope()
DEEPEST = 10_000  # as far as zot's own reader goes; nothing that deep is looked at by any command
_TOO_DEEP = f"nested deeper than {DEEPEST} levels, or not closed"
_KEPT = 64  # levels of a line that nests deeper than our reader goes
_TOKENS = rb'(?s)"(?:[^"\\]|\\.)*"|[][{}]'
_CLOSING = {b"]": b"[", b"}": b"{"}
_SHORT = 256  # bytes; plain pings have less
_SPELLINGS = (b'"I', b'"T', b'"iD', b'"tY', b'"tyP', b'"typE')


class ZotCommand(NamedTuple):
    """What is heard: its name, that with its id for the answer, and the whole line."""

    method: str
    id: tuple[str, str]
    params: bytes


class Odd(NamedTuple):
    """A line that is no command: what is wrong with it."""

    text: str


class ZotHearer(Party):
    """Implements `wire.link.Hearer`."""

    __slots__ = (
        "_present", "_shell", "_trusted", "_who", "desk", "has_ended", "has_left", "link", "seat",
    )  # fmt: skip
    max_line = MAX_LINE
    limit_counts_newline = False
    max_pending = READ_ON * MAX_LINE  # an over-long line is answered at its end
    wants_ends = True

    def __init__(self, desk: "Desk", link: Link) -> None:
        self.desk = desk
        self.link = link
        self.seat: ZotSeat | None = None
        self.has_ended = False  # the client will send nothing more
        self._trusted = not desk.settings.token
        self._shell: Shell | None = None  # of the first command: a ping needs none
        self.has_left = False
        self._who: Who | None = None
        self._present = False  # the engine knows of it
        self._arrive()

    # --- the transport's side ---

    def hear(self, lines: list[bytes]) -> None:
        trusted, send = self._trusted, self.link.send
        for line in lines:
            if self.has_left:
                return
            # The shell's way to a plain ping takes twice as long (0073), and loads it first.
            shell = self._shell
            idle = shell is None or not shell.working
            if trusted and idle and len(line) < _SHORT and line.isascii():
                try:
                    asked = _decode(line)
                except (msgspec.DecodeError, RecursionError):
                    asked = _NOTHING  # the shell says what is wrong
                if asked.type == "ping" and asked.id:
                    send(pong(asked.id))
                    continue
            if trusted:
                self.shell.hear([line])
            else:
                self._greet(line)
                trusted = self._trusted

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        from dragoman.wire.overlong import beginning_of, id_of  # seldom needed

        try:
            command = _decode(beginning_of(ends)).type or ""
        except (msgspec.DecodeError, UnicodeDecodeError):
            command = ""
        id = id_of(ends)
        reason = f"line too long: {size} bytes came, the limit is {MAX_LINE} bytes"
        known = (command, id if isinstance(id, str) else "")
        said = failure(*known, reason)
        if self._shell is None:
            self.link.send(said)
        else:
            self._shell.say(said, self.link.send, known)

    def ended(self) -> None:
        self.has_ended = True
        if self.seat is not None:
            self.seat.input_ended()
        if self._shell is not None:
            self._shell.ended = True
        self.maybe_leave()

    def lost(self) -> None:
        self.has_left = True
        if self._shell is not None:
            self._shell.lose()
        if self.seat is not None:
            self.seat.leave()
        if self._present and self.desk.door is not None:
            self.desk.door.visitors.exit(self, self._who)

    def _greet(self, line: bytes) -> None:
        """The first command of a client that must show a token."""
        from .faults import AUTH_REQUIRED, INVALID_TOKEN

        for one in read([line]):
            if isinstance(one, Odd):
                self.link.send(failure("", "", one.text))
                continue
            if one.method == "hello" and _token_fits(one.params, self.desk.settings.token):
                self._trusted = True
                self.shell.hear([line])
                continue
            reason = INVALID_TOKEN if one.method == "hello" else AUTH_REQUIRED
            self.desk.failure = self.desk.failure or "rpc: bad auth token"
            self.link.send(failure(*one.id, reason))
            self._leave()

    @property
    def shell(self) -> "Shell":
        if self._shell is None:
            from dragoman.wire.serve import Shell

            from .verbs import TABLE

            self._shell = Shell(TABLE, self)
            self._shell.ended = self.has_ended
        return self._shell

    # --- wire.link.Party ---

    def failure(
        self, verb: "Verb | None", id: tuple[str, str] | None, problem: BaseException
    ) -> bytes:
        from .faults import explained

        known = id or ("", "")  # of a line that is no command
        return failure(*known, explained(known[0], problem))

    def invalid(self, message: Odd) -> bytes:
        return failure("", "", message.text)

    def trouble(self, verb: "Verb | None", problem: BaseException) -> None:
        if self.desk.door is not None:
            self.desk.door.trouble("zot command broke", problem)

    def rested(self) -> None:
        self.maybe_leave()

    def is_ready(self) -> bool:
        """Whether there is an engine, and the session that the settings name is attached."""
        named = self.desk.settings.session
        return self.desk.door is not None and (self.seat is not None or not named)

    async def prepare(self) -> None:
        from dragoman.engine.faults import Fault

        if self.desk.door is None:
            try:
                await self.desk.ready()
            except Fault as fault:
                self.desk.failure = str(fault)
                self.has_ended = True  # there is no engine and will be none
                self.shell.stop()
                raise
            self._arrive()
        if not self.is_ready() and not self.has_left:
            from .verbs import sit

            await sit(self, self.desk.settings.session)

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
        if not self.has_ended or self.has_left:
            return
        if self._shell is not None and self._shell.working:
            return
        if self.seat is None or self.seat.is_quiet():
            self._leave()

    def _leave(self) -> None:
        self.has_left = True
        if self.seat is not None:
            self.seat.leave()
        self.link.close()


def read(lines: list[bytes]) -> list[ZotCommand | Odd]:
    """What each line is; an empty one is nothing."""
    found: list[ZotCommand | Odd] = []
    for line in lines:
        try:
            envelope = _decode(line) if line.isascii() else None
        except (msgspec.DecodeError, RecursionError):
            envelope = None  # looked at once more, to say what is wrong
        if envelope is None:
            line = line.strip()
            if not line:
                continue
            if not is_utf8(line):
                line = mend_text(line)
            try:
                envelope = _decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as trouble:
                line, looked = _second_look(line, trouble)
                if isinstance(looked, str):
                    found.append(Odd(f"malformed json: {looked}"))
                    continue
                envelope = looked
        if _is_too_deep(line):
            found.append(Odd(f"malformed json: {_TOO_DEEP}"))
            continue
        if not (envelope.type and envelope.id) and any(name in line for name in _SPELLINGS):
            line, envelope = _lower_keys(line, envelope)
        command = envelope.type or ""
        found.append(ZotCommand(command, (command, envelope.id or ""), line))
    return found


def _second_look(line: bytes, trouble: Exception) -> tuple[bytes, Envelope | str]:
    """A line that did not decode: `null`, broken text that can be mended, or malformed."""
    if line == b"null":
        return line, Envelope()
    if isinstance(trouble, RecursionError) or is_deep(line):
        flat = flattened(line)
        if flat is None:
            return line, _TOO_DEEP
        line = flat
    try:
        if isinstance(trouble, RecursionError):
            return line, _decode(line)
        mended = mend_text(line)
        if mended != line:
            return mended, _decode(mended)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as again:
        trouble = again
    return line, str(trouble)


def _is_too_deep(line: bytes) -> bool:
    """Whether what our reader understood nests too deeply: how far it goes is Python's matter."""
    if len(line) <= 2 * DEEPEST or line.count(b"[") + line.count(b"{") <= DEEPEST:
        return False
    return flattened(line) is None


def flattened(line: bytes) -> bytes | None:
    """The line with null for all that nests very deeply; None when it is too deep or unbalanced."""
    open_now: list[bytes] = []
    kept: list[bytes] = []
    start = 0  # of what is not decided on yet
    for token in re.finditer(_TOKENS, line):
        mark = token[0]
        if mark in _CLOSING:
            if not open_now or open_now.pop() != _CLOSING[mark]:
                return None
            if len(open_now) == _KEPT:
                kept.append(b"null")
                start = token.end()
        elif len(mark) == 1:
            open_now.append(mark)
            if len(open_now) > DEEPEST:
                return None
            if len(open_now) == _KEPT + 1:
                kept.append(line[start : token.start()])
    if open_now:
        return None
    kept.append(line[start:])
    return b"".join(kept)


def _lower_keys(line: bytes, envelope: Envelope) -> tuple[bytes, Envelope]:
    """Field names are matched whatever their case; an exact one wins."""
    try:
        changed = msgspec.json.encode(lowered(msgspec.json.decode(line)))
        return changed, _decode(changed)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return line, envelope


def lowered(fields: dict[str, Any]) -> dict[str, Any]:
    """Names in small letters; an exact one wins over one in another case."""
    folded = {key.lower(): value for key, value in fields.items()}
    return folded | {key: value for key, value in fields.items() if key == key.lower()}


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
