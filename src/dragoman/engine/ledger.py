"""The part of a session that keeps facts: fold, commit, tell, in that order and in one line.

Several coroutines may append at once. The fold numbers their facts on the spot, the store commits
them in that order, and they are told in that order. A coroutine that is cancelled while it waits
does not stop its commit: what was folded is stored and told all the same.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from . import events as ev
from .events import Event
from .faults import StaleEpoch
from .ports import Batch, Entry
from .state import State

if TYPE_CHECKING:
    from .session import Session

_ASKING = frozenset({ev.Asked, ev.Settled})


class Commit:
    """Facts on their way to the store. `done` is resolved when they are stored and told."""

    __slots__ = ("done", "events", "others", "state", "stored")

    def __init__(self, events: list[Event], state: State, done: "asyncio.Future[None]") -> None:
        self.events = events
        self.state = state  # what they were folded into
        self.done = done  # of whoever brought them; cancelled when it left
        self.others: list[asyncio.Future[None]] | None = None  # of those who only wait
        self.stored = False

    def begins(self, turn: str) -> bool:
        bodies = (event.body for event in self.events)
        return any(type(body) is ev.TurnBegan and body.turn == turn for body in bodies)

    def end(self, error: BaseException | None = None) -> bool:
        """Wake those who wait; False when nobody heard of an error."""
        for other in self.others or ():
            if not other.done():
                other.set_result(None)
        if self.done.done():
            return error is None
        if error is None:
            self.done.set_result(None)
        elif isinstance(error, asyncio.CancelledError):
            self.done.cancel()
        else:
            self.done.set_exception(error)
        return True


class Ledger:
    """Facts of one session. Base of `Session`."""

    __slots__ = ("_committing", "_mending", "parked")

    def __init__(self) -> None:
        self.parked = False  # the host stopped: nothing more is written here
        self._committing: tuple[Commit, ...] = ()  # oldest first
        self._mending: asyncio.Task[None] | None = None

    async def append(self: "Session", *bodies: ev.Kept) -> None:  # type: ignore[misc]
        """Keep these facts in one transaction; returns when they are stored and told."""
        await self.put(*bodies)

    def put(  # type: ignore[misc]
        self: "Session", *bodies: ev.Kept, patient: bool = False
    ) -> "asyncio.Future[None]":
        """Fold these facts now; the future is done when they are stored and told.

        When nobody waits for them, a `patient` store may gather them with later ones.
        """
        if self.parked:
            raise asyncio.CancelledError("the host stopped")
        host = self.host
        at = host.clock.now_ms()
        state = self.state
        entries, events = [], []
        facts = [ev.storable(body) for body in bodies]  # may fail: before anything is folded
        asks = False
        for body, data in facts:
            seq = state.apply(body, at)
            kind = type(body)
            asks = asks or kind in _ASKING
            entries.append(Entry(seq, at, kind.__struct_config__.tag, data))  # type: ignore[arg-type]
            events.append(Event(self.id, at, body, seq))
        asked = [b.ask for b in bodies if type(b) is ev.Asked] if asks else ()
        settled = [b for b in bodies if type(b) is ev.Settled] if asks else ()
        batch = Batch(self.id, self.epoch, entries, state.info(), asked, settled)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        commit = Commit(events, state, done)
        self._committing = (*self._committing, commit)
        posted = host.store.post(batch, patient=patient)
        posted.add_done_callback(lambda future: self._posted(commit, future))
        return done

    async def told(self) -> None:
        """Wait until all that is folded now is told."""
        if self._committing:
            newest = self._committing[-1]
            told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            newest.others = [*(newest.others or ()), told]
            await told

    def unheard(self: "Session", done: "asyncio.Future[None]") -> None:  # type: ignore[misc]
        if not done.cancelled() and (error := done.exception()) is not None:
            self.host.trouble("append failed", error, session=self.id)

    def _posted(  # type: ignore[misc]
        self: "Session", commit: Commit, future: "asyncio.Future[int]"
    ) -> None:
        """The store has answered: tell what is stored now, oldest first."""
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self._committing = tuple(one for one in self._committing if one is not commit)
            if self.turn is not None and commit.begins(self.turn.id):
                self.turn.closed = True  # nothing may be kept of a turn that never began
            self.host.spawn(self._lost(error, commit))
        else:
            gseq = future.result()
            for event in commit.events:
                # Not shared with anybody yet: the place is filled in rather than copied.
                msgspec.structs.force_setattr(event, "gseq", gseq)
                gseq += 1
            commit.stored = True
        while self._committing and self._committing[0].stored:
            first, *rest = self._committing
            self._committing = tuple(rest)
            self._tell(first.events)
            first.end()

    async def _lost(  # type: ignore[misc]
        self: "Session", error: BaseException, commit: Commit
    ) -> None:
        """A commit failed: what was folded is not stored. Go back to what is."""
        try:
            if isinstance(error, StaleEpoch):
                self._let_down()
            elif self.state is commit.state:  # else another failure of this moment went back
                if self._mending is None:
                    self._mending = asyncio.ensure_future(self._mend())
                await asyncio.shield(self._mending)
        finally:
            if not commit.end(error):  # whoever brought these facts has left
                self.host.trouble("append failed", error, session=self.id)

    async def _mend(self: "Session") -> None:  # type: ignore[misc]
        try:
            self.state = await self.host.rebuild(self.id)
            turn = self.turn
            if turn is not None and any(one.begins(turn.id) for one in self._committing):
                turn.closed = True  # what was folded before and has no answer yet is lost, too
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

    def _tell(self: "Session", events: list[Event]) -> None:  # type: ignore[misc]
        if self.turn is not None and any(type(event.body) is ev.Spoke for event in events):
            self.turn.draft.said()
        self.seen = events[-1].seq
        if self._hub is not None:
            self._hub.emit_kept(events)
        self.host.hub.emit_kept(events)

    def emit(self: "Session", body: ev.Passing) -> None:  # type: ignore[misc]
        """Tell a passing event."""
        host = self.host
        if self.watches or host.hub.watches:
            event = Event(self.id, host.clock.now_ms(), body)
            if self._hub is not None:
                self._hub.emit(event)
            host.hub.emit(event)

    def stream(  # type: ignore[misc]
        self: "Session", kind: type[Any], turn: str, text: str, call_id: str = ""
    ) -> None:
        """Tell a piece of text: what `emit` does for a delta, without an object per piece."""
        if self._hub is not None and self._hub.watches:
            self._hub.stream(self, kind, turn, text, call_id)
        if self.host.hub.watches:
            self.host.hub.stream(self, kind, turn, text, call_id)
