"""Sessions as apps see them: by key, driven by `agent.queue`, answered through channels."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.events import ACTIVE
from dragoman.engine.faults import UnknownSession
from dragoman.engine.hooks import Block, HookContext, Outgoing
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.engine.traits import Correspondent

from .faults import Wrong
from .shapes import Dispatch, Filter, Queue, SessionList

if TYPE_CHECKING:
    from .desk import Desk
    from .hear import OpenclawosHearer
    from .seat import Seat

_QUEUE = 64  # prompts that may wait in one session
_KEY = 1024
_MOST = 10_000
_REMEMBERED = 10_000


def entry(info: SessionInfo) -> dict[str, Any]:
    """A `SessionEntry`."""
    whom = Correspondent.of(info.extra)
    made: dict[str, Any] = {"key": whom.key or info.id, "agentId": info.agent}
    if whom.channel:
        made["channelId"] = whom.channel
    if whom.account:
        made["accountId"] = whom.account
    made["createdAt"] = info.created_at
    made["lastActiveAt"] = info.updated_at
    made["messageCount"] = info.messages
    if info.mode in ("plan", "readonly"):  # ours, and only where it is not what was always so
        made["mode"] = info.mode
    if info.parent:  # ours, too: a sub-agent
        made["parent"] = info.parent
    return made


class Sessions:
    """Finds and makes the sessions behind keys."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk
        self._door = desk.door
        self._turns: dict[str, list[Any]] = {}  # key -> [lock, how many want it]
        # What came in last with each key: outgoing messages of `message.dispatch` repeat it.
        self._inbound: OrderedDict[str, dict[str, Any]] = OrderedDict()

    async def find(self, key: str) -> SessionInfo | None:
        """The session with this key; a session's own id is a key as well."""
        found = await self._door.find(Correspondent, key=key)
        if found is None:
            try:
                return await self._door.info(key)
            except UnknownSession:
                return None
        live = self._door.live(found.id)  # the store may be a moment behind
        return live.info() if live is not None else found

    async def list(self, asked: SessionList) -> dict[str, Any]:
        limit = asked.limit if asked.limit is not None else 0
        offset = asked.offset if asked.offset is not None else 0
        if limit < 0 or offset < 0:
            raise Wrong("INVALID_PARAMS", "limit and offset must not be negative")
        chosen = asked.filter or Filter()
        wanted = {"channel": chosen.channelId, "account": chosen.accountId}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        query = SessionQuery(
            agent=chosen.agentId,
            status=tuple(sorted(ACTIVE)) if chosen.active else (),
            extra={Correspondent.NAME: wanted} if wanted else {},
            limit=min(limit or _MOST, _MOST),
            offset=offset,
        )
        if chosen.active is False:
            return await self._resting(query, limit, offset)
        page = await self._door.list(query)
        total = page.total
        if total is None:
            counted = await self._door.list(msgspec.structs.replace(query, limit=1, offset=1))
            total = counted.total
        return {"sessions": [entry(info) for info in page.sessions], "total": total}

    async def _resting(self, query: SessionQuery, limit: int, offset: int) -> dict[str, Any]:
        """Sessions in which nothing runs: every other status."""
        whole = msgspec.structs.replace(query, limit=_MOST, offset=0)
        found = [
            entry(info)
            for info in (await self._door.list(whole)).sessions
            if info.status not in ACTIVE
        ]
        end = offset + limit if limit else len(found)
        return {"sessions": found[offset:end], "total": len(found)}

    # --- inbound ---

    async def queue(self, conn: "OpenclawosHearer", asked: Queue) -> dict[str, Any]:
        """Begin a run with a message from outside, in the session of its key."""
        seat = conn.seat
        assert seat is not None
        key = _checked(asked.sessionKey)
        if not asked.text.strip():
            raise Wrong("INVALID_PARAMS", "text must not be empty")
        metadata = asked.metadata or {}
        channel = self._channel(seat, key, metadata)
        async with self.turn(key):
            found = await self.find(key)
            if found is None:
                spec = OpenSpec(traits=(_correspondent(key, channel, metadata),))
                found = await self._door.open(spec, conn.who)
            work = await self._door.prompt(
                found.id,
                (Text(asked.text),),
                conn.who,
                metadata=asked.metadata,
                limit=_QUEUE,
                keep=True,
            )
        self._remember(key, metadata)
        return {"runId": work.turn, "queued": True}

    def _channel(self, seat: "Seat", key: str, metadata: dict[str, Any]) -> str:
        """The channel that a message came by: as it says, as its key says, or the app's own."""
        named = metadata.get("channelId")
        if not isinstance(named, str) or not named:
            before, colon, _ = key.partition(":")
            named = before if colon else None
        if named is not None:
            owner = self._desk.owner("channel", named)
            if owner is not None and owner is not seat:
                text = f'Channel "{named}" belongs to app "{owner.name}"'
                raise Wrong("CAPABILITY_DENIED", text)
            return named
        own = [grant.name for grant in seat.grants.values() if grant.kind == "channel"]
        return own[0] if len(own) == 1 else ""

    # --- outbound ---

    async def dispatch(self, conn: "OpenclawosHearer", asked: Dispatch) -> dict[str, Any]:
        """Send a message the way of every outgoing one: hooks first, then its channel."""
        key = _checked(asked.sessionKey)
        async with self.turn(f"dispatch {key}"):  # in the order in which they came
            data, context = await self._outgoing(key, asked)
            dispatch_id = self._desk.voice.new_id("dispatch")
            queued = self._desk.owner("channel", data.channel) is not None
            if queued:
                await self._desk.outbox.accept(data, context, dispatch_id)
            else:  # nothing is promised
                self._door.spawn(self._show(data, context))
        return {"dispatchId": dispatch_id, "queued": queued}

    async def _outgoing(self, key: str, asked: Dispatch) -> tuple[Outgoing, HookContext]:
        found = await self.find(key)
        whom = Correspondent.of(found.extra) if found is not None else Correspondent()
        before, colon, _ = key.partition(":")
        channel = whom.channel or (before if colon else "")
        metadata = {
            **(self._inbound.get(key) or whom.metadata),
            **(asked.metadata or {}),
        }
        data = Outgoing(
            content=asked.content,
            channel=channel,
            target=whom.target or _target(key, channel, metadata),
            metadata=metadata,
        )
        context = HookContext(
            agent=found.agent if found is not None else "",
            session=found.id if found is not None else "",
            key=key,
            channel=channel,
            account=whom.account,
        )
        return data, context

    async def _show(self, data: Outgoing, context: HookContext) -> None:
        """Tell apps and its session of a message for which there is no channel."""
        hooks = self._door.hooks
        async with self.turn(f"send {context.key}"):
            result = await hooks.run("message_sending", data, context)
        if not isinstance(result, Block):
            hooks.tell("message_sent", result, context)
            await self._desk.outbox.note(context, "info", "Message sent by an app", result)

    # --- inside ---

    def _remember(self, key: str, metadata: dict[str, Any]) -> None:
        if metadata:
            self._inbound[key] = metadata
            self._inbound.move_to_end(key)
            while len(self._inbound) > _REMEMBERED:
                self._inbound.popitem(last=False)

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """One after the other for each key: two first messages make one session."""
        held = self._turns.setdefault(key, [asyncio.Lock(), 0])
        held[1] += 1
        try:
            async with held[0]:
                yield
        finally:
            held[1] -= 1
            if not held[1]:
                self._turns.pop(key, None)


def _checked(key: str) -> str:
    if not key.strip():
        raise Wrong("INVALID_PARAMS", "sessionKey must not be empty")
    if len(key) > _KEY:
        raise Wrong("INVALID_PARAMS", f"sessionKey is longer than {_KEY} characters")
    return key


def _target(key: str, channel: str, metadata: dict[str, Any]) -> str:
    """Whom to answer: the conversation part of the key, else who wrote."""
    if channel and key.startswith(f"{channel}:"):
        return key[len(channel) + 1 :]
    sender = metadata.get("from")
    return sender if isinstance(sender, str) else ("" if sender is None else str(sender))


def _correspondent(key: str, channel: str, metadata: dict[str, Any]) -> Correspondent:
    """What is kept with a new session."""
    account = metadata.get("accountId")
    account = account if isinstance(account, str) else ""
    return Correspondent(key, channel, account, _target(key, channel, metadata), metadata)
