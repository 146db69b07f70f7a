"""One zot connection: lines in, commands run in order, answers out.

Commands that only look at what is in memory are answered while the line is heard. The others go
one after the other; a prompt's turn ends when the session has it, so nothing here waits for a model
or a tool.
"""

from os import urandom
from typing import TYPE_CHECKING

import msgspec

from dragoman.wire.codec import is_deep, is_utf8, mend_text
from dragoman.wire.lines import READ_ON, UNSEEN, Ends
from dragoman.wire.link import Link

from .frames import failure, pong
from .shapes import MAX_LINE, Envelope

if TYPE_CHECKING:
    from dragoman.engine.events import Who
    from dragoman.wire.serve import Shell
    from dragoman.wire.verbs import Verb

    from .desk import Desk
    from .seat import ZotSeat

_decode = msgspec.json.Decoder(Envelope).decode
_SPELLINGS = (b'"I', b'"T', b'"iD', b'"tY', b'"tyP', b'"typE')


class ZotHearer:
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
                    # The whole way takes 4 times as long (0073), and loads the table first.
                    if (
                        envelope.type == "ping"
                        and envelope.id
                        and self._trusted
                        and not self._is_working()
                    ):
                        self.link.send(pong(envelope.id))
                        continue
            self._line(line, envelope)

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        from dragoman.wire.overlong import beginning_of, id_of  # seldom needed

        try:
            command = _decode(beginning_of(ends)).type or ""
        except (msgspec.DecodeError, UnicodeDecodeError):
            command = ""
        id = id_of(ends)
        reason = f"line too long: {size} bytes came, the limit is {MAX_LINE} bytes"
        self._refuse(command, id if isinstance(id, str) else "", reason)

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
                    self._refuse("", "", f"malformed json: {found}")
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
            from .faults import UNKNOWN_COMMAND

            self._refuse(command, request_id, UNKNOWN_COMMAND)
            return
        if verb.read is not None and self._is_working():
            try:
                verb.read(line)
            except (ValueError, RecursionError) as problem:
                from dragoman.wire.verbs import bad_params

                from .faults import explained

                self._refuse(command, request_id, explained(command, bad_params(problem)))
                return
        self.shell.take(verb, (command, request_id), line, self.link.send)

    def _is_working(self) -> bool:
        """Whether a command that came before is not answered yet."""
        return self._shell is not None and self._shell.working > 0

    def _refuse(self, command: str, request_id: str, reason: str) -> None:
        """Say what is wrong with a line, behind the answers to those before it."""
        if not self._is_working():
            self.link.send(failure(command, request_id, reason))
            return
        from .verbs import REFUSE

        self.shell.take(REFUSE, (command, request_id), reason.encode(), self.link.send)

    @property
    def shell(self) -> "Shell":
        if self._shell is None:
            from dragoman.wire.serve import Shell

            from .verbs import TABLE

            self._shell = Shell(TABLE, self)
            self._shell.ended = self.has_ended
        return self._shell

    # --- wire.serve.Party ---

    def failure(self, verb: "Verb | None", id: tuple[str, str], problem: BaseException) -> bytes:
        from .faults import explained

        return failure(*id, explained(id[0], problem))

    def trouble(self, verb: "Verb | None", problem: BaseException) -> None:
        if self.desk.door is not None:
            self.desk.door.trouble("zot command broke", problem)

    def rested(self) -> None:
        self.maybe_leave()

    def is_ready(self) -> bool:
        """Whether there is an engine, and the session that the settings name is attached."""
        named = self.desk.settings.session
        return self.desk.door is not None and (self.seat is not None or not named)

    async def ready(self) -> None:
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


def _second_look(line: bytes, trouble: Exception) -> tuple[bytes, Envelope | str]:
    """A line that did not decode: `null`, broken text that can be mended, or malformed."""
    if line == b"null":
        return line, Envelope()
    if isinstance(trouble, RecursionError) or is_deep(line):
        from .depth import DEEPEST, flattened

        flat = flattened(line)
        if flat is None:
            return line, f"nested deeper than {DEEPEST} levels, or not closed"
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
