"""One turn of a session: what an agent may do, and the whole life of a tool call.

A call goes through: hooks (an app may change or block it), policy (allow, ask, deny), a human when
policy asks, the journal (written before the tool runs, so a crash leaves a mark), the tool, the
result. However it ends, every call gets exactly one result.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import events as ev
from .content import Detail, Message, PlanEntry, Text, ToolCall, Usage, text_of
from .draft import Draft
from .env import Env
from .events import Settled
from .faults import Fault, Refused
from .foreign import Foreign
from .hooks import Block
from .info import SessionInfo
from .ports import Judgement, Reach, Tool, ToolSpec
from .ports.tools import LOOKING

if TYPE_CHECKING:
    from .session import Session

ABORTED = "aborted: the turn was cancelled before this call finished"
NOT_RUN = "aborted: the turn was cancelled before this call was run"


class Turn(Foreign):
    """The running turn. Implements `ports.TurnPort` for the agent that takes it."""

    __slots__ = (
        "_call_id", "cancelled", "cause", "closed", "draft", "held", "id", "interrupted",
        "left", "metadata", "profile", "session", "steer", "tail", "task",
    )  # fmt: skip

    def __init__(self, session: "Session", turn_id: str, metadata: dict[str, Any] | None) -> None:
        self.session = session
        self.id = turn_id
        self.profile = session.profile()
        self.metadata = metadata
        self.draft = Draft()
        self.steer: list[ev.Steered] = []
        self.tail: list[ev.Kept] = []  # facts that are kept together with the turn's next ones
        # Whether this message's text is kept back until apps had their say; None: not decided.
        self.held: bool | None = None
        self.cancelled = False
        self.interrupted = False
        self.cause = ""
        self.closed = False
        self.task: asyncio.Task[Any] | None = None
        self.left: asyncio.Future[None] | None = None  # done: the task is waited for no longer

    # --- what the agent may look at ---

    @property
    def info(self) -> SessionInfo:
        return self.session.state.info()

    @property
    def messages(self) -> Sequence[Message]:
        return self.session.state.messages

    def specs(self) -> Sequence[ToolSpec]:
        return self.session.toolbox.specs() if self.session.toolbox else ()

    async def afford(self, *, action: bool = False) -> None:
        """Raise Refused when the agent's budget is used up. To be asked before every model call."""
        budget = self.session.host.budget
        if budget is not None:
            await budget.afford(self.session.state.agent, action=action)

    # --- what it streams ---

    def emit(self, body: ev.Passing) -> None:
        if not self.closed:
            self.session.emit(body)

    def step_began(self, step: int) -> None:
        self.draft.reset(step)
        self.held = None
        self.emit(ev.StepBegan(self.id, step))

    def stream_opened(self, step: int) -> None:
        self.draft.opened = True
        self.emit(ev.StreamOpened(self.id, step))

    def text(self, delta: str) -> None:
        if not delta:
            return
        if self.held is not False and self._holds():
            return
        self.draft.add(False, delta)
        if self.closed:
            return
        session = self.session
        hub = session._hub
        if hub is not None and hub.watches:
            hub.stream(session, ev.TextDelta, self.id, delta)
        if session.host.hub.watches:
            session.host.hub.stream(session, ev.TextDelta, self.id, delta)

    def thought(self, delta: str) -> None:
        if delta:
            self.draft.add(True, delta)
            if not self.closed:
                self.session.stream(ev.ThoughtDelta, self.id, delta)

    def call_drafted(self, call_id: str, name: str) -> None:
        self.draft.calls[call_id] = name
        self.emit(ev.CallDrafted(self.id, call_id, name))

    def call_args(self, call_id: str, fragment: str) -> None:
        if fragment:
            self.draft.args.setdefault(call_id, []).append(fragment)
            if not self.closed:
                self.session.stream(ev.CallArgs, self.id, fragment, call_id)

    def call_ready(self, call_id: str) -> None:
        self.draft.ready.add(call_id)
        self.emit(ev.CallReady(self.id, call_id))

    def retrying(self, attempt: int, delay: float, reason: str) -> None:
        self.draft.reset(self.draft.step)
        self.held = None
        self.emit(ev.Retrying(self.id, attempt, delay, reason))

    # --- what is kept ---

    async def spoke(
        self,
        step: int,
        content: tuple[Any, ...],
        stop: str,
        usage: Usage,
        cost: float,
        *,
        error: str = "",
    ) -> None:
        """Keep the model's message, after apps had their say about its text."""
        text = text_of(content)
        observed = self.session.host.hooks.observed
        if text:
            if self._holds():
                content = await self._moderate(content)
                text = text_of(content)
            elif observed("message_sending"):
                self.session.tell("message_sending", self._outgoing(text), self.id)
        self.held = None
        model = self.session.state.model
        body = ev.Spoke(self.id, step, content, stop, usage, cost, model, error)  # type: ignore[arg-type]
        if stop == "tool_use":
            await self._append(body)
        else:  # most likely the last word: it is committed together with the turn's end
            self.tail.append(body)
        self.session.host.spent(self.session, cost)
        if text and observed("message_sent"):
            self.session.tell("message_sent", self._outgoing(text), self.id)

    def _holds(self) -> bool:
        """Decide once per message: an app that comes or goes meanwhile must not split its text."""
        if self.held is None:
            self.held = self.session.host.hooks.intercepted("message_sending")
        return self.held

    def _outgoing(self, text: str) -> dict[str, Any]:
        extra = self.session.state.extra
        return {
            "channelId": extra.get("channel", ""),
            "target": extra.get("target", ""),
            "content": text,
            "metadata": self.metadata or extra.get("metadata") or {},
        }

    async def _moderate(self, content: tuple[Any, ...]) -> tuple[Any, ...]:
        text = text_of(content)
        result = await self.session.run_hook("message_sending", self._outgoing(text), self.id)
        if isinstance(result, Block):
            final = f"[message blocked: {result.reason}]"
        else:
            changed = result.get("content", text)
            final = changed if isinstance(changed, str) else text
        self.draft.add(False, final)
        self.emit(ev.TextDelta(self.id, final))
        if final == text:
            return content
        rest = tuple(block for block in content if not isinstance(block, Text))
        thoughts = tuple(b for b in rest if not isinstance(b, ToolCall))
        calls = tuple(b for b in rest if isinstance(b, ToolCall))
        return (*thoughts, Text(final), *calls)

    async def steering(self) -> bool:
        if not self.steer:
            return False
        said, self.steer = self.steer, []
        await self._append(*said)
        return True

    async def compacted(
        self, summary: str, kept: int, usage: Usage, cost: float, *, automatic: bool
    ) -> None:
        await self._append(ev.Compacted(summary, kept, usage, cost, automatic))
        self.session.host.spent(self.session, cost)

    async def note(self, level: str, title: str, text: str = "", **data: Any) -> None:
        await self._append(ev.Noted(level, title, text, data or None))  # type: ignore[arg-type]

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        await self._append(ev.Planned(tuple(entries)))

    async def _append(self, *bodies: ev.Kept) -> None:
        self._open()
        tail, self.tail = self.tail, []
        await self.session.append(*tail, *bodies)

    def _stops(self) -> bool:
        """Whether a cancellation is meant for this turn, and not one from inside a tool."""
        task = asyncio.current_task()
        return self.cancelled or self.closed or (task is not None and task.cancelling() > 0)

    def _open(self) -> None:
        if self.closed:
            raise asyncio.CancelledError("this turn is over")

    # --- tool calls ---

    async def call(self, call: ToolCall) -> None:
        if self.cancelled:
            await self._end(call, "cancelled", NOT_RUN)
            return
        session = self.session
        tool = session.toolbox.find(call.name) if session.toolbox else None
        if tool is None:
            await self._end(call, "failed", f'unknown tool "{call.name}"')
            return
        if call.args is None:
            await self._end(call, "failed", f"invalid args: not a JSON object: {call.raw[:200]}")
            return
        try:
            await self._permitted_call(call, tool)
        except asyncio.CancelledError:
            if call.id in session.state.journal and not self.closed:
                started = session.state.journal[call.id][1]
                await self._end(call, "cancelled", ABORTED if started else NOT_RUN)
            raise

    async def _permitted_call(self, call: ToolCall, tool: Tool) -> None:
        session = self.session
        args = dict(call.args or {})
        if session.host.hooks.intercepted("tool_executing"):
            data = {"toolName": call.name, "name": call.name, "params": args, "callId": call.id}
            result = await session.run_hook("tool_executing", data, self.id)
            if isinstance(result, Block):
                await self._end(call, "denied", f"Blocked: {result.reason}")
                return
            changed = result.get("params", args)
            args = dict(changed) if isinstance(changed, dict) else args
        else:
            data = {"toolName": call.name, "name": call.name, "params": args, "callId": call.id}
            session.tell("tool_executing", data, self.id)
        call = ToolCall(call.id, call.name, args, call.raw)
        judgement = self._judge(call, tool)
        if judgement.verdict == "deny":
            await self._end(call, "denied", judgement.reason or "Denied by policy.")
            return
        if judgement.verdict == "ask":
            settled = session.settled_for(call.id)
            if settled is None:
                self._open()
                settled = await session.ask_about(self, call, tool, judgement)
            if settled.verdict == "edit":
                await self._end(call, "done", settled.text)
                return
            if settled.verdict not in ("allow", "allow_always"):
                await self._end(call, "denied", _refusal(settled))
                if settled.verdict == "cancelled" and self.cancelled:
                    raise asyncio.CancelledError
                return
        await self._execute(call, tool, judgement.reach)

    def _judge(self, call: ToolCall, tool: Tool) -> Judgement:
        state = self.session.state
        if call.name in state.denied:
            return Judgement("deny", f"Denied by user: {call.name} is refused for this session.")
        try:
            judgement = self.session.policy.judge(
                call, tool.spec, mode=state.mode, cwd=state.cwd, roots=self.session.roots
            )
        except Exception as error:
            self.session.host.trouble("policy broke", error, tool=call.name)
            return Judgement("deny", f"The policy could not judge this call of {call.name}.")
        if judgement.verdict == "ask" and self.session.allows(call):
            return Judgement("allow", risk=judgement.risk, reach=judgement.reach)
        return judgement

    async def _execute(self, call: ToolCall, tool: Tool, reach: tuple[Reach, ...]) -> None:
        assert call.args is not None
        try:
            await self.afford(action=tool.spec.kind not in LOOKING)
        except Refused as fault:
            await self._end(call, "denied", str(fault))
            raise  # the model could do nothing about it: the turn ends here
        started = ev.CallStarted(self.id, call.id, call.name, call.args)
        if tool.spec.repeatable:  # nothing is lost if its mark is: it may be run again
            self._open()
            self.session.put(started).add_done_callback(self.session.unheard)
        else:
            await self._append(started)
        env = Env(self, call.id, reach)
        detail: Detail | None = None
        outcome: ev.CallOutcome = "done"
        is_error = False
        try:
            result = await tool.run(call.args, env)
            content, is_error, detail = result.content, result.is_error, result.detail
            if is_error:
                outcome = "failed"
        except Fault as fault:
            content, outcome, is_error = (Text(str(fault)),), "failed", True
        except (Exception, asyncio.CancelledError) as error:  # must not end the turn
            if isinstance(error, asyncio.CancelledError) and self._stops():
                raise
            self.session.host.trouble("tool failed", error, tool=call.name)
            content = (Text(f"{call.name} broke: {type(error).__name__}: {error}"),)
            outcome, is_error = "failed", True
        self.draft.progress.pop(call.id, None)
        await self._append(
            ev.CallEnded(self.id, call.id, call.name, outcome, content, is_error, detail)
        )
        data = {
            "toolName": call.name,
            "name": call.name,
            "params": call.args,
            "callId": call.id,
            "isError": is_error,
            "result": text_of(content),
        }
        self.session.tell("tool_completed", data, self.id)

    async def _end(self, call: ToolCall, outcome: ev.CallOutcome, text: str) -> None:
        self.draft.progress.pop(call.id, None)
        await self._append(
            ev.CallEnded(self.id, call.id, call.name, outcome, (Text(text),), outcome != "done")
        )


def _refusal(settled: Settled) -> str:
    """What the model is told when a human, or nobody, let the call pass."""
    if settled.verdict in ("deny", "deny_always"):
        return f"Denied by user: {settled.comment}" if settled.comment else "Denied by user."
    if settled.verdict == "expired":
        return "Denied: nobody decided about this call in time."
    return "Denied: the request for permission was dismissed without a decision."
