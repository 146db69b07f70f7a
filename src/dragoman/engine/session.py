"""One session and its one writer.

All changes go through `append`: the fold takes them in, the store commits them, then they are told
to the watchers, in that order and in one line however many coroutines append at once. Work (turns,
compactions) waits in a bounded inbox; a task exists only while there is some, so an idle session is
a small object and nothing else.
"""

import asyncio
from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

import msgspec

from . import ending
from . import events as ev
from .content import Prompt, ToolCall
from .events import Event, Who
from .faults import Busy, Fault, NothingRunning
from .hooks import Block, HookContext
from .hub import Hub
from .ports import (
    Agent,
    AgentProfile,
    Files,
    Policy,
    Terminals,
    Toolbox,
)
from .state import State
from .turn import Turn
from .watch import Watch
from .work import take_back
from .working import UNWIND_SECONDS, Working

if TYPE_CHECKING:
    from .host import Host

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


class Session(Working):
    """A live session. Made by the host, driven through the door."""

    __slots__ = (
        "_equipping", "_hub", "_profile", "agent", "closing", "epoch", "files", "host", "id",
        "last_used", "policy", "roots", "seen", "servers", "state", "terminals", "toolbox",
        "vision",
    )  # fmt: skip

    def __init__(self, host: "Host", state: State, epoch: int, hub: Hub | None = None) -> None:
        super().__init__()
        self.host = host
        self.id = state.id
        self.state = state
        self.epoch = epoch
        self.seen = state.seq  # the newest fact that was told
        self._hub: Hub | None = None
        if hub is not None:
            self._serve(hub)
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
        if not (state.extra or state.reasoning) and profile.model == state.model:
            return profile
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

    @property
    def hub(self) -> Hub:
        """Where its events are watched; made for the first one who asks."""
        return self._hub or self._serve(
            Hub(self.id, self._read, self.host.spawn, trouble=self.host._told_trouble)
        )

    def _serve(self, hub: Hub) -> Hub:
        self._hub = hub
        hub.serve(self._read, self.draft, self._presence, self.seen)
        return hub

    def part(self) -> bool:
        """Let the hub go unless somebody watches; False: somebody does.

        The two hold each other: a session that is gone would stay in memory, with its history,
        until the garbage collector comes by.
        """
        if self.watches:
            return False
        self._hub = None
        return True

    @property
    def watches(self) -> Sequence[Watch]:
        """Those who watch it now."""
        return self._hub.watches if self._hub is not None else ()

    def draft(self) -> Sequence[Event]:
        turn = self.turn
        return turn.draft.events(self.id, turn.id, self.host.clock.now_ms()) if turn else ()

    async def _read(self, after: int, limit: int) -> Sequence[Event]:
        return await self.host.read(self.id, after, limit)

    def _presence(self) -> None:
        if self.host.live.get(self.id) is self:
            self.emit(ev.Presence(self.present()))
        elif not self.watches:
            self.host.unwatched(self)

    def present(self) -> tuple[Who, ...]:
        return tuple(dict.fromkeys(watch.who for watch in self.watches))

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

    # --- tools ---

    async def equip(self, *, anew: bool = False) -> None:
        """Make the session's tools, once; `anew` when it was given other MCP servers."""
        if self.toolbox is not None and not anew:
            return
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
                loop.call_later(UNWIND_SECONDS, self._abandon, turn, False)
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
            loop.call_later(UNWIND_SECONDS, self._abandon, turn, True)
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
                async with asyncio.timeout(UNWIND_SECONDS):
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
            self.inbox.pop(0).fail(error)

    def allows(self, call: ToolCall) -> bool:
        """Whether an earlier answer or a setting of the session already allows this call."""
        extra = self.state.extra
        if call.name in self.state.allowed:
            return True
        if extra.get("skip_permissions"):
            until = extra.get("skip_permissions_until")
            return until is None or self.host.clock.now_ms() < until
        return bool(extra.get("auto_accept_edits")) and call.name in ("write", "edit")
