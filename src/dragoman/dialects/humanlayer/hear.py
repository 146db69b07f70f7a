"""One connection: lines in, answers out, strictly in the order of the requests.

Published clients trust the order of answers more than their ids, so a request that has to wait
makes the later ones of its connection wait too. `health`, and `listSessions` when the list is
known, are answered on the spot when nothing waits; everything that may read the store runs in the
connection's one task, which exists only while there is something to do.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Batch,
    BatchReply,
    Invalid,
    Message,
    Reader,
    Request,
    Response,
    Rules,
    error,
    reply,
)
from dragoman.wire.link import Link

from . import shapes
from .desk import Desk
from .faults import Wrong, details, told
from .verbs import SUBSCRIBE, VERBS, check_object

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
_read = Reader(RULES).read
QUEUE = 10_000  # requests of one connection that may wait behind a slow one
Send = Callable[[bytes], None]


class HumanlayerHearer:
    """The dialect's side of one connection."""

    __slots__ = (
        "_desk", "_door", "_ended", "_link", "_subscription", "_task", "_waiting", "_who",
        "max_line",
    )  # fmt: skip
    limit_counts_newline = True
    max_pending = 0

    def __init__(self, door: Door, link: Link, desk: Desk) -> None:
        self.max_line = desk.max_line
        self._door = door
        self._link = link
        self._desk = desk
        self._who: Who | None = None
        self._waiting: deque[tuple[Message, Send]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._subscription: Subscription | None = None
        self._ended = False
        door.visitors.enter(self)

    @property
    def who(self) -> Who:
        """Whose connection this is; most come and go without being asked."""
        if self._who is None:
            self._who = self._desk.who(self._link)
        return self._who

    # --- the transport's side ---

    def hear(self, lines: list[bytes]) -> None:
        if self._subscription is not None or self._ended:
            return  # a subscribed connection is not listened to any more
        send, desk = self._link.send, self._desk
        for message in _read(lines):
            if self._task is None and type(message) is Request:
                if message.method == "health":
                    params, id = message.params, message.id
                    if type(id) is int and (not params or bytes(params) == b"{}"):
                        send(desk.health % id)
                    else:
                        self._health(message, send)
                    continue
                if message.method == "listSessions" and self._list(message, send):
                    continue
            self._take(message, send)
            if self._is_deaf():
                return

    def overlong(self, size: int) -> None:
        if self._is_deaf():
            return
        text = f"Invalid request: the line is longer than {self.max_line} bytes"
        said = error(None, INVALID_REQUEST, text, details("Send less, or raise the limit."))
        if self._task is None:
            self._link.send(said)
        else:
            self._enqueue(Invalid(INVALID_REQUEST, None, text, "shape"), self._link.send)

    def ended(self) -> None:
        """Nothing more comes: a subscription ends, answers that are due are still sent."""
        self._ended = True
        if self._subscription is not None or self._task is None:
            self._link.close()

    def lost(self) -> None:
        self._ended = True
        self._waiting = None
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        self._door.visitors.exit(self)

    def _is_deaf(self) -> bool:
        return self._subscription is not None or self._ended

    # --- requests ---

    def _health(self, request: Request, send: Send) -> None:
        try:
            check_object(request.params)
        except Wrong as wrong:
            send(_refusal(request, wrong))
            return
        send(reply(request.id, {"status": "ok", "version": self._desk.version}))

    def _list(self, request: Request, send: Send) -> bool:
        """Answer `listSessions` on the spot when the list is known; False when it is not."""
        if request.params and bytes(request.params) != b"{}":
            return False
        known = self._desk.roster.known()
        if known is None:
            return False
        send(reply(request.id, Raw(known)))
        return True

    def _take(self, message: Message, send: Send) -> None:
        """Answer at once what needs no waiting, unless something else waits already."""
        if self._task is not None or self._needs_task(message):
            self._enqueue(message, send)
        else:
            self._answer_now(message, send)

    def _needs_task(self, message: Message) -> bool:
        if type(message) is Request:
            return message.method in VERBS or message.method == "Subscribe"
        return isinstance(message, Batch)

    def _answer_now(self, message: Message, send: Send) -> None:
        match message:
            case Request():
                if message.method == "health":
                    self._health(message, send)
                else:
                    text = f"Method not found: {message.method}"
                    send(error(message.id, METHOD_NOT_FOUND, text))
            case Invalid():
                send(_invalid(message))
            case Response() | Batch():
                raise AssertionError("never answered on the spot")

    def _enqueue(self, message: Message, send: Send) -> None:
        if self._waiting is None:
            self._waiting = deque()
        if len(self._waiting) >= QUEUE:
            text = f"{QUEUE} requests wait on this connection already"
            self._link.send(error(None, INTERNAL_ERROR, text, details("Read the answers first.")))
            self._ended = True
            self._waiting = None
            self._link.close()
            return
        self._waiting.append((message, send))
        if self._task is None:
            self._task = self._door.host.spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting and self._subscription is None:
                message, send = self._waiting.popleft()
                await self._answer(message, send)
        finally:
            self._task = None
            self._waiting = None
            if self._ended:
                self._link.close()

    async def _answer(self, message: Message, send: Send) -> None:
        if isinstance(message, Batch):
            await self._answer_batch(message, send)
        elif type(message) is Request and message.method == "Subscribe":
            await self._subscribe(message, send)
        elif type(message) is Request and message.method in VERBS:
            send(await self._run(message))
        else:
            self._answer_now(message, send)

    async def _answer_batch(self, batch: Batch, send: Send) -> None:
        replies = BatchReply(batch, send)
        for item in batch.items:
            sink = replies.sink(item)
            if type(item) is Request and item.method == "Subscribe":
                text = "Invalid request: Subscribe cannot be part of a batch"
                sink(error(item.id, INVALID_REQUEST, text))
            else:
                await self._answer(item, sink)

    async def _run(self, request: Request) -> bytes:
        verb = VERBS[request.method]
        try:
            params = verb.params(request.params)
            return reply(request.id, await verb.run(self._desk, self.who, params))
        except Exception as trouble:
            return self._failure(request, trouble)

    def _failure(self, request: Request, trouble: Exception) -> bytes:
        code, text, data = told(trouble)
        if text == "Internal error":
            self._door.host.trouble("humanlayer request failed", trouble, method=request.method)
        return error(request.id, code, text, data)

    # --- subscribing ---

    async def _subscribe(self, request: Request, send: Send) -> None:
        from .speak import Filter
        from .subscription import Subscription

        try:
            params: shapes.Subscribe = SUBSCRIBE.params(request.params)
            await self._check_since(params.since)
            run_session = ""
            if params.run_id:
                info = await self._door.find(run_id=params.run_id)
                run_session = info.id if info is not None else params.run_id
        except Exception as trouble:
            send(self._failure(request, trouble))
            return
        if self._link.closed:
            return
        wanted = Filter(
            frozenset(params.event_types or ()),
            params.session_id or "",
            params.run_id or "",
            run_session,
        )
        subscription = Subscription(self._desk, self._link, wanted)
        text = "Subscription established. Waiting for events..."
        send(reply(request.id, {"subscription_id": subscription.id, "message": text}))
        if self._ended:
            return  # the client has said goodbye already
        self._subscription = subscription
        subscription.begin(self.who, params.since)
        await self._desk.waiting.look()

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


def _refusal(request: Request, wrong: Wrong) -> bytes:
    return error(request.id, wrong.code, wrong.message, details(wrong.details))


def _invalid(message: Invalid) -> bytes:
    """The protocol's own texts; what exactly is wrong goes into the details."""
    text, what = message.message, ""
    if message.code == PARSE_ERROR:
        what = text.removeprefix("Parse error: ")
        text = "Parse error"
    elif message.reason == "version":
        text = "Invalid request: must be JSON-RPC 2.0"
    data: Any = details(what)
    return error(message.id, message.code, text, data)
