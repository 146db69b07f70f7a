"""One connection: commands in, responses and events out."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.engine.host import OpenSpec
from dragoman.wire.codec import is_deep, mend_text, safe_encode
from dragoman.wire.link import Link, Party
from dragoman.wire.serve import Shell
from dragoman.wire.verbs import BadParams, Cancelled, Crowded, Table, UnknownMethod, Verb

from .place import Place
from .verbs import VERBS

if TYPE_CHECKING:
    from .desk import Desk

MAX_LINE = 64 * 1024 * 1024  # pictures come inline


class Id:
    """What a response repeats: the command, and the id as it was given, when it was."""

    __slots__ = ("command", "fields")

    def __init__(self, command: str | None, message: dict[str, Any]) -> None:
        self.command = command
        self.fields = {"id": message["id"]} if "id" in message else {}


def response(id: Id, success: bool, **fields: Any) -> bytes:
    named = {} if id.command is None else {"command": id.command}
    return safe_encode({**id.fields, "type": "response", **named, "success": success, **fields})


def _answer(hearer: "PiHearer", verb: Verb, id: Id, value: Any) -> bytes:
    return response(id, True) if value is None else response(id, True, data=value)


TABLE = Table(VERBS, answer=_answer, expected=(Fault,))


class PiHearer(Party):
    """Implements `wire.link.Hearer` and `wire.link.Party`."""

    max_line = MAX_LINE
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, desk: "Desk", link: Link) -> None:
        self.desk = desk
        self.link = link
        self.place: Place | None = None
        self.modes = {"steeringMode": "one-at-a-time", "followUpMode": "one-at-a-time"}
        self._who: Who | None = None
        self.shell = Shell(TABLE, self)
        desk.door.visitors.enter(self)

    @property
    def who(self) -> Who:
        if self._who is None:
            self._who = self.desk.who(self.link)
        return self._who

    # --- wire.link.Hearer ---

    def hear(self, lines: list[bytes]) -> None:
        for line in lines:
            try:
                self._line(line)
            except Exception as problem:  # a defect of ours: the others are heard all the same
                self.shell.fail(None, Id("parse", {}), problem, self.link.send)

    def _line(self, line: bytes) -> None:
        send = self.link.send
        try:
            if is_deep(line):
                raise msgspec.DecodeError("nested too deeply")
            message = msgspec.json.decode(mend_text(line))
        except (msgspec.DecodeError, RecursionError) as trouble:
            send(response(Id("parse", {}), False, error=f"Failed to parse command: {trouble}"))
            return
        if not isinstance(message, dict):
            send(response(Id(None, {}), False, error="A command must be a JSON object"))
            return
        command = message.get("type")
        if not isinstance(command, str):
            text = "A command needs a type" if command is None else "type must be a string"
            send(response(Id(None, message), False, error=text))
            return
        if command == "extension_ui_response":  # never acknowledged
            self.shell.take(VERBS[command], msgspec.UNSET, msgspec.json.encode(message), send)
            return
        verb, id = VERBS.get(command), Id(command, message)
        if verb is None:
            self.shell.fail(None, id, UnknownMethod(command), send)
        else:
            self.shell.take(verb, id, msgspec.json.encode(message), send)

    def overlong(self, size: int) -> None:
        text = f"Failed to parse command: over {size} bytes came, the limit is {MAX_LINE}"
        self.link.send(response(Id("parse", {}), False, error=text))

    def ended(self) -> None:
        self.shell.end()

    def lost(self) -> None:
        self.shell.lose()
        self._leave()
        self.desk.door.visitors.exit(self, self._who)

    def _leave(self) -> None:
        if self.place is not None:
            self.place.leave()

    # --- wire.link.Party ---

    def rested(self) -> None:
        """At the end of input: on stdio the turn is over as well, elsewhere it goes on."""
        place = self.place
        if place is not None and place.busy and self.link.peer.transport == "stdio":
            place.rested = self.link.close
            try:
                self.desk.door.cancel(place.id)
            except Fault:
                self.link.close()
        else:
            self.link.close()

    def failure(self, verb: Verb | None, id: Id, problem: BaseException) -> bytes:
        return response(id, False, error=_text(problem))

    def trouble(self, verb: Verb | None, problem: BaseException) -> None:
        self.desk.door.trouble("pi command broke", problem)

    # --- the session it is at ---

    async def here(self) -> Place:
        """The current session, opened when there is none yet."""
        if self.place is None:
            wanted = self.desk.settings.session
            if wanted:
                return await self.move(self.desk.id_of(wanted))
            return await self.anew()
        return self.place

    async def anew(self) -> Place:
        given = self.desk.settings
        spec = OpenSpec(
            agent=given.agent, cwd=given.cwd, model=given.model, reasoning=given.thinking
        )
        return await self.move((await self.desk.door.open(spec, self.who)).id)

    async def move(self, session_id: str) -> Place:
        """Sit down at a session, and give up the one before."""
        older = self.desk.settings.older
        place = await Place.take(self.desk.door, self.link, self.who, session_id, older)
        place.follow_all = self.modes["followUpMode"] == "all"
        before, self.place = self.place, place
        if before is not None:
            before.leave()
        if self.link.closed:
            place.leave()
        return place


def _text(problem: BaseException) -> str:
    if isinstance(problem, Fault):
        return str(problem)
    if isinstance(problem, UnknownMethod):
        return f"Unknown command: {problem}"
    if isinstance(problem, BadParams):
        return f"Invalid command: {problem}"
    if isinstance(problem, Crowded):
        return f"{problem} commands of this connection wait already"
    if isinstance(problem, Cancelled):
        return "The host stopped"
    return f"Internal error: {type(problem).__name__}: {problem}"
