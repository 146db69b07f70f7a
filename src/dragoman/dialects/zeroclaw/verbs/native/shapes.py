"""What `dragoman/*` requests carry and answer. Answers hold engine structs as they are."""

from typing import Any, Literal

import msgspec

from dragoman.engine.ask import Rule
from dragoman.engine.content import Image, PlanEntry, Text
from dragoman.engine.events import Ask, Body, Mode, Settled, Who
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AskRow, ModelInfo

from ...shapes import OfSession as OfSession
from ...shapes import Params


class Watch(Params, frozen=True):
    session_id: str | None = None
    since: int | None = None
    draft: bool = True
    passing: bool = True  # also what is streamed and never stored


class Unwatch(Params, frozen=True):
    watch: str


class Sessions(Params, frozen=True):
    cwd: str | None = None
    agent: str | None = None
    parent: str | None = None
    status: tuple[str, ...] = ()
    archived: bool | None = None
    origin: str | None = None
    text: str = ""
    leaves: bool = False
    limit: int = 100
    offset: int = 0
    cursor: str = ""


class History(Params, frozen=True):
    session_id: str
    after: int = 0
    limit: int = 1_000


class Open(Params, frozen=True):
    agent: str = ""
    cwd: str = ""
    id: str | None = None
    model: str = ""
    mode: Mode | None = None
    title: str = ""
    reasoning: str = ""
    extra: dict[str, Any] | None = None


class Prompt(Params, frozen=True):
    session_id: str
    text: str = ""
    content: tuple[Text | Image, ...] = ()
    when_busy: Literal["queue", "refuse"] = "queue"
    wait: float | None = None
    key: str = ""
    metadata: dict[str, Any] | None = None
    detach: bool = False  # answer when it is queued, not when it has ended


class Steer(Params, frozen=True):
    session_id: str
    text: str


class Cancel(Params, frozen=True):
    session_id: str
    cause: str = "client"


class Retract(Params, frozen=True):
    session_id: str
    key: str


class Fork(Params, frozen=True):
    session_id: str
    agent: str = ""
    cwd: str = ""
    model: str = ""
    mode: Mode | None = None
    title: str = ""


class Rename(Params, frozen=True):
    session_id: str
    title: str


class Archive(Params, frozen=True):
    session_id: str
    archived: bool = True


class SetModel(Params, frozen=True):
    session_id: str
    model: str


class SetMode(Params, frozen=True):
    session_id: str
    mode: str


class SetReasoning(Params, frozen=True):
    session_id: str
    effort: str


class Approvals(Params, frozen=True):
    session_id: str | None = None
    pending: bool = True


class OfApproval(Params, frozen=True):
    id: str


class Answer(Params, frozen=True):
    """`scope` and `lasts`: what is remembered of an answer for always; `digest`: what was seen."""

    id: str
    verdict: str
    comment: str = ""
    text: str = ""
    scope: str = ""
    lasts: str = ""
    digest: str = ""


class OfRule(Params, frozen=True):
    id: str


class Models(Params, frozen=True):
    provider: str | None = None


class Folder(Params, frozen=True):
    cwd: str


class Board(Params, frozen=True):
    limit: int = 100


class Pair(Params, frozen=True):
    link: bool = False  # a link that works once, instead of a code


class Config(Params, frozen=True):
    op: Literal["get", "set", "unset", "explain", "reload"] = "get"
    path: str = ""
    value: Any = None


class Tap(Params, frozen=True):
    on: bool = True
    session_id: str | None = None


class Name(Params, frozen=True):
    """`dragoman/hello`: how this client is shown to others."""

    name: str


# --- answers ---


class Watching(msgspec.Struct, frozen=True):
    watch: str
    last: int  # the newest place (`seq`, or `gseq` without a session) when the watch began


class Told(msgspec.Struct, frozen=True):
    """One event, in `dragoman/event` and in histories."""

    session: str
    seq: int
    gseq: int
    at: int
    event: Body


class SessionAnswer(msgspec.Struct, frozen=True):
    session: SessionInfo


class SessionFacts(msgspec.Struct, frozen=True):
    session: SessionInfo
    live: bool
    busy: bool
    queued: int
    present: tuple[Who, ...]
    asks: tuple[Ask, ...]
    plan: tuple[PlanEntry, ...]


class SessionList(msgspec.Struct, frozen=True):
    sessions: tuple[SessionInfo, ...]
    cursor: str
    total: int | None


class CommandRow(msgspec.Struct, frozen=True):
    name: str
    description: str
    hint: str


class CommandList(msgspec.Struct, frozen=True):
    commands: list[CommandRow]


class BoardRow(msgspec.Struct, frozen=True):
    """A session as a board shows it."""

    session: SessionInfo
    live: bool
    queued: int
    present: tuple[Who, ...]
    asks: int


class BoardAnswer(msgspec.Struct, frozen=True):
    rows: list[BoardRow]
    more: bool
    spent_today: float  # by all agents of this host, in the last 24 hours


class HistoryAnswer(msgspec.Struct, frozen=True):
    events: list[Told]
    more: bool


class Queued(msgspec.Struct, frozen=True):
    turn: str


class ApprovalList(msgspec.Struct, frozen=True):
    approvals: tuple[AskRow, ...]


class ShownPart(msgspec.Struct, frozen=True):
    """A piece of a question, made safe to show. kind: command, diff, text or note."""

    kind: str
    label: str
    text: str


class ApprovalAnswer(msgspec.Struct, frozen=True):
    """One question, whole, and as it is to be shown."""

    approval: AskRow
    title: str
    parts: list[ShownPart]
    text: str


class RuleList(msgspec.Struct, frozen=True):
    rules: list[Rule]


class RuleAnswer(msgspec.Struct, frozen=True):
    rule: Rule


class SettledAnswer(msgspec.Struct, frozen=True):
    settled: Settled


class AgentRow(msgspec.Struct, frozen=True):
    alias: str
    model: str
    mode: str
    reasoning: str
    backend: str
    problem: str = ""


class AgentList(msgspec.Struct, frozen=True):
    agents: list[AgentRow]
    default: str | None


class ModelRow(msgspec.Struct, frozen=True):
    ref: str
    model: ModelInfo


class ModelList(msgspec.Struct, frozen=True):
    models: list[ModelRow]
    without_key: list[str] = []  # providers that nothing can be asked of, for want of a key


class ClientRow(msgspec.Struct, frozen=True):
    id: str
    dialect: str
    peer: str
    name: str
    since: int


class ClientList(msgspec.Struct, frozen=True):
    clients: list[ClientRow]
