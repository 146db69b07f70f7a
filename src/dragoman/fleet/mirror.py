"""A session that another node has, as this one shows it and speaks for its clients.

It has the parts of a live session (`engine/session.py`), so that dialects notice nothing: what
happens there is read from the log, and what is to be done there becomes a command.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.ask import AskReply
from dragoman.engine.asks import Asks
from dragoman.engine.content import Prompt, Text, Thinking, ToolCall, text_of
from dragoman.engine.events import Ask, Event, Settled, Who
from dragoman.engine.faults import Busy, Fault, InUse, NothingRunning, UnknownSession
from dragoman.engine.gear import Gear
from dragoman.engine.hooks import Payload, Starting
from dragoman.engine.hub import Hub
from dragoman.engine.inbox import Inbox
from dragoman.engine.ledger import Home, Ledger
from dragoman.engine.ports import Entry
from dragoman.engine.ports.checkpoints import Checkpoint, Restored
from dragoman.engine.session import Session
from dragoman.engine.state import State
from dragoman.engine.work import Finished, Underway, Work

from . import words
from .words import Command, Result

SOON = 2.0  # seconds in which an owner that is alive has looked at a command


class Way(Protocol):
    """How a mirror reaches the node that has its session (`fleet/node.py`)."""

    async def ask(self, session: str, command: Command) -> Result: ...

    async def put_down(self, session: str, command: Command) -> str: ...

    async def outcome(self, session: str, id: str) -> Result: ...

    async def catch_up(self, session: str) -> None: ...

    def await_turn(self, session: str, after: int, work: Work) -> None: ...

    def absence(self, session: str) -> Fault | None: ...


class FarLedger(Ledger):
    """What the session is, read from the log; what is to be added goes to its owner."""

    __slots__ = ("asked", "way")

    def __init__(self, home: Home, state: State, hub: Hub | None, way: Way) -> None:
        super().__init__(home, state, 0, hub)
        self.way = way
        self.asked: set[str] = set()  # turns that were asked for here: our apps hear of them, too
        self._underway()

    def put(
        self, *bodies: ev.Kept, patient: bool = False, handled: str = ""
    ) -> "asyncio.Future[None]":
        return asyncio.ensure_future(self._configure(bodies))

    async def _configure(self, bodies: tuple[ev.Kept, ...]) -> None:
        await self.ask(words.Configure(bodies))

    async def ask(self, command: Command) -> Result:
        """Have its owner do something, and take in what that did."""
        result = await self.way.ask(self.id, command)
        await self.way.catch_up(self.id)
        return result

    def _underway(self) -> None:
        turn = self.state.turn
        if not turn:
            self.turn = None
        elif self.turn is None or self.turn.id != turn:
            self.turn = Underway(turn)

    def fold(self, entries: Sequence[Entry]) -> None:
        """Take in and tell what its owner stored."""
        for entry in entries:
            if entry.seq != self.state.seq + 1:
                continue
            body = ev.decode_body(entry.body)
            hooks = self._hooks_of(body) if self.asked else ()
            self.state.apply(body, entry.at)
            self._underway()
            if isinstance(body, ev.Spoke):
                self._say(body)
            self._tell([Event(self.id, entry.at, body, entry.seq, entry.gseq)])
            for hook, data, turn in hooks:
                self.home.hooks.tell_of(hook, data, self.state, turn)

    def _hooks_of(self, body: ev.Kept) -> Sequence[tuple[str, Payload, str]]:
        """What the apps of this node are told of a turn that it asked for."""
        match body:
            case ev.TurnBegan(turn=turn) if turn in self.asked:
                return [("agent_starting", Starting(prompt=text_of(body.content)), turn)]
            case ev.Dropped(id=turn):
                self.asked.discard(turn)
            case ev.CallStarted(turn=turn) | ev.CallEnded(turn=turn) if turn in self.asked:
                return self._hook_of(body)
            case ev.TurnEnded(turn=turn) if turn in self.asked:
                self.asked.discard(turn)
                return self._hook_of(body)
        return ()

    def _say(self, body: ev.Spoke) -> None:
        """A message as if it were streamed just now: its deltas went to its owner's clients."""
        turn = body.turn
        self.emit(ev.StepBegan(turn, body.step))
        self.emit(ev.StreamOpened(turn, body.step))
        for block in body.content:
            if isinstance(block, Text):
                self.stream(ev.TextDelta, turn, block.text, body.step)
            elif isinstance(block, Thinking):
                self.stream(ev.ThoughtDelta, turn, block.text, body.step)
            elif isinstance(block, ToolCall):
                args = block.raw or words.encode(block.args or {}).decode()
                self.emit(ev.CallDrafted(turn, block.id, block.name))
                self.stream(ev.CallArgs, turn, args, block.id)
                self.emit(ev.CallReady(turn, block.id))


