"""One turn of a session, as the agent that takes it sees it."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import events as ev
from .calls import BEFORE, Calls
from .content import Message, PlanEntry, Text, ToolCall, Usage, text_of
from .faults import Fault
from .hooks import Block, Compaction, ModelAnswered, ModelAsked, context_of
from .hooks import Outgoing as Outgoing
from .info import PROPOSE, SessionInfo
from .planning import offered
from .ports import AgentProfile, ToolSpec
from .traits import Correspondent, Trait
from .work import Draft

if TYPE_CHECKING:
    from .hosted import Hosted


class Turn:
    """The running turn (`ports.TurnPort`)."""

    __slots__ = (
        "_calls", "_compaction_id", "_compactions", "_draft", "_ledger", "_now", "afford", "call",
        "id", "profile",
    )  # fmt: skip

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._ledger = calls.ledger
        self._now = calls.turn
        self._draft = calls.turn.draft
        self.id = calls.turn.id
        self.profile: AgentProfile = calls.profile
        self._compaction_id = ""  # of the one that is being made
        self._compactions = 0
        self.afford = calls.afford
        self.call = calls.run

    # --- what the agent may look at ---

    @property
    def info(self) -> SessionInfo:
        return self._ledger.state.info()

    @property
    def messages(self) -> Sequence[Message]:
        return self._ledger.state.messages

    @property
    def cancelled(self) -> bool:
        return self._now.cancelled

    def specs(self) -> Sequence[ToolSpec]:
        toolbox = self._calls.gear.toolbox
        if toolbox is None:
            return ()
        if self._ledger.state.mode == "plan":
            return offered(toolbox.specs())
        return [spec for spec in toolbox.specs() if spec.name != PROPOSE]

    # --- what it streams ---

    def _emit(self, body: ev.Passing) -> None:
        if not self._now.closed:
            self._ledger.emit(body)

    def step_began(self, step: int) -> None:
        self._draft = self._now.draft = Draft(step)
        self._now.held = None
        self._now.spoken = False
        self._emit(ev.StepBegan(self.id, step))
        if self._ledger.home.hooks.told("llm_input"):
            state = self._ledger.state
            said = (text_of(one.content) for one in reversed(state.messages) if one.role == "user")
            asked = ModelAsked(
                step=step,
                model=state.model,
                prompt=next(said, ""),
                messages=len(state.messages),
            )
            self._calls.tell("llm_input", asked)

    def stream_opened(self, step: int) -> None:
        self._draft.opened = True
        self._emit(ev.StreamOpened(self.id, step))

    def text(self, delta: str) -> None:
        now = self._now
        if not delta or now.held is not False and self._holds():
            return
        self._draft.add(False, delta)
        if not now.closed:
            self._ledger.stream(ev.TextDelta, self.id, delta, self._draft.step)

    def thought(self, delta: str) -> None:
        if delta:
            self._draft.add(True, delta)
            if not self._now.closed:
                self._ledger.stream(ev.ThoughtDelta, self.id, delta, self._draft.step)

    def call_drafted(self, call_id: str, name: str) -> None:
        self._draft.calls[call_id] = name
        self._emit(ev.CallDrafted(self.id, call_id, name))

    def call_args(self, call_id: str, fragment: str) -> None:
        if fragment:
            self._draft.args.setdefault(call_id, []).append(fragment)
            if not self._now.closed:
                self._ledger.stream(ev.CallArgs, self.id, fragment, call_id)

    def call_ready(self, call_id: str) -> None:
        self._draft.ready.add(call_id)
        self._emit(ev.CallReady(self.id, call_id))

    def retrying(self, attempt: int, delay: float, reason: str) -> None:
        self._draft = self._now.draft = Draft(self._draft.step)
        self._now.held = None
        self._emit(ev.Retrying(self.id, attempt, delay, reason))

    # --- what is kept ---

    async def spoke(
        self,
        step: int,
        content: tuple[Any, ...],
        stop: ev.Stop,
        usage: Usage,
        cost: float,
        *,
        error: str = "",
        fault: str = "",
    ) -> None:
        """Keep the model's message, after apps had their say about its text."""
        text = text_of(content)
        home = self._ledger.home
        if text:
            if self._holds():
                content = await self._moderate(content)
                text = text_of(content)
            elif home.hooks.told("message_sending"):
                self._calls.tell("message_sending", self._outgoing(text))
        self._now.held = None
        model = self._ledger.state.model
        body = ev.Spoke(self.id, step, content, stop, usage, cost, model, error, fault)
        self._now.check_open()
        self._now.spoken = True
        if stop == "tool_use":
            try:
                await self._ledger.keep(self._now, body)
            except Fault:
                self._now.spoken = False
                raise
        else:  # most likely the last word: it is committed together with the turn's end
            self._now.tail.append(body)
        home.spent(self._ledger.state, cost)
        if home.hooks.told("llm_output"):
            answered = ModelAnswered(
                step=step,
                model=model,
                text=text,
                stop=stop,
                input=usage.input,
                output=usage.output,
                cost=cost,
            )
            self._calls.tell("llm_output", answered)
        if text and home.hooks.told("message_sent"):
            self._calls.tell("message_sent", self._outgoing(text))

    def _holds(self) -> bool:
        """Decide once per message: an app that comes or goes meanwhile must not split its text."""
        if self._now.held is None:
            self._now.held = self._ledger.home.hooks.intercepted("message_sending")
        return self._now.held

    def _outgoing(self, text: str) -> Outgoing:
        whom = Correspondent.of(self._ledger.state.extra)
        metadata = self._now.metadata or whom.metadata
        return Outgoing(content=text, channel=whom.channel, target=whom.target, metadata=metadata)

    async def _moderate(self, content: tuple[Any, ...]) -> tuple[Any, ...]:
        text = text_of(content)
        context = context_of(self._ledger.state, self.id)
        hooks = self._ledger.home.hooks
        result = await hooks.run("message_sending", self._outgoing(text), context)
        if isinstance(result, Block):
            final = f"[message blocked: {result.reason}]"
        else:
            final = result.content
        self._draft.add(False, final)
        if not self._now.closed:
            self._ledger.stream(ev.TextDelta, self.id, final, self._draft.step)
        if final == text:
            return content
        rest = tuple(block for block in content if not isinstance(block, Text))
        thoughts = tuple(b for b in rest if not isinstance(b, ToolCall))
        calls = tuple(b for b in rest if isinstance(b, ToolCall))
        return (*thoughts, Text(final), *calls)

    async def steering(self) -> bool:
        now = self._now
        if not now.steer:
            return False
        said, now.steer = now.steer, []
        await self._ledger.keep(now, *said)
        return True

    async def compacted(
        self, summary: str, kept: int, usage: Usage, cost: float, *, automatic: bool
    ) -> None:
        id, self._compaction_id = self._compaction_id, ""
        await self._ledger.keep(self._now, ev.Compacted(summary, kept, usage, cost, automatic, id))
        self._ledger.home.spent(self._ledger.state, cost)
        self._compaction("after_compaction", automatic, summary)

    def compacting(self, *, automatic: bool) -> None:
        """The history is about to be made short."""
        self._compactions += 1
        self._compaction_id = f"{self.id}.c{self._compactions}"
        self._emit(ev.Compacting(self.id, self._compaction_id, "began"))
        self._compaction("before_compaction", automatic)

    def summarising(self, text: str) -> None:
        """A piece of the summary is there."""
        self._emit(ev.Compacting(self.id, self._compaction_id, "more", text))

    def uncompacted(self, problem: str) -> None:
        """The history stays as it is. No problem: somebody cancelled."""
        id, self._compaction_id = self._compaction_id, ""
        if id:
            state: Literal["failed", "cancelled"] = "failed" if problem else "cancelled"
            self._emit(ev.Compacting(self.id, id, state, problem))

    def _compaction(self, hook: str, automatic: bool, summary: str = "") -> None:
        count = len(self._ledger.state.messages)
        data = Compaction(automatic=automatic, messages=count, summary=summary)
        self._calls.tell(hook, data)

    async def note(self, level: ev.Level, title: str, text: str = "", **data: Any) -> None:
        await self._ledger.keep(self._now, ev.Noted(level, title, text, data or None))

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        await self._ledger.keep(self._now, ev.Planned(tuple(entries)))

    async def keep(self, trait: Trait) -> None:
        """Keep a trait with the session."""
        await self._ledger.keep(self._now, ev.ExtraSet({trait.NAME: trait.kept()}))

    # --- tool calls ---

    async def together(self, calls: Sequence[ToolCall]) -> None:
        """Run calls that only look side by side; their results come in the order of the calls."""
        before: asyncio.Future[None] | None = None
        tasks = []
        for call in calls:
            after = asyncio.get_running_loop().create_future()
            tasks.append(asyncio.ensure_future(self._beside(call, before, after)))
            before = after
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        for task in tasks:
            task.result()

    async def _beside(
        self,
        call: ToolCall,
        before: "asyncio.Future[None] | None",
        after: "asyncio.Future[None]",
    ) -> None:
        BEFORE.set((self._calls, before))
        try:
            await self._calls.run(call)
        finally:
            after.set_result(None)

    @property
    def hosted(self) -> "Hosted":
        """For an agent that runs its tools by itself."""
        from .hosted import Hosted

        return Hosted(self._calls)
