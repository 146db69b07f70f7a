"""The facts of one session: fold, commit, tell, in that order and in one line.

Several coroutines may append at once. The fold numbers their facts on the spot, the store commits
them in that order, and they are told in that order. A coroutine that is cancelled while it waits
does not stop its commit: what was folded is stored and told all the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.holding import Holder

from . import events as ev
from .content import text_of
from .events import Event, Who
from .faults import StaleEpoch, taken_over
from .hooks import Completed, Executed, Hooks, Payload
from .hub import Hub, Watch
from .info import SessionInfo
from .ports import Agents, Batch, Budget, Clock, Entry, Models, Store
from .ports.checkpoints import Checkpoints
from .rules import Rules
from .state import State
from .work import Losses, Underway

_ASKING = frozenset({ev.Asked, ev.Settled})
_HOOKED = frozenset({ev.CallStarted, ev.CallEnded, ev.TurnEnded})


class Home(Protocol):
    """What a session needs of the host that holds it (`engine/host.py`)."""

    store: Store
    agents: Agents
    models: Models
    node: str  # of a fleet; empty: none
    clock: Clock
    hooks: Hooks
    hub: Hub  # of all sessions
    budget: Budget | None
    rules: Rules
    max_asks: int
    max_inbox: int
    stopping: bool
    on_asked: list[Callable[[], None]]  # told that a question is open
    losses: Losses

    @property
    def checkpoints(self) -> Checkpoints | None: ...

    def trouble(self, what: str, error: BaseException, **data: Any) -> None: ...

    def spawn(self, work: Awaitable[Any]) -> "asyncio.Task[Any]": ...

    def spent(self, state: State, cost: float) -> None: ...

    def take_up(self, session_id: str) -> None: ...

    def is_live(self, ledger: "Ledger") -> bool: ...

    def let_down(self, ledger: "Ledger") -> None: ...

    def unwatched(self, ledger: "Ledger") -> None: ...

    async def read(self, session_id: str, after: int, limit: int) -> Sequence[Event]: ...

    async def rebuild(self, session_id: str) -> State: ...


class Commit(Holder):
    """Facts on their way to the store. `done` is resolved when they are stored and told."""

    events: list[Event]
    state: State  # what they were folded into
    done: asyncio.Future[None]  # of whoever brought them; cancelled when it left
    hooks: Sequence[tuple[str, Payload, str]] = ()  # to be told after them: hook, data, turn
    others: list[asyncio.Future[None]] | None = None  # of those who only wait
    stored: bool = False

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
    """What a session is, and the only way to change it. Its parts hold this, never each other."""

    __slots__ = (
        "_committing", "watched", "_mending", "_run", "closing", "epoch", "home", "id", "lost",
        "parked", "seen", "state", "turn",
    )  # fmt: skip

    def __init__(self, home: Home, state: State, epoch: int, hub: Hub | None = None) -> None:
        self.home = home
        self.id = state.id
        self.state = state
        self.epoch = epoch
        self.seen = state.seq  # the newest fact that was told
        self.turn: Underway | None = None
        self.closing = False  # the session is being let go
        self.parked = False  # the host stopped: nothing more is written here
        self.lost = False  # it may be somebody else's by now: nothing more is written here
        self._committing: tuple[Commit, ...] = ()  # oldest first
        self._run: dict[str, dict[str, Any]] | None = None  # calls under way, as they are run
        self._mending: asyncio.Task[None] | None = None
        self.watched: Hub | None = None  # the hub, once somebody asked for it
        if hub is not None:
            self._serve(hub)

    # --- who watches ---

    @property
    def hub(self) -> Hub:
        """Where its events are watched; made for the first one who asks."""
        if self.watched is not None:
            return self.watched
        home = self.home
        return self._serve(
            Hub(self.id, self._read, home.spawn, clock=home.clock, trouble=home.trouble)
        )

    def _serve(self, hub: Hub) -> Hub:
        self.watched = hub
        hub.serve(self._read, self._draft, self._presence, self.seen)
        return hub

    def part(self) -> bool:
        """Let the hub go unless somebody watches; False: somebody does.

        The two hold each other: a session that is gone would stay in memory, with its history,
        until the garbage collector comes by.
        """
        if self.watches:
            return False
        self.watched = None
        return True

    @property
    def watches(self) -> Sequence[Watch]:
        """Those who watch it now."""
        return self.watched.watches if self.watched is not None else ()

    def present(self) -> tuple[Who, ...]:
        return tuple(dict.fromkeys(watch.who for watch in self.watches))

    def _draft(self) -> Sequence[Event]:
        turn = self.turn
        return turn.draft.events(self.id, turn.id, self.home.clock.now_ms()) if turn else ()

    async def _read(self, after: int, limit: int) -> Sequence[Event]:
        return await self.home.read(self.id, after, limit)

    def _presence(self) -> None:
        if self.home.is_live(self):
            self.emit(ev.Presence(self.present()))
        elif not self.watches:
            self.home.unwatched(self)

    # --- what is kept ---

    def info(self) -> SessionInfo:
        """The session in short. It names no place of the history that cannot be read yet."""
        info = self.state.info()
        if info.last_seq > self.seen:
            info = msgspec.structs.replace(info, last_seq=self.seen)
        return info

    async def keep(self, turn: Underway, *bodies: ev.Kept) -> None:
        """Keep facts of a turn, with those that it left for now."""
        turn.check_open()
        tail, turn.tail = turn.tail, []
        await self.put(*tail, *bodies)

    def put(
        self, *bodies: ev.Kept, patient: bool = False, handled: str = ""
    ) -> "asyncio.Future[None]":
        """Fold these facts now; the future is done when they are stored and told.

        When nobody waits for them, a `patient` store may gather them with later ones. `handled` is
        the command of another node that is done with them.
        """
        if self.parked:
            raise asyncio.CancelledError("the host stopped")
        home = self.home
        if self.lost:
            refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            refused.set_exception(taken_over(self.id))
            return refused
        at = home.clock.now_ms()
        state = self.state
        entries, events = [], []
        facts = [ev.storable(body) for body in bodies]  # may fail: before anything is folded
        asks = False
        hooks: list[tuple[str, Payload, str]] = []
        for body, data in facts:
            if type(body) in _HOOKED:
                hooks += self._hook_of(body)
            seq = state.apply(body, at)
            kind = type(body)
            asks = asks or kind in _ASKING
            entries.append(Entry(seq, at, str(kind.__struct_config__.tag), data))
            events.append(Event(self.id, at, body, seq))
        asked = [b.ask for b in bodies if type(b) is ev.Asked] if asks else ()
        settled = [b for b in bodies if type(b) is ev.Settled] if asks else ()
        batch = Batch(self.id, self.epoch, entries, state.info(), asked, settled, handled)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        commit = Commit(events, state, done, hooks)
        self._committing = (*self._committing, commit)
        posted = home.store.post(batch, patient=patient)
        posted.add_done_callback(lambda future: self._posted(commit, future))
        return done

    def _hook_of(self, body: ev.Kept) -> list[tuple[str, Payload, str]]:
        """What apps are told of a fact, whoever wrote it: a call that ran ended, a turn ended."""
        match body:
            case ev.CallStarted():
                self._run = {**(self._run or {}), body.call_id: body.args or {}}
            case ev.CallEnded(turn=turn, call_id=call_id):
                run = self._run or {}
                args = run.pop(call_id, None)
                started = self.state.journal.get(call_id, ("", False))[1]
                if not run:
                    self._run = None
                if not started or not self.home.hooks.told("tool_completed"):
                    return []
                if args is None:  # it was started by another process
                    found = (one for one in self.state.unanswered() if one.id == call_id)
                    args = next((one.args for one in found), None)
                result = text_of(body.content)
                data = Executed(
                    call_id=call_id, tool=body.name, args=args or {}, is_error=body.is_error,
                    result=result,
                )  # fmt: skip
                return [("tool_completed", data, turn)]
            case ev.TurnEnded(turn=turn) if self.home.hooks.told("agent_completed"):
                ended = Completed(outcome=body.outcome, text=body.text, error=body.error)
                return [("agent_completed", ended, turn)]
        return []

    async def told(self) -> None:
        """Wait until all that is folded now is told."""
        if self._committing:
            newest = self._committing[-1]
            told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            newest.others = [*(newest.others or ()), told]
            await told

    def unheard(self, done: "asyncio.Future[None]") -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            self.home.trouble("append failed", error, session=self.id)

    def _posted(self, commit: Commit, future: "asyncio.Future[int]") -> None:
        """The store has answered: tell what is stored now, oldest first."""
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self._committing = tuple(one for one in self._committing if one is not commit)
            if self.turn is not None and commit.begins(self.turn.id):
                self.turn.closed = True  # nothing may be kept of a turn that never began
            self.home.spawn(self._lost(error, commit))
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
            for hook, data, turn in first.hooks:
                self.home.hooks.tell_of(hook, data, self.state, turn)
            first.end()

    async def _lost(self, error: BaseException, commit: Commit) -> None:
        """A commit failed: what was folded is not stored. Go back to what is."""
        try:
            if isinstance(error, StaleEpoch):
                self.lose()
            elif self.state is commit.state:  # else another failure of this moment went back
                if self._mending is None:
                    self._mending = asyncio.ensure_future(self._mend())
                await asyncio.shield(self._mending)
        finally:
            if not commit.end(error):  # whoever brought these facts has left
                self.home.trouble("append failed", error, session=self.id)

    async def _mend(self) -> None:
        try:
            self.state = await self.home.rebuild(self.id)
            turn = self.turn
            if turn is not None and any(one.begins(turn.id) for one in self._committing):
                turn.closed = True  # what was folded before and has no answer yet is lost, too
        except Exception as problem:
            self.home.trouble("a session could not be read again", problem, session=self.id)
            self.lose()  # it is read again by whoever comes next
        finally:
            self._mending = None

    def lose(self) -> None:
        """This object cannot speak for the session any more: what runs in it is ended."""
        self.lost = True
        self.home.losses.add(self.id, self.epoch)
        self.home.let_down(self)
        turn = self.turn
        if turn is not None:
            turn.closed = True
            if turn.task is not None:
                turn.task.cancel()

    def _tell(self, events: list[Event]) -> None:
        if self.turn is not None and any(type(event.body) is ev.Spoke for event in events):
            self.turn.draft.said()
        self.seen = events[-1].seq
        if self.watched is not None:
            self.watched.emit_kept(events)
        self.home.hub.emit_kept(events)

    # --- what passes ---

    def emit(self, body: ev.Passing) -> None:
        """Tell a passing event."""
        event: Event | None = None
        for hub in (self.watched, self.home.hub):
            if hub is not None and hub.watches:
                event = event or Event(self.id, self.home.clock.now_ms(), body)
                hub.emit(event)

    def stream(self, kind: type[ev.Delta], turn: str, text: str, part: str | int) -> None:
        """Tell a piece of text: what `emit` does for a delta, without an object per piece."""
        hub = self.watched
        if hub is not None and hub.watches:
            hub.stream(self.id, kind, turn, text, part)
        hub = self.home.hub
        if hub.watches:
            hub.stream(self.id, kind, turn, text, part)