class FarInbox(Inbox):
    """What this node's clients want done, as far as it was not begun; the owner has the inbox."""

    __slots__ = ("_asking", "_way")

    _ledger: FarLedger

    def __init__(self, ledger: FarLedger, asks: Asks) -> None:
        super().__init__(ledger, asks)
        self._asking: set[asyncio.Task[Any]] = set()  # what its owner does not have yet
        self._way = ledger.way
        self.gear_made = FarGear(ledger)

    @property
    def busy(self) -> bool:
        return bool(self._ledger.state.turn or self.waiting)

    @property
    def next(self) -> Work | None:
        """What was sent from here and begins there."""
        return None if self._ledger.turn is not None or not self.waiting else self.waiting[0]

    def put(self, work: Work, *, limit: int, wait: float | None, keep: bool = False) -> None:
        if self._ledger.closing:
            raise Busy(f"Session {self._ledger.id} is closing.", "Open it again, then send it.")
        absent = self._way.absence(self._ledger.id)
        if absent is not None:
            raise absent
        if len(self.waiting) + bool(self._ledger.state.turn) >= limit:
            raise Busy(
                f"Session busy: queue full ({limit} pending requests)",
                "Wait for a turn to end, or cancel it.",
            )
        self.last_used = self._ledger.home.clock.monotonic()
        self.waiting += (work,)
        if work.kind == "prompt":
            self._ledger.asked.add(work.turn)
        work.started.add_done_callback(lambda _: self._started(work))
        self._way.await_turn(self._ledger.id, self._ledger.state.seq, work)
        self._ledger.home.spawn(self._send(work, limit, wait))

    def _started(self, work: Work) -> None:
        self.remove(work)
        if work.started.exception() is not None:
            self._ledger.asked.discard(work.turn)

    async def _send(self, work: Work, limit: int, wait: float | None) -> None:
        command = words.Prompt(
            work.turn, work.content, work.by, work.key, work.metadata, limit, wait,
            compacts=work.kind == "compact",
        )  # fmt: skip
        try:
            id = await self._way.put_down(self._ledger.id, command)
            outcome = asyncio.ensure_future(self._way.outcome(self._ledger.id, id))
            outcome.add_done_callback(lambda done: done.cancelled() or done.exception())  # heard
            if work.stopped is not None:
                cause, interrupt = work.stopped
                await self._way.put_down(self._ledger.id, words.Cancel(work.turn, cause, interrupt))
            if work.key:  # its owner may have it already, from elsewhere, and then says so
                await asyncio.wait({outcome}, timeout=SOON)
            if not outcome.done() or outcome.exception() is None:
                work.keep()  # it is stored: no node can lose it
            result = await outcome
            if work.kind == "compact":
                work.finish(Finished(result.turn, "completed", "end_turn"))
        except Fault as fault:
            work.fail(fault)

    async def steer(self, content: Prompt, by: Who | None, handled: str = "") -> str:
        result = await self._ledger.ask(words.Steer(tuple(content), by))
        return result.turn or self._ledger.state.turn

    def cancel(self, cause: str = "client", *, interrupt: bool = False) -> str:
        turn = self._turn()
        if not turn:
            raise NothingRunning(
                "No active turn for this session", status=self._ledger.state.status
            )
        self._ask(self._stop(cause, interrupt))
        return turn

    def _ask(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._ledger.home.spawn(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def kept(self) -> None:
        """Wait until the owner has done what it was asked. Raises what it says against it."""
        for task in tuple(self._asking):
            await asyncio.shield(task)
        await self._ledger.told()

    async def _stop(self, cause: str, interrupt: bool) -> None:
        await self._way.catch_up(self._ledger.id)  # what runs now is meant
        if turn := self._turn():
            if self.waiting and self.waiting[0].turn == turn:
                self.waiting[0].stopped = (cause, interrupt)  # so that its end is no failure
            await self._way.ask(self._ledger.id, words.Cancel(turn, cause, interrupt))

    def _turn(self) -> str:
        return self._ledger.state.turn or (self.waiting[0].turn if self.waiting else "")

    def retract(self, key: str) -> str:
        turn = self.taken(key) if key else ""
        if not turn:
            raise NothingRunning("That prompt neither waits nor runs.")
        self._ask(self._way.ask(self._ledger.id, words.Retract(key)))
        return turn

    def leave_waiting(self) -> None:
        """This node stops: what was put down runs all the same."""
        for work in self.waiting:
            text = "This node is shutting down: the prompt is kept and runs on another one."
            work.fail(Busy(text, "Do not send it again."))

    def fail_waiting(self, error: Fault) -> None:
        for work in self.waiting:
            work.fail(error)

    def go_on(self) -> None:
        """The owner does."""

    def let_down(self) -> None:
        """What was put down runs all the same."""

    async def over(self) -> None:
        turn = self._turn()
        await self._until(lambda: self._turn() != turn)

    async def idle(self) -> None:
        await self._until(lambda: not self.busy)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so() and self._ledger.home.is_live(self._ledger):
            await self._way.catch_up(self._ledger.id)
            if not is_so():
                await asyncio.sleep(0.1)  # the log is read that often, nobody tells of rest


class FarAsks(Asks):
    """The open questions, which only the owner settles: the first answer wins there."""

    __slots__ = ()

    _ledger: FarLedger

    async def answer(self, reply: AskReply, handled: str = "") -> Settled:
        command = words.Answer(*msgspec.structs.astuple(reply))
        result = await self._ledger.ask(command)
        if result.settled is not None:
            return result.settled
        row = await self._ledger.home.store.ask(reply.ask_id)  # stored, and its owner died
        assert row is not None and row.settled is not None
        return row.settled

    async def put(self, ask: Ask) -> None:
        await self._ledger.ask(words.Question(ask))


class FarGear(Gear):
    """What a client of this node lends cannot be used on another."""

    __slots__ = ()

    _ledger: FarLedger

    def configure(self) -> None:
        """What works is with the owner."""
        self.roots = ()

    async def equip(self, *, anew: bool = False) -> None:
        if self.servers:
            await self._ledger.way.ask(self._ledger.id, words.Equip([*self.servers]))


class Mirror(Session):
    """The session itself."""

    __slots__ = ()

    ledger: FarLedger

    own = False

    def __init__(self, home: Home, state: State, hub: Hub | None, way: Way) -> None:
        self.id = state.id
        self.ledger = FarLedger(home, state, hub, way)
        self.asks = FarAsks(self.ledger)
        self.inbox = FarInbox(self.ledger, self.asks)

    @property
    def spare(self) -> bool:
        ledger = self.ledger
        return not (self.inbox.waiting or ledger.asked or ledger.closing or ledger.watches)

    async def checkpoints(self) -> Sequence[Checkpoint]:
        return (await self.ledger.way.ask(self.id, words.Checkpoints())).checkpoints

    async def undo(self, turn: str | None, by: Who | None, handled: str = "") -> Restored:
        result = await self.ledger.ask(words.Undo(turn, by))
        assert result.restored is not None
        return result.restored

    async def erase(self, by: Who | None) -> bool:
        """Have its owner remove it; an owner that is gone cannot, so that it is removed here."""
        try:
            await self.ledger.way.ask(self.id, words.Delete(by))
        except UnknownSession:
            return True  # with the session goes the command
        except InUse:
            return False
        return True
