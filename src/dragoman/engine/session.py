"""One session and its one writer.

All changes go through `append`: the fold takes them in, the store commits them, then they are told
to the watchers, in that order and in one line however many coroutines append at once. Work (turns,
compactions) waits in a bounded inbox; a task exists only while there is some, so an idle session is
a small object and nothing else.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

import msgspec

from . import ending
from . import events as ev
from .asking import Asking
from .content import Prompt, ToolCall, text_of
from .events import Event, Who
from .faults import Busy, Fault, NothingRunning, WrongState
from .hooks import Block, HookContext
from .ports import (
    Agent,
    AgentProfile,
    Files,
    Policy,
    Terminals,
    Toolbox,
    TurnResult,
)
from .state import State
from .turn import Turn
from .watch import Hub
from .work import Finished, Work, take_back

if TYPE_CHECKING:
    from .host import Host

_UNWIND_SECONDS = 5.0
_OVERRIDES = (
    "system_prompt",
    "append_system_prompt",
    "tools",
    "max_steps",
    "approval_timeout",
    "temperature",
    "memory",
    "context_files",
    "auto_compact",
)


class Session(Asking):
    """A live session. Made by the host, driven through the door."""

    __slots__ = (
        "_equipping", "_profile", "_task", "agent", "closing", "epoch", "files", "host", "hub",
        "id", "inbox", "last_used", "policy", "roots", "servers", "state", "terminals", "toolbox", "turn",
        "vision",
    )  # fmt: skip

    def __init__(self, host: "Host", state: State, epoch: int, hub: Hub | None = None) -> None:
        super().__init__()
        self.host = host
        self.id = state.id
        self.state = state
        self.epoch = epoch
        self.hub = hub or Hub(state.id, self._read, host.spawn, trouble=host._told_trouble)
        self.hub.serve(self._read, self.draft, self._presence, state.seq)
        self.inbox: deque[Work] = deque()
        self.turn: Turn | None = None
        self.toolbox: Toolbox | None = None
        # MCP servers that a client gave. Not kept with the session: they may carry secrets.
        self.servers: Sequence[dict[str, Any]] = ()
        self._equipping: asyncio.Lock | None = None
        self.files: Files | None = None
        self.terminals: Terminals | None = None
        self._profile: tuple[tuple[Any, ...], AgentProfile] | None = None  # and what made it
        self.closing = False
        self.vision = False
        self.last_used = host.clock.monotonic()
        self._task: asyncio.Task[None] | None = None
        self.configure()

    def configure(self) -> None:
        """Take the agent's parts from the configuration as it is now."""
        profile = self.profile()
        self.policy: Policy = self.host.agents.policy(profile)
        self.agent: Agent = self.host.agents.backend(profile)
        self.roots: Sequence[str] = tuple(self.state.extra.get("roots") or ())

    def profile(self) -> AgentProfile:
        """The agent's profile with what this session was opened with on top."""
        profile = self.host.agents.profile(self.state.agent)
        state = self.state
        made = self._profile
        source = (profile, state.model, state.reasoning, state.extra)
        if made is not None and all(map(is_, made[0], source)):
            return made[1]
        given = {
            key: self.state.extra[key]
            for key in _OVERRIDES
            if self.state.extra.get(key) is not None
        }
        for key in ("append_system_prompt", "tools"):
            if key in given:
                given[key] = tuple(given[key])
        if self.state.reasoning:
            given["reasoning"] = self.state.reasoning
        own = profile
        if given or profile.model != state.model:
            own = msgspec.structs.replace(profile, model=state.model, **given)
        self._profile = (source, own)
        return own

    def draft(self) -> Sequence[Event]:
        turn = self.turn
        return turn.draft.events(self.id, turn.id, self.host.clock.now_ms()) if turn else ()

    async def _read(self, after: int, limit: int) -> Sequence[Event]:
        return await self.host.read(self.id, after, limit)

    def _presence(self) -> None:
        if self.host.live.get(self.id) is self:
            self.emit(ev.Presence(self.present()))
        elif not self.hub.watches:
            self.host.unwatched(self)

    def present(self) -> tuple[Who, ...]:
        return tuple(dict.fromkeys(watch.who for watch in self.hub.watches))

    # --- hooks ---

    def _hook_context(self, turn: str) -> HookContext:
        state = self.state
        extra = state.extra
        return HookContext(
            agent=state.agent,
            session=self.id,
            key=str(extra.get("key") or self.id),
            channel=str(extra.get("channel") or ""),
            account=str(extra.get("account") or ""),
            turn=turn,
        )

    def tell(self, hook: str, data: dict[str, Any], turn: str = "") -> None:
        hooks = self.host.hooks
        if hooks.observed(hook):
            hooks.tell(hook, data, self._hook_context(turn))

    async def run_hook(self, hook: str, data: dict[str, Any], turn: str) -> dict[str, Any] | Block:
        return await self.host.hooks.run(hook, data, self._hook_context(turn))

    # --- work ---

    @property
    def busy(self) -> bool:
        return self.turn is not None or self._task is not None

    def enqueue(self, work: Work, *, limit: int, wait: float | None) -> None:
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

    def taken(self, key: str) -> str:
        """The turn of the prompt that came with this key, begun or waiting; empty: none."""
        for work in self.inbox:
            if work.key == key:
                return work.turn
        return self.state.keys.get(key, "")

    def _give_up(self, work: Work) -> None:
        if work in self.inbox:
            self.inbox.remove(work)
            work.fail(Busy(f"Session busy: Timed out waiting for session {self.id}"))

    async def _run(self) -> None:
        try:
            while self.inbox:
                work = self.inbox.popleft()
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

    async def _do(self, work: Work) -> None:
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
            running = ev.StatusChanged(state.status, "running")
            if work.kind == "prompt":
                began = ev.TurnBegan(turn.id, work.content, work.by, work.key, work.metadata)
                await self.append(began, *([running] if state.status != "running" else []))
                self.tell("agent_starting", {"prompt": text_of(work.content)}, turn.id)
            elif state.status != "running":
                await self.append(running)
            work.begin()
            result = await self._supervise(turn, work.kind)
            finished = await self._conclude(turn, work.kind, result)
        finally:
            turn.closed = True
            self.turn = None
        data = {"outcome": finished.outcome, "text": finished.text, "error": finished.error}
        self.tell("agent_completed", data, turn.id)
        work.finish(finished)

    async def _supervise(self, turn: Turn, kind: str) -> TurnResult | BaseException:
        """Run the agent in a task of its own, so that it can be cancelled and, if need be, left."""
        loop = asyncio.get_running_loop()
        turn.task = task = loop.create_task(self._take(turn, kind))
        turn.left = left = loop.create_future()
        task.add_done_callback(lambda _: _release(left))
        try:
            await left
        except asyncio.CancelledError:  # the host stops: unwind the turn, then go
            turn.cancelled, turn.cause = True, turn.cause or "shutdown"
            task.cancel()
            await asyncio.wait({task}, timeout=_UNWIND_SECONDS)
        if not task.done():  # it ignores that it was cancelled: go on without it
            turn.closed = True
            self.host.trouble("turn did not unwind", TimeoutError(), session=self.id)
            self.host.spawn(task)
            return asyncio.CancelledError()
        if task.cancelled():
            return asyncio.CancelledError()
        return task.exception() or task.result()

    async def _take(self, turn: Turn, kind: str) -> TurnResult:
        if turn.cancelled:
            raise asyncio.CancelledError
        await self.equip()
        if kind == "compact":
            await self.agent.compact(turn)
            return TurnResult()
        return await self.agent.run(turn)

    async def equip(self, *, anew: bool = False) -> None:
        """Make the session's tools, once; `anew` when it was given other MCP servers."""
        if self._equipping is None:
            self._equipping = asyncio.Lock()
        async with self._equipping:
            if anew and self.toolbox is not None and self.turn is None:
                toolbox, self.toolbox = self.toolbox, None
                await toolbox.close()
            if self.toolbox is not None or self.closing:
                return
            info = self.state.info()
            if self.servers:
                extra = {**info.extra, "mcp": [*info.extra.get("mcp", ()), *self.servers]}
                info = msgspec.structs.replace(info, extra=extra)
            self.toolbox = await self.host.agents.toolbox(self.profile(), info)

    async def _conclude(
        self, turn: Turn, kind: str, result: TurnResult | BaseException
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

    def closing_words(self, cause: str) -> list[ev.Kept]:
        """The facts that end a turn whose task is gone (restart, takeover)."""
        return ending.cut_off(self.state, self.withdraw(self.state.turn), cause)

    # --- stopping ---

    def cancel(self, cause: str = "client", *, interrupt: bool = False) -> str:
        """Stop the running turn; returns its id. The turn ends by itself soon after."""
        turn = self.turn
        if turn is None:
            return self._cancel_ahead(cause, interrupt)
        if not turn.cancelled:
            turn.cancelled = True
            turn.interrupted = interrupt
            turn.cause = cause
            if turn.task is not None:
                turn.task.cancel()
                loop = asyncio.get_running_loop()
                loop.call_later(_UNWIND_SECONDS, self._abandon, turn, False)
        return turn.id

    def _cancel_ahead(self, cause: str, interrupt: bool) -> str:
        """Stop what was asked for and has not begun, or what waits since before a restart."""
        if self.inbox:
            work = self.inbox[0]
            work.stopped = work.stopped or (cause, interrupt)
            return work.turn
        state = self.state
        if not state.turn:
            raise NothingRunning("No active turn for this session", status=state.status)
        turn_id = state.turn
        outcome: ev.Outcome = "interrupted" if interrupt else "cancelled"
        words = ending.cut_off(state, self.withdraw(turn_id), cause, outcome)
        rest = ending.rest(state, outcome, "prompt")
        words.append(ev.StatusChanged(state.status, rest, cause))
        self.put(*words).add_done_callback(self.unheard)
        return turn_id

    def retract(self, key: str) -> str:
        """Take a prompt back: out of the inbox, or by stopping its turn. Raises NothingRunning."""
        if self.turn is not None and self.state.keys.get(key) == self.turn.id:
            return self.cancel()
        return take_back(self.inbox, key)

    def _abandon(self, turn: Turn, last: bool) -> None:
        """An agent or tool swallowed its cancellation: cancel once more, then leave it."""
        if self.turn is not turn or turn.task is None or turn.task.done():
            return
        if not last:
            turn.task.cancel()
            loop = asyncio.get_running_loop()
            loop.call_later(_UNWIND_SECONDS, self._abandon, turn, True)
        elif turn.left is not None and not turn.left.done():
            turn.left.set_result(None)

    def steer(self, content: Prompt, by: Who | None) -> str:
        turn = self.turn
        if turn is None or turn.task is not None and turn.task.done():
            raise NothingRunning("No active turn for this session", "Send it as a prompt instead.")
        if len(turn.steer) >= 32:
            raise Busy("Too many messages wait for the running turn already.")
        turn.steer.append(ev.Steered(turn.id, content, by))
        return turn.id

    async def idle(self) -> None:
        """Wait until nothing runs and nothing waits."""
        while self._task is not None:
            await asyncio.wait({self._task})

    async def shut(self) -> None:
        """Free what the session holds; the session itself stays in the store."""
        self.closing = True
        self.stop_timers()
        if self.toolbox is not None:
            toolbox, self.toolbox = self.toolbox, None
            try:
                async with asyncio.timeout(_UNWIND_SECONDS):
                    await toolbox.close()
            except Exception as problem:  # a broken tool must not keep the session
                self.host.trouble("tools were not closed", problem, session=self.id)

    def park(self) -> None:
        """Leave a turn that waits for a human as it is: nothing more is written here."""
        self.parked = True
        if self.turn is not None:
            self.turn.closed = True
        if self._task is not None:
            self._task.cancel()

    def fail_waiting(self, error: Fault) -> None:
        while self.inbox:
            self.inbox.popleft().fail(error)

    def allows(self, call: ToolCall) -> bool:
        """Whether an earlier answer or a setting of the session already allows this call."""
        extra = self.state.extra
        if call.name in self.state.allowed:
            return True
        if extra.get("skip_permissions"):
            until = extra.get("skip_permissions_until")
            return until is None or self.host.clock.now_ms() < until
        return bool(extra.get("auto_accept_edits")) and call.name in ("write", "edit")


def _release(left: "asyncio.Future[None]") -> None:
    if not left.done():
        left.set_result(None)
