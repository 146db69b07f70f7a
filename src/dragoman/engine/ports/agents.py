"""Agents: their profiles, their backends, and what a backend may do in a turn."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from ..ask import Change
from ..content import Detail, Image, Message, PlanEntry, Text, ToolCall, Usage
from ..events import CallOutcome, Level, Mode, Settled, Stop
from ..info import SessionInfo
from ..traits import Trait
from .models import ToolSpec
from .tools import Answer, Policy, Toolbox

CONTEXT_NAMES = ("AGENTS.md", "AGENTS.MD", "CLAUDE.md")  # what a folder says to agents


class AgentProfile(msgspec.Struct, frozen=True):
    """One `[agents.<alias>]` as the engine needs it, all defaults resolved."""

    alias: str
    model: str = "demo/demo"
    mode: Mode = "supervised"
    system_prompt: str | None = None  # None: the built-in one
    append_system_prompt: tuple[str, ...] = ()
    reasoning: str = ""
    max_steps: int = 0  # 0: no limit
    approval_timeout: float = 0.0  # seconds, 0: wait for ever
    tools: tuple[str, ...] | None = None  # None: all
    context_files: bool = True
    auto_compact: float = (
        0.85  # share of the context window at which history is compacted; 0: never
    )
    backend: str = "builtin"  # what takes its turns
    command: tuple[str, ...] = ()  # of a backend that is a process
    env: dict[str, str] = {}
    temperature: float | None = None
    memory: bool = False
    asks: bool = True  # it has the tool that asks the human


class Budget(Protocol):
    """What an agent may spend and do in a span of time."""

    async def afford(self, agent: str, *, action: bool) -> None:
        """Count an action when there is one. Raises Refused when a limit is reached."""
        ...

    def spent(self, agent: str, cost: float) -> None: ...


class Agents(Protocol):
    """The agents of the configuration and the parts each is made of."""

    def names(self) -> Sequence[str]: ...

    def default(self) -> str | None:
        """The agent to use when none is named; None when the choice is not clear."""
        ...

    def profile(self, alias: str) -> AgentProfile:
        """Raises UnknownAgent."""
        ...

    def backend(self, profile: AgentProfile) -> "Agent": ...

    def policy(self, profile: AgentProfile) -> Policy: ...

    async def toolbox(self, profile: AgentProfile, session: "SessionInfo") -> Toolbox: ...


class HostedPort(Protocol):
    """What an agent that runs its tools itself tells and asks (`engine/hosted.py`)."""

    async def began(self, call: ToolCall, kind: str) -> None:
        """It runs a call. Raises Refused when the budget is used up."""
        ...

    async def refined(self, call: ToolCall) -> None:
        """It said more of a call that was announced: its arguments, its name."""
        ...

    def progress(self, call_id: str, text: str) -> None:
        """What a running call has printed."""
        ...

    async def ended(
        self,
        call: ToolCall,
        outcome: CallOutcome,
        content: tuple[Text | Image, ...],
        detail: Detail | None = None,
    ) -> None: ...

    async def ask(
        self, call: ToolCall, kind: str, summary: str, changes: tuple[Change, ...] = ()
    ) -> Settled:
        """Whether it may do what it asks for: hooks, then policy, then a human.

        `changes` are those that the agent itself shows.
        """
        ...

    async def question(self, call_id: str, question: str, choices: Sequence[str]) -> Answer:
        """Put a question to a human."""
        ...


class PromptTurn(Protocol):
    """As much of a turn as the parts of a system prompt look at."""

    @property
    def info(self) -> SessionInfo: ...

    @property
    def profile(self) -> AgentProfile: ...

    @property
    def messages(self) -> Sequence[Message]:
        """The history, this turn's prompt included; grows during the turn."""
        ...

    async def note(self, level: Level, title: str, text: str = "", **data: Any) -> None: ...


class TurnPort(PromptTurn, Protocol):
    """What an agent may do during one turn. The session implements it (`engine/turn.py`).

    An agent tells what it streams through the plain methods, and asks for everything that is kept
    through the awaited ones. `call` does the whole life of a tool call: hooks, policy, approval,
    journal, run, result.
    """

    @property
    def id(self) -> str: ...

    @property
    def cancelled(self) -> bool: ...

    def step_began(self, step: int) -> None: ...

    def stream_opened(self, step: int) -> None: ...

    def text(self, delta: str) -> None: ...

    def thought(self, delta: str) -> None: ...

    def call_drafted(self, call_id: str, name: str) -> None: ...

    def call_args(self, call_id: str, fragment: str) -> None: ...

    def call_ready(self, call_id: str) -> None: ...

    def retrying(self, attempt: int, delay: float, reason: str) -> None: ...

    def specs(self) -> Sequence[ToolSpec]: ...

    async def spoke(
        self,
        step: int,
        content: tuple[Any, ...],
        stop: Stop,
        usage: Usage,
        cost: float,
        *,
        error: str = "",
        fault: str = "",
    ) -> None: ...

    async def call(self, call: ToolCall) -> None:
        """Run one tool call to its end; its result is appended to `messages`."""
        ...

    async def together(self, calls: Sequence[ToolCall]) -> None:
        """Run calls that only look side by side; results come in the order of the calls."""
        ...

    async def steering(self) -> bool:
        """Append what was said to the running turn to `messages`; True when there was something."""
        ...

    def compacting(self, *, automatic: bool) -> None:
        """Tell that the history is about to be made short."""
        ...

    def summarising(self, text: str) -> None:
        """Tell a piece of the summary."""
        ...

    def uncompacted(self, problem: str) -> None:
        """Tell that the history stays as it is; without a problem, because somebody cancelled."""
        ...

    async def compacted(
        self, summary: str, kept: int, usage: Usage, cost: float, *, automatic: bool
    ) -> None: ...

    async def plan(self, entries: Sequence[PlanEntry]) -> None: ...

    async def afford(self, *, action: bool = False) -> None:
        """To be called before every model call. Raises Refused when the budget is used up."""
        ...

    @property
    def hosted(self) -> HostedPort:
        """For agents that run their tools themselves."""
        ...

    async def keep(self, trait: Trait) -> None:
        """Keep a trait with the session."""
        ...


class TurnResult(msgspec.Struct, frozen=True):
    """How an agent's turn came to its end."""

    stop: Stop = "end_turn"
    error: str = ""


class Agent(Protocol):
    """A backend: something that can take a turn."""

    async def run(self, turn: TurnPort) -> TurnResult:
        """Take one turn. When the last message already holds unanswered tool calls (a session that
        waits for an approval across a restart), begin with those.

        On CancelledError: record what was said (`spoke` with stop "aborted"), then re-raise.
        Raises ProviderFailed when the model cannot be reached.
        """
        ...

    async def compact(self, turn: TurnPort) -> str:
        """Summarise the history through `turn.compacted`. Returns the summary.

        Raises BadInput when there is nothing to compact.
        """
        ...
