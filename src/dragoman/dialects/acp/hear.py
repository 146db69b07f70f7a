"""One connection: lines in, engine calls out, answers back.

Requests that need nothing to wait for are answered at once; the others run as tasks. Every request
gets exactly one answer, also at the end of input and when its session is taken away.
"""

import asyncio
from collections.abc import Mapping
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault, TooMany, UnknownSession, WrongState
from dragoman.engine.info import SessionInfo
from dragoman.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Reader,
    Request,
    Rules,
    error,
)
from dragoman.wire.lines import READ_ON, UNSEEN, Ends
from dragoman.wire.link import Link
from dragoman.wire.serve import Conversing, is_same
from dragoman.wire.verbs import BadParams, Cancelled, Crowded, Table, UnknownMethod, Verb

from .attach import Attachment
from .faults import CANCELLED, OutOfTurn, TurnFailed, data_of, line_of, text_of
from .hello import MAX_LINE, wants_second
from .options import options
from .quirks import ALL, Manner, codes_of, quirks_of
from .shapes import ClientSide, Initialize
from .speak import Speaker
from .verbs import UNGREETED, VERBS
from .verbs.handshake import meet

if TYPE_CHECKING:
    from .desk import Desk

_RULES = Rules(batches=False, null_params=True, scalar_params=True)
TABLE = Table(VERBS, read=Reader(_RULES).read, expected=(Fault,))
FIRST = Table(VERBS, read=TABLE.read, expected=(Fault,), gated=True)  # until somebody begins
_NOTHING_KNOWN = ClientSide()
_NO_QUIRKS = quirks_of("")
GRACE_SECONDS = 1.5  # for turns that run when the input of a process ends


_NOBODY: Mapping[str, Any] = MappingProxyType({})


