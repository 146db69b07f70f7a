"""The part of a session that does things: its inbox, and the life of a turn."""

import asyncio
from typing import TYPE_CHECKING

from . import ending
from . import events as ev
from .asking import Asking
from .content import text_of
from .faults import Busy, Fault, WrongState
from .ports import TurnResult
from .turn import Turn
from .work import Finished, Work

if TYPE_CHECKING:
    from .session import Session

UNWIND_SECONDS = 5.0


class Working(Asking):
    """Work of one session, one piece after the other. Base of `Session`."""

    __slots__ = ("_task", "inbox", "turn")

    def __init__(self) -> None:
        super().__init__()
        self.inbox: list[Work] = []  # short: it is bounded
        self.turn: Turn | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self.turn is not None or self._task is not None

    def enqueue(self: "Session", work: Work, *, limit: int, wait: float | None) -> None:  # type: ignore[misc]
        """Put work in the inbox. With `wait`, it is given up when it has not begun by then."""
        if self.closing:
            raise Busy(f"Session {self.id} is closing.", "Open it again, then send the prompt.")
        waiting = len(self.inbox) + (1 if self.turn is not None else 0)
        if waiting >= limit:
            raise Busy(
                f"Session busy: queue full ({limit} pending requests)",
                "Wait for a turn to end, or cancel it.",
            )
        if wait is not None and self.busy:
            loop = asyncio.get_running_loop()
            work.timer = loop.call_later(wait, self._give_up, work)
        self.inbox.append(work)
        self.last_used = self.host.clock.monotonic()
        if self._task is None:
            self._task = self.host.spawn(self._run())

    def taken(self: "Session", key: str) -> str:  # type: ignore[misc]
        """The turn of the prompt that came with this key, begun or waiting; empty: none."""
        for work in self.inbox:
            if work.key == key:
                return work.turn
        return self.state.keys.get(key, "")

    def _give_up(self: "Session", work: Work) -> None:  # type: ignore[misc]
        if work in self.inbox:
            self.inbox.remove(work)
            work.fail(Busy(f"Session busy: Timed out waiting for session {self.id}"))

    async def _run(self: "Session") -> None:  # type: ignore[misc]
        try:
            while self.inbox:
                work = self.inbox.pop(0)
                if work.done.done():
                    continue
                try:
                    await self._do(work)
                except asyncio.CancelledError:
                    work.fail(Busy("The host is shutting down.", "Connect again when it is back."))
                    raise
                except Exception as error:
                    self.turn = None
                    if not isinstance(error, Fault):
                        self.host.trouble("turn broke", error, session=self.id)
                    work.fail(error)
        finally:
            self._task = None
            self.last_used = self.host.clock.monotonic()

    async def _do(self: "Session", work: Work) -> None:  # type: ignore[misc]
        turn = Turn(self, work.turn, work.metadata)
        self.turn = turn
        if work.stopped is not None:
            turn.cancelled = True
            turn.cause, turn.interrupted = work.stopped
        state = self.state
        try:
            if work.kind == "resume":
                if state.turn != work.turn:
                    raise WrongState(f"Turn {work.turn} is over.", status=state.status)
            elif state.turn:  # left open by a restart, and now overtaken
                await self.append(*self.closing_words("superseded"))
                state = self.state
            admitted: asyncio.Future[None] | None = None
            first: list[ev.Kept] = []
            if work.kind == "prompt":
                first.append(ev.TurnBegan(turn.id, work.content, work.by, work.key, work.metadata))
            if state.status != "running":
                first.append(ev.StatusChanged(state.status, "running"))
            if first:
                early = self._may_begin(work)
                admitted = self.put(*first, patient=early)
                if early:
                    self.hub.early = True
                    self._launch(turn, work.kind)
                    admitted.add_done_callback(lambda done: self._admitted(turn, work, done))
                else:
                    await admitted
            if turn.task is None:
                self._begun(turn, work)
                self._launch(turn, work.kind)
            result = await self._supervise(turn)
            lost = turn.closed or self.state is not state
            if admitted is not None and (lost or admitted.done()):
                await admitted  # raises when the turn could not even begin
            finished = await self._conclude(turn, work.kind, result)
        finally:
            turn.closed = True
            self.turn = None
        data = {"outcome": finished.outcome, "text": finished.text, "error": finished.error}
        self.tell("agent_completed", data, turn.id)
        work.finish(finished)

    def _may_begin(self: "Session", work: Work) -> bool:  # type: ignore[misc]
        """Whether the agent may begin while its prompt is still being committed.

        Nothing that acts goes before the commit, since every fact waits for those before it (a
        hosted agent acts by itself, so it waits); but text may. So nobody must be there who is
        first to be told of the prompt.
        """
        if work.kind != "prompt" or work.by is None or self.host.hub.watches:
            return False
        if self.profile().backend != "builtin" or self.host.hooks.observed("agent_starting"):
            return False
        said = work.by.dialect
        return all(getattr(w.shape, "knows", None) == said for w in self.watches)

    def _admitted(  # type: ignore[misc]
        self: "Session", turn: Turn, work: Work, admitted: "asyncio.Future[None]"
    ) -> None:
        """The beginning of a turn that runs already is committed; if it cannot be, there is none.

        Then nothing after it can be committed either, so that its end will tell what is wrong.
        """
        self.hub.settle()
        if admitted.cancelled() or admitted.exception() is not None:
            turn.closed = True
            if turn.task is not None:
                turn.task.cancel()
                loop = asyncio.get_running_loop()
                loop.call_later(UNWIND_SECONDS, self._abandon, turn, False)
        else:
            self._begun(turn, work)

    def _begun(self: "Session", turn: Turn, work: Work) -> None:  # type: ignore[misc]
        if work.kind == "prompt":
            self.tell("agent_starting", {"prompt": text_of(work.content)}, turn.id)
        work.begin()

    def _launch(self: "Session", turn: Turn, kind: str) -> None:  # type: ignore[misc]
        """Run the agent in a task of its own, so that it can be cancelled and, if need be, left."""
        loop = asyncio.get_running_loop()
        turn.task = loop.create_task(self._take(turn, kind))
        turn.left = left = loop.create_future()
        turn.task.add_done_callback(lambda _: _release(left))

    async def _supervise(  # type: ignore[misc]
        self: "Session", turn: Turn
    ) -> TurnResult | BaseException:
        """Wait for the agent; when it can be neither awaited nor cancelled, leave it."""
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
            self.host.trouble("turn did not unwind", TimeoutError(), session=self.id)
            self.host.spawn(task)
            return asyncio.CancelledError()
        if task.cancelled():
            return asyncio.CancelledError()
        return task.exception() or task.result()

    async def _take(self: "Session", turn: Turn, kind: str) -> TurnResult:  # type: ignore[misc]
        if turn.cancelled:
            raise asyncio.CancelledError
        await self.equip()
        if kind == "compact":
            await self.agent.compact(turn)
            return TurnResult()
        return await self.agent.run(turn)

    async def _conclude(  # type: ignore[misc]
        self: "Session", turn: Turn, kind: str, result: TurnResult | BaseException
    ) -> Finished:
        """Write how the turn ended and what the session is now."""
        state = self.state
        outcome, stop, error = ending.verdict(turn, result)
        if isinstance(result, Exception) and not isinstance(result, Fault):
            self.host.trouble("agent broke", result, session=self.id)
        tail, turn.tail = turn.tail, []
        said, turn.steer = turn.steer, []  # taken, but no step came to see it: the next turn will
        bodies = [*tail, *ending.unfinished(state, turn.id), *self.withdraw(turn.id), *said]
        cause = turn.cause if turn.cancelled and outcome in ("cancelled", "interrupted") else ""
        text = ""
        if kind != "compact":
            text = ending.last_text(state, tail)
            bodies.append(ev.TurnEnded(turn.id, outcome, stop, text, error, cause))
        rest = ending.rest(state, outcome, kind)
        if rest != state.status:
            bodies.append(ev.StatusChanged(state.status, rest, cause or error))
        if bodies:
            await self.append(*bodies)
        return Finished(turn.id, outcome, stop, text, error, cause)

    def closing_words(self: "Session", cause: str) -> list[ev.Kept]:  # type: ignore[misc]
        """The facts that end a turn whose task is gone (restart, takeover)."""
        return ending.cut_off(self.state, self.withdraw(self.state.turn), cause)


def _release(left: "asyncio.Future[None]") -> None:
    if not left.done():
        left.set_result(None)
