"""One connection: lines in, answers out, strictly in the order of the requests.

`health`, and `listSessions` when the list is known, are answered on the spot when nothing waits.
"""

from typing import TYPE_CHECKING, Any

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Invalid,
    Reader,
    Rules,
    error,
)
from dragoman.wire.lines import READ_ON, UNSEEN, Ends
from dragoman.wire.link import Link
from dragoman.wire.overlong import id_of
from dragoman.wire.serve import Call, Served
from dragoman.wire.verbs import BadParams, Crowded, Table, UnknownMethod, Verb

from . import shapes
from .desk import MAX_LINE, Desk
from .faults import Wrong, details, told
from .verbs import VERBS

if TYPE_CHECKING:
    from .subscription import Subscription

RULES = Rules(
    null_params=True,
    scalar_params=True,
    always_answered=True,
    folded_keys=True,
    blank_lines=True,
    serves_only=True,
)
QUEUE = 10_000  # requests of one connection that may wait behind a slow one
TABLE = Table(VERBS, read=Reader(RULES).read, expected=(Fault, Wrong), strict=True, waiting=QUEUE)


class HumanlayerHearer(Served):
    """The dialect's side of one connection."""

    __slots__ = ("_door", "_subscription", "_who", "desk", "link", "max_line")
    table = TABLE
    limit_counts_newline = True
    max_pending = READ_ON * MAX_LINE  # an over-long line is answered at its end
    wants_ends = True

    def __init__(self, door: Door, link: Link, desk: Desk) -> None:
        super().__init__()
        self.max_line = desk.max_line
        self._door = door
        self.link = link
        self.desk = desk
        self._who: Who | None = None
        self._subscription: Subscription | None = None
        door.visitors.enter(self)

    @property
    def who(self) -> Who:
        """Whose connection this is; most come and go without being asked."""
        if self._who is None:
            self._who = self.desk.who(self.link)
        return self._who

    # --- the transport's side ---

    def hear(self, lines: list[bytes]) -> None:
        shell = self._shell or self.shell
        if self._subscription is None and not shell.ended:
            shell.hear(lines)

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        if self._subscription is None and not self.shell.ended:
            text = f"Invalid request: the line is longer than {self.max_line} bytes"
            said = error(
                id_of(ends), INVALID_REQUEST, text, details("Send less, or raise the limit.")
            )
            self.shell.say(said, self.link.send)

    def ended(self) -> None:
        """Nothing more comes: a subscription ends, answers that are due are still sent."""
        if self._subscription is not None:
            self.link.close()
        self.shell.end()

    def lost(self) -> None:
        self.shell.lose()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        self._door.visitors.exit(self)

    # --- wire.link.Party ---

    def invalid(self, message: Invalid) -> bytes:
        """The protocol's own texts; what exactly is wrong goes into the details."""
        text, what = message.message, ""
        if message.code == PARSE_ERROR:
            what = text.removeprefix("Parse error: ")
            text = "Parse error"
        elif message.reason == "version":
            text = "Invalid request: must be JSON-RPC 2.0"
        return error(message.id, message.code, text, details(what))

    def rested(self) -> None:
        if self.shell.ended:
            self.link.close()

    def failure(self, verb: Verb | None, id: Any, problem: BaseException) -> bytes:
        if isinstance(problem, UnknownMethod):
            return error(id, METHOD_NOT_FOUND, f"Method not found: {problem}")
        if isinstance(problem, Crowded):
            text = f"{problem} requests wait on this connection already"
            return error(id, INTERNAL_ERROR, text, details("Read the answers first."))
        if isinstance(problem, BadParams):
            problem = Wrong(f"invalid request: {problem}")
        return error(id, *told(problem))

    def trouble(self, verb: Verb | None, problem: BaseException) -> None:
        self._door.trouble("humanlayer request failed", problem)

    # --- subscribing ---

    async def subscribe(self, call: "Call[HumanlayerHearer]", params: shapes.Subscribe) -> None:
        from .speak import filter_of
        from .subscription import Subscription

        if not call.alone:
            text = "Invalid request: Subscribe cannot be part of a batch"
            call.say(error(call.id, INVALID_REQUEST, text))
            return
        await self._check_since(params.since)
        await self._door.reached()
        given = (params.event_types or (), params.session_id, params.run_id)
        wanted = await filter_of(self._door, *given)
        if self.link.closed:
            call.finish()
            return
        subscription = Subscription(self.desk, self.link, wanted)
        text = "Subscription established. Waiting for events..."
        ended = self.shell.ended
        call.reply({"subscription_id": subscription.id, "message": text})
        if ended:
            return  # the client has said goodbye already
        self._subscription = subscription
        self.shell.stop()
        subscription.begin(self.who, params.since)
        await self.desk.waiting.look()

    async def _check_since(self, since: int | None) -> None:
        """Refuse a number that was never given: nothing would be heard until it is reached."""
        if since is None:
            return
        from .speak import PER_EVENT

        if since < 0:
            raise Wrong("since must not be negative", "Use the seq of the last event you saw.")
        if since // PER_EVENT > await self._door.newest():
            raise Wrong(
                "since is newer than every event",
                "It comes from another store: subscribe without it, or with 0 for everything.",
            )