class AcpHearer(Conversing):
    """The dialect's side of a connection."""

    __slots__ = (
        "_attached", "_gone", "_grace", "_who", "agent", "client", "codes",
        "desk", "door", "greeted", "heard_more", "holding", "lent", "link", "max_line", "places",
        "prompts", "quirks", "second", "steady",
    )  # fmt: skip
    table = FIRST
    limit_counts_newline = False
    max_pending = READ_ON * MAX_LINE  # an over-long line is answered at its end
    wants_ends = True

    def __init__(self, door: Door, link: Link, desk: "Desk", agent: str = "") -> None:
        super().__init__()
        came = link.peer.came
        self.max_line = min(MAX_LINE, came.longest or MAX_LINE)
        self.door = door
        self.link = link
        self.desk = desk
        self.agent = agent
        self.client = _NOTHING_KNOWN
        self.quirks = _NO_QUIRKS
        self.codes = codes_of(_NO_QUIRKS, desk.settings.error_codes)
        self.greeted = False  # the client said who it is
        self.second = False  # it speaks version 2
        self.heard_more = False  # than `initialize`
        self.lent: Mapping[str, Any] = _NOBODY  # MCP servers of the client, by id; replaced, too
        self.prompts = 0  # of version 2, to tell them apart
        # Where those wait that were not begun, by key; replaced, so that most share one of none.
        self.holding: Mapping[str, Attachment] = _NOBODY
        self.places = False  # the client is told how far it has come in each session
        self.steady = came.connection  # a name that the client keeps when it connects again
        self._who: Who | None = None
        self._attached: dict[str, Attachment] | None = None
        self._gone = False
        self._grace: asyncio.TimerHandle | None = None
        door.visitors.enter(self)

    @property
    def who(self) -> Who:
        if self._who is None:
            self._who = Who("acp", self.link.peer.label, "", f"acp-{uuid4().hex[:12]}")
        return self._who

    @who.setter
    def who(self, given: Who) -> None:
        self._who = given

    @property
    def attached(self) -> Mapping[str, Attachment]:
        """The sessions that are active on this connection."""
        return self._attached or {}

    # --- the transport's side ---

    def met(self, params: bytes) -> None:
        """Somebody else answered this client's `initialize`; take in what it said."""
        try:
            told = msgspec.json.decode(params or b"{}", type=Initialize)
        except msgspec.DecodeError:
            return  # it said nothing that could be understood
        asked = {"protocolVersion": told.protocol_version, "info": told.info}
        meet(self, told, second=self.desk.settings.version_2 and wants_second(asked))

    def speaks(self, second: bool) -> None:
        """The client chose a version of the protocol."""
        self.second = second
        if second:
            from .verbs.second import TABLE2

            self.shell.use(TABLE2)
        else:
            self.shell.use(TABLE)

    def refuses(self, verb: Verb | None, request: Request) -> BaseException | None:
        """Why a request may not pass now: the first one, or one of version 2."""
        if verb is None:
            return None  # it is unknown, whoever asks
        if not self.second:
            if request.method in ("initialize", "_dragoman/connection"):
                return None  # the first chooses what is spoken, the other is of our own programs
            if request.method not in UNGREETED:
                return OutOfTurn("Invalid request: initialize comes first")
            self.shell.use(TABLE)
            return None
        if request.id is None or type(request.id) is float and not request.id.is_integer():
            request.id = None  # it cannot be repeated: no answer of version 2 may have such an id
            return OutOfTurn(
                "Invalid request: the id is null or a fraction", "Give a whole number."
            )
        if verb is not VERBS["initialize"]:
            self.heard_more = True
        elif self.heard_more:
            return OutOfTurn("Invalid request: initialize comes before everything else")
        return None

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        from dragoman.wire.overlong import id_of  # seldom needed

        text = f"Invalid request: the line is longer than {self.max_line} bytes"
        self.link.send(error(id_of(ends), INVALID_REQUEST, text))

    def ended(self) -> None:
        """Nothing more will be asked: answer what is open, then go."""
        self.unheard()
        self.shell.end()
        if self.link.peer.transport == "stdio" and (self.shell.working or self._at_work()):
            # The process ends with its input: what waits for this client's human cannot go on.
            for attachment in tuple(self.attached.values()):
                session = self.door.live(attachment.id)
                if session is not None and session.asks:
                    attachment.cancel("eof")
            self._grace = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._cancel_all)

    def lost(self) -> None:
        self._gone = self.shell.ended = True
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self.unheard()
        if self.link.peer.transport == "stdio":
            self._cancel_all()
        for attachment in tuple(self.attached.values()):
            self.forget(attachment)
        self.door.visitors.exit(self, self._who)

    def _cancel_all(self) -> None:
        self._grace = None
        works = self._at_work()
        for attachment in tuple(self.attached.values()):
            if attachment.running is not None or attachment in works:
                attachment.cancel("eof")

    def _at_work(self) -> list[Attachment]:
        """Sessions whose turns go on after their prompts were answered, as version 2 has it."""
        if not self.second:
            return []
        sessions = ((one, self.door.live(one.id)) for one in self.attached.values())
        return [one for one, session in sessions if session is not None and session.busy]

    async def _turns_end(self) -> None:
        """The input of the process has ended: what it began ends before it does."""
        for attachment in self._at_work():
            await self.door.idle(attachment.id)
            await attachment.all_told()
        self.rested()

    # --- wire.link.Party ---

    def rested(self) -> None:
        if self._gone:
            return
        if self.link.peer.transport == "stdio" and self._at_work():
            self.door.spawn(self._turns_end())
            return
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self.link.close()

    def failure(self, verb: Verb | None, id: Any, problem: BaseException) -> bytes:
        if isinstance(problem, UnknownMethod):
            text = f"Method not found: {problem}"
            return error(id, METHOD_NOT_FOUND, line_of(text[:300]))
        if isinstance(problem, Cancelled):
            return error(id, CANCELLED, "Request cancelled")
        fault = _fault(problem)
        code = self.codes.get(fault.code, INTERNAL_ERROR)
        text = text_of(fault) if code != INTERNAL_ERROR else str(fault)
        return error(id, code, line_of(text), data_of(fault))

    def trouble(self, verb: Verb | None, problem: BaseException) -> None:
        self.door.trouble("acp request failed", problem)

    def cancel_request(self, request_id: object) -> None:
        """Stop what answers a request; it is still answered."""
        for key, attachment in self.holding.items():  # also of sessions that are being left
            if is_same(attachment.held[key].request, request_id):
                attachment.take_back(key)
                return
        for attachment in self.attached.values():
            running = attachment.running
            if running is not None and is_same(running.request, request_id):
                attachment.cancel()
                return
        self.shell.cancel(request_id)

    async def settled(self, attachment: Attachment) -> None:
        """Wait until the prompt that runs in a session has been answered."""
        running = attachment.running
        if running is not None:
            tasks = self.shell.tasks_of(running.request)
            if tasks:
                await asyncio.wait(tasks)

    async def drained(self) -> None:
        """Wait until the client has read enough for more."""
        if self.link.paused:
            resumed = asyncio.Event()
            self.link.on_resume(resumed.set)
            await resumed.wait()

    # --- sessions of this connection ---

    @property
    def manner(self) -> Manner:
        """What this client is told."""
        if self.second:
            return ALL
        can, quirks = self.client, self.quirks
        more = not quirks.closed_updates
        shown = can.notices and more, can.compaction and more
        return Manner(quirks, *shown, can.plans, can.booleans)

    @property
    def shape_key(self) -> object:
        return (self.second, self.manner)

    @property
    def shows_children(self) -> bool:
        """Whether the client knows sub-agents."""
        return self.second or self.client.subagents and not self.quirks.closed_updates

    def new_speaker(self, session_id: str, parent: str = "") -> object:
        if self.second:
            from .speak2 import Speaker2

            return Speaker2(self.door, session_id, parent)
        return Speaker(self.door, session_id, self.manner, parent)

    def options(self, info: SessionInfo) -> list[dict[str, Any]]:
        """A session's options as this client shows them."""
        return options(self.door, info, booleans=self.manner.booleans, second=self.second)

    def active(self, session_id: str) -> Attachment:
        """The session as this connection has it. Raises UnknownSession."""
        attachment = self.attached.get(session_id)
        if attachment is None or attachment.stopping:
            raise UnknownSession(session_id)
        attachment.last_used = monotonic()
        return attachment

    def child(self, session_id: str) -> Attachment | None:
        """The child of that id which this client was told of."""
        for attachment in self.attached.values():
            child = attachment.children.get(session_id)
            if child is not None and child.shown:
                return child
        return None

    def not_a_child(self, session_id: str) -> str:
        """The id, unless a child of this client's sessions has it. Raises WrongState."""
        if self.child(session_id) is not None:
            raise WrongState(
                f"Session {session_id} works for another one",
                "Cancel it with session/cancel, or wait for its end.", session=session_id,
            )  # fmt: skip
        return session_id

    def seen(self, session_id: str) -> Attachment:
        """A session, or a child of one. Raises UnknownSession."""
        return self.child(session_id) or self.active(session_id)

    def attach(self, session_id: str) -> Attachment:
        attachment = Attachment(self, session_id)
        if self._attached is None:
            self._attached = {}
        self._attached[session_id] = attachment
        self.desk.add(attachment)
        return attachment

    def forget(self, attachment: Attachment) -> None:
        """The session is not active on this connection any more; it goes on without it."""
        if self._attached is not None and self._attached.get(attachment.id) is attachment:
            del self._attached[attachment.id]
        attachment.leave()
        self.desk.remove(attachment)


def _fault(problem: BaseException) -> Fault:
    if isinstance(problem, Fault):
        return problem
    if isinstance(problem, BadParams):
        return BadInput(f"Invalid params: {problem}")
    if isinstance(problem, Crowded):
        return TooMany(f"{problem} requests of this connection are worked on already")
    return TurnFailed(f"Internal error: {type(problem).__name__}: {problem}")
