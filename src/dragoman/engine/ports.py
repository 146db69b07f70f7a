"""The small interfaces behind which everything outside the engine lives.

`store`, `agents`, `providers`, `tools` and `policy` implement these; the engine calls only these.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from .content import (
    Detail,
    Image,
    Message,
    PlanEntry,
    Text,
    ToolCall,
    ToolKind,
    Usage,
)
from .events import Ask, Mode, Settled
from .info import Page, SessionInfo, SessionQuery

# --- models ----------------------------------------------------------------------------------


class ToolSpec(msgspec.Struct, frozen=True):
    """What the model and the clients are told about a tool."""

    name: str
    description: str
    schema: dict[str, Any]  # JSON Schema of the arguments
    kind: ToolKind = "other"
    repeatable: bool = False  # running it twice does no harm: it may be run again after a crash


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the catalogue. Prices are USD per million tokens; None: not known."""

    provider: str
    id: str
    name: str = ""
    context_window: int = 128_000
    max_output: int = 8_192
    reasoning: bool = False
    vision: bool = False
    price_input: float | None = None
    price_output: float | None = None
    price_cache_read: float | None = None
    price_cache_write: float | None = None

    @property
    def ref(self) -> str:
        return f"{self.provider}/{self.id}"

    def cost(self, usage: Usage) -> float:
        """USD for these tokens; prices that are not known count as zero."""
        return (
            usage.input * (self.price_input or 0.0)
            + usage.output * (self.price_output or 0.0)
            + usage.cache_read * (self.price_cache_read or 0.0)
            + usage.cache_write * (self.price_cache_write or 0.0)
        ) / 1_000_000


class ModelRequest(msgspec.Struct, frozen=True):
    model: ModelInfo
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    reasoning: str = ""  # "", off, minimum, low, medium, high, xhigh, max
    max_output: int | None = None
    temperature: float | None = None
    session: str = ""
    cwd: str = ""


class ModelText(msgspec.Struct, frozen=True, gc=False):
    text: str


class ModelThought(msgspec.Struct, frozen=True, gc=False):
    text: str = ""
    signature: str = ""  # closes the current thought when not empty


class ModelCallBegan(msgspec.Struct, frozen=True, gc=False):
    id: str
    name: str


class ModelCallArgs(msgspec.Struct, frozen=True, gc=False):
    id: str
    fragment: str


class ModelCallEnded(msgspec.Struct, frozen=True, gc=False):
    id: str


class ModelUsage(msgspec.Struct, frozen=True, gc=False):
    """The tokens so far of this call; the last one counts."""

    usage: Usage


class ModelStop(msgspec.Struct, frozen=True, gc=False):
    """The last part of a stream that ended by itself."""

    reason: Literal["end_turn", "tool_use", "length", "refusal"]


class ModelOpened(msgspec.Struct, frozen=True, gc=False):
    """First part: the provider took the request. Nothing before it was shown to anybody."""


class ModelRetry(msgspec.Struct, frozen=True, gc=False):
    """The provider will be asked again after `delay`; what was streamed so far is void."""

    attempt: int
    delay: float
    reason: str


ModelPart = (
    ModelOpened
    | ModelText
    | ModelThought
    | ModelCallBegan
    | ModelCallArgs
    | ModelCallEnded
    | ModelUsage
    | ModelStop
    | ModelRetry
)


class Provider(Protocol):
    """A way to a model. Raises `faults.ProviderFailed`; cancelling the iteration closes the stream."""

    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]: ...

    async def close(self) -> None: ...


class Models(Protocol):
    """The providers that are configured, and the catalogue."""

    def resolve(self, ref: str) -> tuple[Provider, ModelInfo]:
        """The provider and model behind "provider/model". Raises UnknownModel, BadInput (no key)."""
        ...

    def list(self, provider: str | None = None) -> Sequence[ModelInfo]: ...


# --- tools -----------------------------------------------------------------------------------


