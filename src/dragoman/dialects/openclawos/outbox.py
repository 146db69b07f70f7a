"""Messages on their way to channels: acknowledged once they are stored, gone once an app has them.

What waits for an app that is away, or for a host that is down, is on the store's shelf and goes out
when the app is ready again, in the order in which it came. A host that dies between giving a
message and forgetting it gives it twice; it never loses one.
"""

from itertools import count
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.engine.faults import Fault, TooMany, stopping
from dragoman.engine.hooks import Block, HookContext, Outgoing
from dragoman.engine.ports import row_of
from dragoman.observe.log import get_log
from dragoman.wire.codec import encode

from .hooks import channel_of

if TYPE_CHECKING:
    from .desk import Desk
    from .seat import Seat

log = get_log("apps")

OUTBOX = "openclawos.outbox"
CHANNELS = "openclawos.channels"  # those that some app had
MOST = 1_000  # messages that may wait
LONGEST_MS = 24 * 60 * 60 * 1_000  # for which one waits


class Waiting(msgspec.Struct, frozen=True):
    """A message that is to go out."""

    id: str  # of the dispatch; empty: an agent said it, and its session has it
    at: int
    data: Outgoing
    context: HookContext
    agreed: bool = False  # interceptors had their say


class Outbox:
    """One per process; each node of a fleet has a place of its own on the shelf."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk
        self._door = desk.door
        self._next = count().__next__
        self._hands: set[str] = set()  # keys of what is being sent just now
        # Apps that are given what waited for them; True: more was put there meanwhile.
        self._giving: dict[str, bool] = {}
        self._met: set[str] = set()

    @property
    def _space(self) -> str:
        fleet = self._door.fleet
        return f"{OUTBOX}.{fleet['node']}" if fleet is not None else OUTBOX

    # --- what comes ---

    async def accept(self, data: Outgoing, context: HookContext, id: str) -> None:
        """Store a message; when this returns, it may be acknowledged. Raises Busy, TooMany."""
        if self._door.stopping:
            raise stopping()
        if len(await self._door.shelf.pairs(self._space)) >= MOST:
            raise TooMany(f"{MOST} messages wait for their channels already.", "Try again later.")
        waiting = Waiting(id, self._desk.now(), data, context)
        key = self._key(waiting)
        self._hands.add(key)
        try:
            await self._put(key, waiting)
        except BaseException:
            self._hands.discard(key)
            raise
        self._door.spawn(self._send_alone(key, waiting))

    def keep(self, data: Outgoing, context: HookContext) -> None:
        """Keep what an agent said for an app that is not there, if there ever was one."""
        waiting = Waiting("", self._desk.now(), data, context, agreed=True)
        self._door.spawn(self._keep(self._key(waiting), waiting))

    async def _keep(self, key: str, waiting: Waiting) -> None:
        shelf, channel = self._door.shelf, waiting.data.channel
        if channel not in self._met and await shelf.get(CHANNELS, channel) is None:
            log.warning("no app takes this message", channel=channel)
            return
        rows = sorted(await shelf.pairs(self._space))
        for old, raw in rows[: max(0, len(rows) + 1 - MOST)]:
            await self._drop(old, row_of(raw, Waiting), "too many messages wait")
        await self._put(key, waiting)
        owner = self._owner(waiting.data)
        if owner is not None and owner.ready:  # it came while this was stored
            self.give(owner)

    def _key(self, waiting: Waiting) -> str:
        return f"{waiting.at:015d}.{self._next():09d}"

    async def _put(self, key: str, waiting: Waiting) -> None:
        await self._door.shelf.put(self._space, key, encode(waiting))

    # --- who takes it ---

    def meet(self, seat: "Seat", channel: str) -> None:
        """An app has this channel from now on."""
        if channel not in self._met:
            self._met.add(channel)
            self._door.spawn(self._door.shelf.put(CHANNELS, channel, seat.name.encode()))
        self.give(seat)

    def gives(self, channel: str) -> bool:
        """Whether its app is given what waited for it: what comes now comes behind that."""
        owner = self._desk.owner("channel", channel)
        return owner is not None and owner.name in self._giving

    def give(self, seat: "Seat") -> None:
        """Give an app, once it is ready, what waited for its channels, oldest first."""
        if not seat.ready or not seat.owns_channel():
            return
        begun = seat.name in self._giving
        self._giving[seat.name] = True
        if not begun:
            self._door.spawn(self._give(seat.name))

    async def _give(self, app: str) -> None:
        try:
            while self._giving[app]:
                self._giving[app] = False
                for key, raw in sorted(await self._door.shelf.pairs(self._space)):
                    waiting = row_of(raw, Waiting)
                    if waiting is None or self._desk.now() - waiting.at > LONGEST_MS:
                        await self._drop(key, waiting, "no app took it in time")
                        continue
                    owner = self._owner(waiting.data)
                    if key not in self._hands and owner is not None and owner.name == app:
                        self._hands.add(key)
                        await self._send_alone(key, waiting)
        finally:
            del self._giving[app]

    def _owner(self, data: Outgoing) -> "Seat | None":
        return self._desk.owner("channel", channel_of(data))

    async def _send_alone(self, key: str, waiting: Waiting) -> None:
        try:
            async with self._desk.sessions.turn(f"send {waiting.context.key}"):
                await self._send(key, waiting)
        finally:
            self._hands.discard(key)

    async def _send(self, key: str, waiting: Waiting) -> None:
        owner = self._owner(waiting.data)
        if owner is None or not owner.ready:
            return  # it waits on
        data, context, hooks = waiting.data, waiting.context, self._door.hooks
        if waiting.agreed:
            owner.push("message_sending", data, context)
        else:
            said = await hooks.run("message_sending", data, context)  # gives it to the owner
            if isinstance(said, Block):
                await self._drop(key, waiting, said.reason)
                return
            data, owner = said, self._owner(said)
            if channel_of(data) and (owner is None or not owner.ready):  # it left meanwhile
                agreed = msgspec.structs.replace(waiting, data=data, agreed=True)
                await self._put(key, agreed)
                await self._send(key, agreed)  # it may be back
                return
        await self._door.shelf.put(self._space, key, None)
        if waiting.id:
            hooks.tell("message_sent", data, context)
            await self.note(context, "info", "Message sent by an app", data)

    async def _drop(self, key: str, waiting: Waiting | None, why: str) -> None:
        """It will not go out: say so where it can be seen."""
        await self._door.shelf.put(self._space, key, None)
        if waiting is None:
            log.warning("a message could not be read any more", key=key)
            return
        log.info("message not sent", dispatch=waiting.id, reason=why)
        if waiting.id:
            title = f"Message not sent: {why}" if why else "Message not sent"
            await self.note(waiting.context, "warning", title, waiting.data)

    async def note(
        self, context: HookContext, level: Literal["info", "warning"], title: str, data: Outgoing
    ) -> None:
        """Tell its session, if it has one, what became of a message."""
        if not context.session:
            return
        said = data.content if "content" not in data.more else ""
        try:
            await self._door.note(context.session, level, title, said)
        except Fault as fault:  # its session may be gone by now
            log.warning("dispatch not noted", session=context.session, problem=str(fault))
