"""The part of a session that keeps facts: fold, commit, tell, in that order and in one line.

Several coroutines may append at once. The fold numbers their facts on the spot, the store commits
them in that order, and they are told in that order. A coroutine that is cancelled while it waits
does not stop its commit: what was folded is stored and told all the same.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from . import events as ev
from .events import Event
from .faults import StaleEpoch
from .ports import Batch, Entry
from .state import State

if TYPE_CHECKING:
    from .session import Session


class Ledger:
    """Facts of one session. Base of `Session`."""

    __slots__ = ("_committing", "_mending", "parked")

    def __init__(self) -> None:
        self.parked = False  # the host stopped: nothing more is written here
        # Batches on their way to the store, oldest first: [events, committed, task].
        self._committing: deque[list[Any]] = deque()
        self._mending: asyncio.Task[None] | None = None

    async def append(self: "Session", *bodies: ev.Kept) -> None:  # type: ignore[misc]
        """Keep these facts in one transaction; returns when they are stored and told."""
        task = self.put(*bodies)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                # The cancelled caller is gone; a failure must still be heard.
                task.add_done_callback(self.unheard)
            raise

    def put(self: "Session", *bodies: ev.Kept) -> asyncio.Task[None]:  # type: ignore[misc]
        """Fold these facts now; the task is done when they are stored and told."""
        if self.parked:
            raise asyncio.CancelledError("the host stopped")
        at = self.host.clock.now_ms()
        state = self.state
        entries, events = [], []
        facts = [ev.storable(body) for body in bodies]  # may fail: before anything is folded
        for body, data in facts:
            seq = state.apply(body, at)
            tag = type(body).__struct_config__.tag
            entries.append(Entry(seq, at, str(tag), data))
            events.append(Event(self.id, at, body, seq))
        asked = [b.ask for b in bodies if type(b) is ev.Asked]
        settled = [b for b in bodies if type(b) is ev.Settled]
        batch = Batch(self.id, self.epoch, entries, state.info(), asked, settled)
        slot: list[Any] = [events, False]
        self._committing.append(slot)
        task = asyncio.ensure_future(self._commit(batch, slot, state))
        slot.append(task)
        return task

    async def told(self) -> None:
        """Wait until all that is folded now is told."""
        if self._committing:
            await asyncio.wait({self._committing[-1][2]})

    def unheard(self: "Session", task: asyncio.Task[None]) -> None:  # type: ignore[misc]
        if not task.cancelled() and (error := task.exception()) is not None:
            self.host.trouble("append failed", error, session=self.id)

    async def _commit(  # type: ignore[misc]
        self: "Session", batch: Batch, slot: list[Any], state: State
    ) -> None:
        try:
            first = await self.host.store.append(batch)
        except BaseException as error:
            if slot in self._committing:
                self._committing.remove(slot)
            if isinstance(error, Exception):
                await self._lost(error, state)
            raise
        slot[0] = [msgspec.structs.replace(e, gseq=first + i) for i, e in enumerate(slot[0])]
        slot[1] = True
        while self._committing and self._committing[0][1]:
            for event in self._committing.popleft()[0]:
                self._tell(event)

    async def _lost(self: "Session", error: Exception, state: State) -> None:  # type: ignore[misc]
        """A commit failed: what was folded is not stored. Go back to what is."""
        if isinstance(error, StaleEpoch):
            self._let_down()
        elif self.state is state:  # else another failure of the same moment went back already
            if self._mending is None:
                self._mending = asyncio.ensure_future(self._mend())
            await asyncio.shield(self._mending)

    async def _mend(self: "Session") -> None:  # type: ignore[misc]
        try:
            self.state = await self.host.rebuild(self.id)
        except Exception as problem:
            self.host.trouble("a session could not be read again", problem, session=self.id)
            self._let_down()  # it is read again by whoever comes next
        finally:
            self._mending = None

    def _let_down(self: "Session") -> None:  # type: ignore[misc]
        """This object cannot speak for the session any more."""
        self.host.drop(self)
        if self.turn is not None:
            self.turn.closed = True

    def _tell(self: "Session", event: Event) -> None:  # type: ignore[misc]
        if type(event.body) is ev.Spoke and self.turn is not None:
            self.turn.draft.said()
        self.hub.emit(event)
        self.host.hub.emit(event)

    def emit(self: "Session", body: ev.Passing) -> None:  # type: ignore[misc]
        """Tell a passing event."""
        host = self.host
        if self.hub.watches or host.hub.watches:
            self._tell(Event(self.id, host.clock.now_ms(), body))