class Outcome(msgspec.Struct, frozen=True):
    """What a tool gives back to the model."""

    content: tuple[Text | Image, ...]
    is_error: bool = False
    detail: Detail | None = None


class Files(Protocol):
    """Where text files live: our own disk, or an editor's buffers (ACP fs/*)."""

    async def read_text(self, path: str) -> str: ...

    async def write_text(self, path: str, text: str) -> None: ...


class Terminals(Protocol):
    """Where commands run when a client offers its own terminals (ACP terminal/*)."""

    async def run(
        self,
        command: str,
        *,
        cwd: str,
        env: dict[str, str],
        timeout: float | None,
        limit: int,
        opened: Callable[[str], None],
    ) -> tuple[int | None, str, bool]:
        """Run to the end; `opened` gets the terminal's id. Returns exit code, output, truncated."""
        ...


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A human's reply to a question. Empty `text` with `answered` False: nobody could answer."""

    text: str
    answered: bool = True


class ToolEnv(Protocol):
    """What a tool may see and do while it runs. One per call; made by the session."""

    session: str
    turn: str
    call_id: str
    agent: str
    cwd: str
    roots: Sequence[str]  # further directories inside the boundary
    mode: Mode
    files: "Files | None"  # the client's file system when it offers one
    terminals: "Terminals | None"
    vision: bool  # the model can see images

    def progress(self, text: str) -> None: ...

    async def ask(self, question: str, choices: Sequence[str] = ()) -> Answer: ...

    async def plan(self, entries: Sequence[PlanEntry]) -> None: ...


class Tool(Protocol):
    spec: ToolSpec

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        """Do it. Cancelling the task must stop everything the tool started.

        Raises BadInput for bad arguments and Refused for what policy forbids; both become an
        error result for the model.
        """
        ...

    def summary(self, args: dict[str, Any]) -> str:
        """One line for a human who must decide about this call."""
        ...


class Toolbox(Protocol):
    """The tools of one session: built in, MCP, offered by apps."""

    def specs(self) -> Sequence[ToolSpec]: ...

    def find(self, name: str) -> Tool | None: ...

    async def close(self) -> None: ...


class Judgement(msgspec.Struct, frozen=True, gc=False):
    """What policy says of a call. `reason` is shown to the model (deny) or the human (ask)."""

    verdict: Literal["allow", "ask", "deny"]
    reason: str = ""
    risk: Literal["low", "medium", "high"] = "low"


class Policy(Protocol):
    """The rules of one agent: autonomy, lists, paths, commands."""

    def judge(
        self, call: ToolCall, spec: ToolSpec, *, mode: Mode, cwd: str, roots: Sequence[str]
    ) -> Judgement: ...


# --- agents ----------------------------------------------------------------------------------


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
    backend: str = "builtin"  # or "acp"
    command: tuple[str, ...] = ()  # of an ACP backend
    env: dict[str, str] = {}
    temperature: float | None = None
    memory: bool = False


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


class TurnPort(Protocol):
    """What an agent may do during one turn. The session implements it (`engine/turn.py`).

    An agent tells what it streams through the plain methods, and asks for everything that is kept
    through the awaited ones. `call` does the whole life of a tool call: hooks, policy, approval,
    journal, run, result.
    """

    id: str
    info: SessionInfo
    profile: AgentProfile
    messages: Sequence[Message]  # the history, this turn's prompt included; grows during the turn
    cancelled: bool

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
        stop: str,
        usage: Usage,
        cost: float,
        *,
        error: str = "",
    ) -> None: ...

    async def call(self, call: ToolCall) -> None:
        """Run one tool call to its end; its result is appended to `messages`."""
        ...

    async def steering(self) -> bool:
        """Append what was said to the running turn to `messages`; True when there was something."""
        ...

    async def compacted(
        self, summary: str, kept: int, usage: Usage, cost: float, *, automatic: bool
    ) -> None: ...

    async def note(self, level: str, title: str, text: str = "", **data: Any) -> None: ...

    async def plan(self, entries: Sequence[PlanEntry]) -> None: ...


