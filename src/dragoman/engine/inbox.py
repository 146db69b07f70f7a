"""The work of one session, one piece after the other: its inbox, and the life of a turn.

Work (turns, compactions) waits in a bounded inbox; a task exists only while there is some, so an
idle session is a small object and nothing else.
"""

import asyncio
from collections.abc import Sequence

from . import ending
from . import events as ev
from .asks import Asks
from .calls import Calls
from .content import Prompt, text_of
from .ending import Noting, left
from .events import Who
from .faults import Busy, Fault, GoesOn, NothingRunning, WrongState, stopping, taken_over
from .gear import Gear
from .hooks import Completed, Starting
from .ids import token
from .ledger import Ledger
from .opening import check_worktree
from .ports import TurnResult
from .turn import Turn
from .work import Finished, Underway, Work

UNWIND_SECONDS = 5.0
_MOST_STEERS = 32
OWN = "own"  # `knows` of a shape that does not tell a client what it said itself


class Inbox:
    """What a session is to do, and what it does."""

    __slots__ = ("_asks", "_doing", "_ledger", "gear_made", "last_used", "task", "waiting")

    def __init__(self, ledger: Ledger, asks: Asks) -> None:
        self._ledger = ledger
        self._asks = asks
        self.gear_made: Gear | None = None  # once it was needed
        # Short: it is bounded. Replaced, never changed in place: most sessions share the empty one.
        self.waiting: tuple[Work, ...] = ()
        self.task: asyncio.Task[None] | None = None
        self._doing: Work | None = None
        self.last_used = ledger.home.clock.monotonic()

    @property
    def gear(self) -> Gear:
        """What the session works with, made when it is first needed: most sessions only wait."""
        if self.gear_made is None:
            self.gear_made = Gear(self._ledger)
        return self.gear_made

    @property
    def busy(self) -> bool:
        """Something runs, or waits for a human: the same before and after a restart."""
        return self._ledger.turn is not None or self.task is not None or self._left

    @property
    def _left(self) -> bool:
        """A turn waits for an answer since before a restart, and nothing of it runs.

        So it is until it is taken up again: nothing slips in while the answer is being stored.
        """
        ledger, asks = self._ledger, self._asks
        if ledger.turn is not None:
            return False
        state = ledger.state
        return bool(asks.freeing or state.asks and asks.of(state.turn))

    @property
    def next(self) -> Work | None:
        """What begins in a moment; none while something runs, or waits for a human."""
        begins = self._ledger.turn is None and self.task is not None
        return self.waiting[0] if begins and self.waiting else None

    # --- what waits ---

    def put(self, work: Work, *, limit: int, wait: float | None, keep: bool = False) -> None:
        """Put work in the inbox. With `wait`, it is given up when it has not begun by then.

        At most `limit` may wait, and never more than the host allows. What is to be kept is
        stored while it waits; `work.kept` tells when.
        """
        ledger = self._ledger
        if ledger.home.stopping:
            raise stopping()
        if ledger.closing:
            raise Busy(f"Session {ledger.id} is closing.", "Open it again, then send the prompt.")
        taken = ledger.turn is not None or self._left
        waiting = len(self.waiting) + taken
        limit = min(limit, ledger.home.max_inbox)
        if waiting >= limit:
            raise Busy(
                f"{limit} prompts wait in this session already.",
                "Wait for a turn to end, or cancel it.",
                waiting=limit,
            )
        if taken or self.task is not None:
            if wait is not None:
                loop = asyncio.get_running_loop()
                work.timer = loop.call_later(wait, self._give_up, work)
            if keep:
                self._store(work)
        self.waiting += (work,)
        self.last_used = ledger.home.clock.monotonic()
        self.go_on()

    def resume(self) -> None:
        """Go on with the turn that was left, before all that waits; it may be ended meanwhile."""
        if turn := self._ledger.state.turn:
            self.waiting = (Work("resume", turn), *self.waiting)
        self.go_on()

    def restore(self) -> None:
        """Take up what was acknowledged before this process had the session."""
        for one in self._ledger.state.queued.values():
            if not one.steers:
                work = Work("prompt", one.id, one.content, one.by, one.key, one.metadata)
                work.stored = True
                self.waiting += (work,)
        self.go_on()

    def go_on(self) -> None:
        """Begin with what waits, unless something runs or a human is to be waited for."""
        ledger = self._ledger
        if not self.waiting or self.task is not None or ledger.closing or ledger.home.stopping:
            return
        if self.waiting[0].kind == "resume" or not self._left:
            self.task = ledger.home.spawn(self._run())

    def _store(self, work: Work) -> None:
        work.stored = True
        ledger = self._ledger
        words: list[ev.Kept] = [
            ev.Queued(work.turn, work.content, work.by, work.key, work.metadata)
        ]
        status = ledger.state.status
        if status not in ev.ACTIVE:  # the turn before it has just ended
            words.append(ev.StatusChanged(status, "starting"))
        ledger.put(*words).add_done_callback(lambda done: self._stored(work, done))

    def _stored(self, work: Work, done: "asyncio.Future[None]") -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            work.keep()
            return
        self.remove(work)
        work.fail(error)

    def _drop(self, work: Work, reason: str, outcome: ev.Outcome = "cancelled") -> None:
        """Tell everybody that something acknowledged will not run."""
        ledger = self._ledger
        if not work.stored or work.turn not in ledger.state.queued:
            return
        words: list[ev.Kept] = [ev.Dropped(work.turn, reason)]
        others = (one for one in ledger.state.queued.values() if one.id != work.turn)
        if ledger.state.status == "starting" and all(one.steers for one in others):
            words.append(ev.StatusChanged("starting", "idle"))  # it was all there was to start
        data = Completed(outcome=outcome, text="", error=reason)

        def stored(done: "asyncio.Future[None]") -> None:
            ledger.unheard(done)
            if not done.cancelled() and done.exception() is None:  # else it runs after a start
                ledger.home.hooks.tell_of("agent_completed", data, ledger.state, work.turn)

        ledger.put(*words).add_done_callback(stored)

    def taken(self, key: str) -> str:
        """The turn of the prompt that came with this key, begun or waiting; empty: none."""
        for work in self.waiting:
            if work.key == key:
                return work.turn
        return self._ledger.state.keys.get(key, "")

    def _give_up(self, work: Work) -> None:
        if work in self.waiting:
            self.remove(work)
            error = Busy(
                f"Session {self._ledger.id} was busy for too long.", gave_up=self._ledger.id
            )
            self._drop(work, str(error))
            work.fail(error)

    def remove(self, work: Work) -> None:
        """Have it wait no longer, without a word."""
        self.waiting = tuple(other for other in self.waiting if other is not work)

    def fail_waiting(self, error: Fault) -> None:
        """Nothing that waits will run: say so to whoever sent it, and to everybody else."""
        while self.waiting:
            work, self.waiting = self.waiting[0], self.waiting[1:]
            self._drop(work, str(error))
            work.fail(error)

    def leave_waiting(self) -> None:
        """The host stops: what was acknowledged runs when it is back, the rest is refused."""
        while self.waiting:
            work, self.waiting = self.waiting[0], self.waiting[1:]
            if work.stored:
                work.fail(_goes_on(work, "is kept and runs"))
            else:
                work.fail(stopping())

    def let_down(self) -> None:
        """The session was let go: if it is lost, tell what waits, unless the task does that."""
        while self._ledger.lost and self.task is None and self.waiting:
            work, self.waiting = self.waiting[0], self.waiting[1:]
            if not self._goes_on_elsewhere(work):
                work.fail(taken_over(self._ledger.id))

    def _goes_on_elsewhere(self, work: Work) -> bool:
        ledger = self._ledger
        return ledger.lost and ledger.home.losses.follow(ledger.id, ledger.seen, work)

    async def idle(self) -> None:
        """Wait until nothing runs and nothing waits."""
        while self.task is not None:
            await asyncio.wait({self.task})

    async def over(self) -> None:
        """Wait until what is done now has ended, whatever waits behind it."""
        work = self._doing or self.next
        if work is not None:
            await asyncio.wait({work.done})

    # --- one turn ---

    async def _run(self) -> None:
        ledger = self._ledger
        own = asyncio.current_task()
        assert own is not None
        try:
            while self.waiting:
                if own.cancelling():  # the turn unwound and took the cancellation with it
                    self.leave_waiting()
                    break
                work, self.waiting = self.waiting[0], self.waiting[1:]
                if work.done.done():
                    continue
                self._doing = work
                try:
                    await self._do(work)
                except asyncio.CancelledError:
                    if ledger.state.turn == work.turn:  # it waits for a human, in the store
                        work.fail(_goes_on(work, "waits for an answer and goes on"))
                    else:
                        work.fail(stopping())
                    raise
                except Exception as error:
                    ledger.turn = None
                    if self._goes_on_elsewhere(work):
                        continue
                    if not isinstance(error, Fault):
                        ledger.home.trouble("turn broke", error, session=ledger.id)
                    self._drop(work, str(error), "failed")
                    work.fail(error)
                if self._left:  # it broke off, and a human is to be waited for again
                    break
        finally:
            self.task = self._doing = None
            self.last_used = ledger.home.clock.monotonic()

    async def _do(self, work: Work) -> None:
        ledger = self._ledger
        turn = ledger.turn = Underway(work.turn, work.metadata, work.by)
        if work.stopped is not None:
            turn.cancelled = True
            turn.cause, turn.interrupted = work.stopped
        state = ledger.state
        try:
            if work.kind == "resume":
                if state.turn != work.turn:
                    raise WrongState(f"Turn {work.turn} is over.", status=state.status)
            elif state.turn:  # its end could not be stored
                await ledger.put(*self.closing_words("superseded"))
                state = ledger.state
            if state.queued:
                taken = {one.queued for one in turn.steer}  # it came while the last one was ended
                unsaid = ending.unsaid(state, turn.id)
                turn.steer = [*(one for one in unsaid if one.queued not in taken), *turn.steer]
            admitted: asyncio.Future[None] | None = None
            first: list[ev.Kept] = []
            if work.kind == "prompt":
                first.append(ev.TurnBegan(turn.id, work.content, work.by, work.key, work.metadata))
            if state.status != "running":
                first.append(ev.StatusChanged(state.status, "running"))
            if first:
                early = self._may_begin(work)
                admitted = ledger.put(*first, patient=early)
                if early:
                    ledger.hub.early = True
                    self._launch(turn, work.kind)
                    admitted.add_done_callback(lambda done: self._admitted(turn, work, done))
                else:
                    await admitted
            if turn.task is None:
                self._begun(turn, work)
                self._launch(turn, work.kind)
            noting = Noting(ledger, turn)
            try:
                result = await self._supervise(turn)
            finally:
                noting.end()
            lost = turn.closed or ledger.state is not state
            if admitted is not None and (lost or admitted.done()):
                await admitted  # raises when the turn could not even begin
            finished = await self._conclude(turn, work.kind, result)
        finally:
            turn.closed = True
            ledger.turn = None
        if work.kind == "compact":  # which no fact ends
            data = Completed(outcome=finished.outcome, text=finished.text, error=finished.error)
            ledger.home.hooks.tell_of("agent_completed", data, ledger.state, turn.id)
        work.finish(finished)

    def _may_begin(self, work: Work) -> bool:
        """Whether the agent may begin while its prompt is still being committed.

        The first words come after 106 µs instead of 251 (decision 0073).
        Nothing that acts goes before the commit, since every fact waits for those before it (a
        hosted agent acts by itself, so it waits); but text may. So nobody must be there who is
        first to be told of the prompt.
        """
        home = self._ledger.home
        if work.kind != "prompt" or work.by is None or home.hub.watches:
            return False
        if self.gear.profile().backend != "builtin" or home.hooks.told("agent_starting"):
            return False
        by = work.by
        hub = self._ledger.watched
        for watch in hub.watches if hub is not None else ():
            knows = getattr(watch.shape, "knows", None)
            if knows != by.dialect and not (knows == OWN and watch.who.id == by.id):
                return False
        return True

    def _admitted(self, turn: Underway, work: Work, admitted: "asyncio.Future[None]") -> None:
        """The beginning of a turn that runs already is committed; if it cannot be, there is none.

        Then nothing after it can be committed either, so that its end will tell what is wrong.
        """
        self._ledger.hub.settle()
        if admitted.cancelled() or admitted.exception() is not None:
            turn.closed = True
            self._unwind(turn)
        else:
            self._begun(turn, work)

    def _begun(self, turn: Underway, work: Work) -> None:
        if work.kind == "prompt":
            ledger = self._ledger
            data = Starting(prompt=text_of(work.content))
            ledger.home.hooks.tell_of("agent_starting", data, ledger.state, turn.id)
        work.begin()

    def _launch(self, turn: Underway, kind: str) -> None:
        """Run the agent in a task of its own, so that it can be cancelled and, if need be, left."""
        loop = asyncio.get_running_loop()
        turn.task = loop.create_task(self._take(turn, kind))
        turn.left = left = loop.create_future()
        turn.task.add_done_callback(lambda _: None if left.done() else left.set_result(None))

    async def _supervise(self, turn: Underway) -> TurnResult | BaseException:
        """Wait for the agent; when it can be neither awaited nor cancelled, leave it."""
        home = self._ledger.home
        task, left = turn.task, turn.left
        assert task is not None and left is not None
        try:
            await left
        except asyncio.CancelledError:  # the host stops: unwind the turn, then go
            turn.cancelled, turn.cause = True, turn.cause or "shutdown"
            task.cancel()
            await asyncio.wait({task}, timeout=UNWIND_SECONDS)
        if not task.done():  # it ignores that it was cancelled: go on without it
            turn.closed = True
            home.trouble("turn did not unwind", TimeoutError(), session=self._ledger.id)
            home.spawn(task)
            return asyncio.CancelledError()
        if task.cancelled():
            return asyncio.CancelledError()
        return task.exception() or task.result()

    async def _take(self, turn: Underway, kind: str) -> TurnResult:
        if turn.cancelled:
            raise asyncio.CancelledError
        gear = self.gear
        if gear.toolbox is None:
            await gear.equip()
        calls = Calls(self._ledger, self._asks, gear, turn, gear.profile())
        if kind == "compact":
            await gear.agent.compact(Turn(calls))
            return TurnResult()
        said = self._ledger.state.messages[-1:]
        if kind == "prompt" and said and text_of(said[0].content).startswith(("/undo", "/redo")):
            from .undoing import answered, words_of

            own = words_of(self._ledger.state)
            if own is not None:
                return await answered(Turn(calls), self._ledger.home, *own)
        check_worktree(self._ledger.state.extra)  # it may have ended since
        return await gear.agent.run(Turn(calls))

    async def _conclude(
        self, turn: Underway, kind: str, result: TurnResult | BaseException
    ) -> Finished:
        """Write how the turn ended and what the session is now."""
        ledger = self._ledger
        state = ledger.state
        outcome, stop, error = ending.verdict(turn, result)
        if isinstance(result, Exception) and not isinstance(result, Fault):
            ledger.home.trouble("agent broke", result, session=ledger.id)
        tail, turn.tail = turn.tail, []
        if not turn.spoken:
            tail += left(turn, state.model)
        said, turn.steer = turn.steer, []  # taken, but no step came to see it: the next turn will
        bodies = tail
        if state.asks:
            bodies = [*bodies, *self._asks.withdraw(turn.id)]
        if state.journal:
            bodies = [*bodies, *ending.unfinished(state, turn.id)]
        bodies = [*bodies, *said]
        cause = turn.cause if turn.cancelled and outcome in ("cancelled", "interrupted") else ""
        text = ""
        if kind != "compact":
            text = ending.last_text(state, tail)
            fault = ending.sort(result) if outcome == "failed" else ""
            bodies.append(ev.TurnEnded(turn.id, outcome, stop, text, error, cause, fault))
        bodies += ending.rests(state, ending.rest(state, outcome, kind), cause or error)
        if bodies:
            await ledger.put(*bodies)
        return Finished(turn.id, outcome, stop, text, error, cause)

    def closing_words(self, cause: str, said: Sequence[ev.Kept] = ()) -> list[ev.Kept]:
        """The facts that end a turn whose task is gone (restart, takeover); after what it said."""
        state = self._ledger.state
        return ending.cut_off(state, self._asks.withdraw(state.turn), cause, said=said)

    # --- stopping, and speaking into a turn ---

    def cancel(self, cause: str = "client", *, interrupt: bool = False) -> str:
        """Stop the running turn; returns its id. The turn ends by itself soon after."""
        turn = self._ledger.turn
        if turn is None:
            return self._cancel_ahead(cause, interrupt)
        if not turn.cancelled:
            turn.cancelled = True
            turn.interrupted = interrupt
            turn.cause = cause
            self._stop_asking(turn, cause)
            self._unwind(turn)
        return turn.id

    def _stop_asking(self, turn: Underway, cause: str) -> None:
        """Have the store know that the turn is stopped, if it would go on after a crash."""
        ledger = self._ledger
        words = self._asks.withdraw(turn.id)
        if ledger.home.node and ledger.state.status == "running":  # another node would go on
            words.append(ev.StatusChanged("running", "interrupting", cause))
        if words and not ledger.parked:
            ledger.put(*words).add_done_callback(ledger.unheard)

    def _cancel_ahead(self, cause: str, interrupt: bool) -> str:
        """Stop what was asked for and has not begun, or what waits since before a restart."""
        if self.waiting and not self._left:
            return self.stop(self.waiting[0], cause, interrupt=interrupt)
        ledger = self._ledger
        state = ledger.state
        if not state.turn:
            raise NothingRunning("No turn runs in this session.", status=state.status)
        turn_id = state.turn
        outcome: ev.Outcome = "interrupted" if interrupt else "cancelled"
        words = ending.cut_off(state, self._asks.withdraw(turn_id), cause, outcome)
        rest = ending.rest(state, outcome, "prompt")
        words += ending.rests(state, rest, cause)
        ledger.put(*words).add_done_callback(ledger.unheard)
        self.go_on()
        return turn_id

    def stop(self, work: Work, cause: str, *, interrupt: bool) -> str:
        """Stop what waits; what is in the store would run after a crash, so it goes from there."""
        if not work.stored:
            work.stopped = work.stopped or (cause, interrupt)
        elif work in self.waiting:
            outcome: ev.Outcome = "interrupted" if interrupt else "cancelled"
            self._take_out(
                work, "It was cancelled.", Finished(work.turn, outcome, "aborted", cause=cause)
            )
        return work.turn

    async def kept(self) -> None:
        """Wait until all that was done to the session is stored."""
        await self._ledger.told()

    def _take_out(self, work: Work, why: str, finished: Finished) -> None:
        self.remove(work)
        self._drop(work, why, finished.outcome)
        work.finish(finished)

    def retract(self, key: str) -> str:
        """Take a prompt back: out of the inbox, or by stopping its turn. Raises NothingRunning."""
        turn = self._ledger.turn
        if turn is not None and self._ledger.state.keys.get(key) == turn.id:
            return self.cancel()
        for work in self.waiting:
            if key and work.key == key:
                finished = Finished(work.turn, "cancelled", "aborted", cause="client")
                self._take_out(work, "It was taken back.", finished)
                return work.turn
        raise NothingRunning("That prompt neither waits nor runs.")

    def _unwind(self, turn: Underway) -> None:
        if turn.task is not None:
            turn.task.cancel()
            loop = asyncio.get_running_loop()
            loop.call_later(UNWIND_SECONDS, self._abandon, turn, False)

    def _abandon(self, turn: Underway, last: bool) -> None:
        """An agent or tool swallowed its cancellation: cancel once more, then leave it."""
        if self._ledger.turn is not turn or turn.task is None or turn.task.done():
            return
        if not last:
            turn.task.cancel()
            loop = asyncio.get_running_loop()
            loop.call_later(UNWIND_SECONDS, self._abandon, turn, True)
        elif turn.left is not None and not turn.left.done():
            turn.left.set_result(None)

    async def steer(self, content: Prompt, by: Who | None, handled: str = "") -> str:
        """Say something into the turn; returns the turn's id when that is stored."""
        ledger = self._ledger
        turn, state = ledger.turn, ledger.state
        over = turn is not None and turn.task is not None and turn.task.done()
        ahead = self.next  # it takes up what was said before it began
        if over or turn is None and ahead is None and not self._left:
            raise NothingRunning("No turn runs in this session.", "Send it as a prompt instead.")
        if sum(one.steers for one in state.queued.values()) >= _MOST_STEERS:
            raise Busy("Too many messages wait for the running turn already.")
        queued = ev.Queued(f"str_{token()}", content, by, steers=True)
        stored = ledger.put(queued, handled=handled)
        id = state.turn if ahead is None else ahead.turn
        if turn is not None:
            id = turn.id
            turn.steer.append(ev.Steered(id, content, by, queued.id))
        await asyncio.shield(stored)
        return id


def _goes_on(work: Work, how: str) -> GoesOn:
    text = f"The host is shutting down: this prompt {how} when it is back."
    return GoesOn(text, "Do not send it again; look at the session then.", turn=work.turn)
