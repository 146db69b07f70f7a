"""One connection: lines in, engine calls out, answers back.

Requests that need nothing to wait for are answered at once; the others run as tasks. Every request
gets exactly one answer, also at the end of input and when its session is taken away.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault, UnknownSession
from dragoman.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
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

from .after import After
from .attach import Attachment
from .faults import CANCELLED, TurnFailed, code_of, data_of, line_of
from .hello import MAX_LINE
from .quirks import codes_of, quirks_of
from .shapes import ClientSide, Initialize
from .speak import Speaker
from .verbs import VERBS
from .verbs.handshake import meet

if TYPE_CHECKING:
    from .desk import Desk

_RULES = Rules(batches=False, null_params=True, scalar_params=True)
_read = Reader(_RULES).read
_EMPTY = b"{}"
_NOTHING_KNOWN = ClientSide()
_NO_QUIRKS = quirks_of("")
_OBJECT = b"{"[0]
GRACE_SECONDS = 1.5  # for turns that run when the input of a process ends


class AcpHearer:
    """The dialect's side of a connection."""

    __slots__ = (
        "_attached", "_ending", "_gone", "_grace", "_heard", "_outbound", "_tasks", "_who",
        "agent", "client", "codes", "desk", "door", "greeted", "link", "max_line", "quirks",
        "steady",
    )  # fmt: skip
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, door: Door, link: Link, desk: "Desk", agent: str = "") -> None:
        self.max_line = MAX_LINE
        self.door = door
        self.link = link
        self.desk = desk
        self.agent = agent
        self.client = _NOTHING_KNOWN
        self.quirks = _NO_QUIRKS
        self.codes = codes_of(_NO_QUIRKS, desk.settings.error_codes)
        self.greeted = False  # the client said who it is
        self.steady = ""  # a name that the client keeps when it connects again
        self._who: Who | None = None
        self._outbound: Outbound | None = None
        self._attached: dict[str, Attachment] | None = None
        self._tasks: dict[asyncio.Task[Any], Any] | None = None  # -> key of what it answers
        self._ending = False
        self._gone = False
        self._heard: Any = None  # id of the request that is being heard
        self._grace: asyncio.TimerHandle | None = None
        door.visitors.enter(self)

    @property
    def who(self) -> Who:
        if self._who is None:
            self._who = Who("acp", self.link.peer.label, "", self.desk.new_id())
        return self._who

    @who.setter
    def who(self, given: Who) -> None:
        self._who = given

    @property
    def outbound(self) -> Outbound:
        """Our own requests to this client."""
        if self._outbound is None:
            self._outbound = Outbound(self.link.send)
            if self._ending or self._gone:
                self._outbound.lose()
        return self._outbound

    @property
    def attached(self) -> Mapping[str, Attachment]:
        """The sessions that are active on this connection."""
        return self._attached or {}

    @property
    def hearing(self) -> Any:
        """The key of the request that is being heard."""
        return _key(self._heard)

    # --- the transport's side ---

    def hear(self, lines: list[bytes]) -> None:
        for message in _read(lines):
            if type(message) is Request:
                self._request(message)
            elif isinstance(message, Response):
                self.outbound.settle(message)
            elif isinstance(message, Invalid):
                self._send(message.reply())

    def met(self, params: bytes) -> None:
        """Somebody else answered this client's `initialize`; take in what it said."""
        try:
            meet(self, msgspec.json.decode(params or _EMPTY, type=Initialize))
        except msgspec.DecodeError:
            return  # it said nothing that could be understood

    def overlong(self, size: int) -> None:
        text = f"Invalid request: the line is longer than {self.max_line} bytes"
        self._send(error(None, INVALID_REQUEST, text))

    def ended(self) -> None:
        """Nothing more will be asked: answer what is open, then go."""
        self._ending = True
        if self._outbound is not None:
            self._outbound.lose()
        if not self._tasks:
            self._finish()
        elif self.link.peer.transport == "stdio":
            # The process ends with its input: what waits for this client's human cannot go on.
            for attachment in tuple(self.attached.values()):
                session = self.door.live(attachment.id)
                if session is not None and session.state.asks:
                    attachment.cancel("eof")
            self._grace = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._cancel_all)

    def lost(self) -> None:
        self._gone = True
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        if self._outbound is not None:
            self._outbound.lose()
        if self.link.peer.transport == "stdio":
            self._cancel_all()
        for attachment in tuple(self.attached.values()):
            self.forget(attachment)
        self.door.visitors.exit(self, self._who)

    def _cancel_all(self) -> None:
        self._grace = None
        for attachment in tuple(self.attached.values()):
            if attachment.running is not None:
                attachment.cancel("eof")

    def _finish(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self.link.close()

    # --- requests ---

    def _request(self, request: Request) -> None:
        verb = VERBS.get(request.method)
        if verb is None:
            if not request.is_notification:
                text = f"Method not found: {request.method}"
                self._send(error(request.id, METHOD_NOT_FOUND, line_of(text[:300])))
            return
        raw = bytes(request.params) or _EMPTY
        if raw[0] != _OBJECT:
            self._refuse(request.id, BadInput("Invalid params: params must be an object"))
            return
        self._heard = request.id
        try:
            params = verb.decode(raw)
            result = verb.run(self, params)
        except msgspec.ValidationError as trouble:
            self._refuse(request.id, BadInput(f"Invalid params: {trouble}"))
            return
        except msgspec.DecodeError as trouble:
            self._refuse(request.id, BadInput(f"Invalid params: {trouble}"))
            return
        except Fault as fault:
            self._refuse(request.id, fault)
            return
        if type(result) is CoroutineType:
            task = asyncio.ensure_future(self._answer(request.id, result))
            if self._tasks is None:
                self._tasks = {}
            self._tasks[task] = _key(request.id)
            task.add_done_callback(self._answered)
        elif request.id is not UNSET:
            self.link.send(reply(request.id, result))

    async def _answer(self, id: Any, work: Coroutine[Any, Any, Any]) -> None:
        try:
            result = await work
        except asyncio.CancelledError:
            if id is not UNSET:
                self._send(error(id, CANCELLED, "Request cancelled"))
            return
        except Fault as fault:
            self._refuse(id, fault)
            return
        except Exception as trouble:  # one broken verb must not leave its client without an answer
            self.door.host.trouble("acp request failed", trouble)
            text = f"{type(trouble).__name__}: {trouble}"
            self._refuse(id, TurnFailed(f"Internal error: {text}"))
            return
        after = None
        if isinstance(result, After):
            result, after = result.result, result.then
        if id is not UNSET:
            self._send(reply(id, result))
        if after is not None:
            after()

    def _answered(self, task: asyncio.Task[Any]) -> None:
        if self._tasks is not None:
            self._tasks.pop(task, None)
        if not task.cancelled() and (trouble := task.exception()) is not None:
            self.door.host.trouble("acp answer failed", trouble)
        if self._ending and not self._tasks and not self._gone:
            self._finish()

    def _refuse(self, id: Any, fault: Fault) -> None:
        if id is UNSET:
            return  # a notification never gets an answer
        code = code_of(fault, self.codes)
        text = fault.message if code != INTERNAL_ERROR else str(fault)
        self._send(error(id, code, line_of(text), data_of(fault)))

    def cancel_request(self, request_id: Any) -> None:
        """Stop what answers a request; it is still answered."""
        key = _key(request_id)
        for task, known in tuple((self._tasks or {}).items()):
            if known == key:
                for attachment in self.attached.values():
                    if attachment.running is not None and attachment.running.key == key:
                        attachment.cancel()
                        return
                # Not at once: a task that has not begun yet would never answer.
                asyncio.get_running_loop().call_soon(task.cancel)
                return

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something beside; its failure is reported."""
        self.door.host.spawn(work)

    def _send(self, message: bytes) -> None:
        self.link.send(message)

    async def settled(self, attachment: Attachment) -> None:
        """Wait until the prompt that runs in a session has been answered."""
        running = attachment.running
        if running is not None:
            tasks = [task for task, key in (self._tasks or {}).items() if key == running.key]
            if tasks:
                await asyncio.wait(tasks)

    async def drained(self) -> None:
        """Wait until the client has read enough for more."""
        if self.link.paused:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

            def go_on() -> None:
                if not waiting.done():
                    waiting.set_result(None)

            self.link.on_resume(go_on)
            await waiting

    # --- sessions of this connection ---

    @property
    def shape_key(self) -> Any:
        return ("acp", self.quirks, self.shows_notices, self.shows_compaction)

    @property
    def shows_notices(self) -> bool:
        return self.client.notices and not self.quirks.closed_updates

    @property
    def shows_compaction(self) -> bool:
        return self.client.compaction and not self.quirks.closed_updates

    def new_speaker(self, session_id: str) -> Speaker:
        return Speaker(
            self.door, session_id, self.quirks,
            notices=self.shows_notices, compaction=self.shows_compaction,
        )  # fmt: skip

    def active(self, session_id: str) -> Attachment:
        """The session as this connection has it. Raises UnknownSession."""
        attachment = self.attached.get(session_id)
        if attachment is None or attachment.stopping:
            raise UnknownSession(session_id)
        attachment.last_used = self.desk.monotonic()
        return attachment

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

    def cwd_of(self, session_id: str) -> str:
        session = self.door.live(session_id)
        return session.state.cwd if session is not None else ""

    def kind_of(self, session_id: str, tool_name: str) -> str:
        session = self.door.live(session_id)
        if session is None or session.gear.toolbox is None:
            return ""
        tool = session.gear.toolbox.find(tool_name)
        return tool.spec.kind if tool is not None else ""


def _key(id: Any) -> Any:
    """Tells 1 from "1" and from 1.0."""
    return (type(id).__name__, id)