class TurnResult(msgspec.Struct, frozen=True):
    """How an agent's turn came to its end."""

    stop: str = "end_turn"
    error: str = ""


class Agent(Protocol):
    """A backend: something that can take a turn."""

    async def run(self, turn: TurnPort) -> TurnResult:
        """Take one turn. When the last message already holds unanswered tool calls (a session that
        waits for an approval across a restart), begin with those.

        On asyncio.CancelledError: record what was said (`spoke` with stop "aborted"), then re-raise.
        Raises ProviderFailed when the model cannot be reached.
        """
        ...

    async def compact(self, turn: TurnPort) -> str:
        """Summarise the history through `turn.compacted`. Returns the summary.

        Raises BadInput when there is nothing to compact.
        """
        ...


# --- store -----------------------------------------------------------------------------------


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One kept event as stored: `body` is encoded JSON."""

    seq: int
    at: int
    kind: str
    body: bytes
    gseq: int = 0
    session: str = ""


class Batch(msgspec.Struct, frozen=True):
    """What one step adds to a session: all of it is stored, or nothing."""

    session: str
    epoch: int
    entries: Sequence[Entry]  # consecutive seq, first = last stored + 1
    info: SessionInfo  # the row after these entries
    asked: Sequence[Ask] = ()
    settled: Sequence[Settled] = ()


class AskRow(msgspec.Struct, frozen=True):
    ask: Ask
    settled: Settled | None = None
    settled_at: int | None = None


class Store(Protocol):
    """Where sessions live. Every method may raise StoreFailed."""

    durable: bool
    problem: str  # why nothing survives, when `durable` is False and a file was wanted
    commits: int  # transactions written so far

    async def create(self, info: SessionInfo, owner: str) -> int:
        """Add a session (no entries yet) owned by this process; returns its epoch.

        Raises WrongState when the id exists.
        """
        ...

    async def take(self, session: str, owner: str, is_alive: Callable[[str], bool]) -> int:
        """Become the session's writer: a new, higher epoch. Raises UnknownSession, InUse when
        another owner for which `is_alive(owner)` holds it.
        """
        ...

    async def give(self, session: str, epoch: int) -> None:
        """Stop being the writer; another process may take it."""
        ...

    async def append(self, batch: Batch) -> int:
        """Store a batch in one transaction; returns the `gseq` of its first entry (consecutive).

        Raises StaleEpoch, UnknownSession. After it returns, the batch survives a crash.
        """
        ...

    async def info(self, session: str) -> SessionInfo | None: ...

    async def owner(self, session: str) -> str | None: ...

    async def find(self, **extra: Any) -> SessionInfo | None:
        """The newest session whose `extra` has all these values (indexed: run_id, key)."""
        ...

    async def entries(
        self, session: str, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]: ...

    async def entries_since(self, gseq: int, limit: int) -> Sequence[Entry]:
        """Entries of all sessions after `gseq`, in order."""
        ...

    async def newest_gseq(self) -> int: ...

    async def list(self, query: SessionQuery) -> Page: ...

    async def ancestry(self, session: str) -> Sequence[SessionInfo]:
        """The session's ancestors, oldest first, itself last."""
        ...

    async def delete(self, session: str) -> bool: ...

    async def asks(
        self, session: str | None = None, *, pending: bool = True
    ) -> Sequence[AskRow]: ...

    async def ask(self, ask_id: str) -> AskRow | None: ...

    async def put(self, space: str, key: str, value: bytes | None) -> None:
        """Keep a small value (tokens, recent paths, dismissed hints); None removes it."""
        ...

    async def get(self, space: str, key: str) -> bytes | None: ...

    async def pairs(self, space: str) -> Sequence[tuple[str, bytes]]: ...

    async def close(self) -> None: ...


# --- the rest --------------------------------------------------------------------------------


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


Hook = Callable[[str, dict[str, Any], dict[str, Any]], Awaitable[dict[str, Any] | None]]
