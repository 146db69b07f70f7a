"""What `dragoman/*` answers, for the host and for clients. Rows hold the engine's own structs."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.engine.ask import Rule
from dragoman.engine.content import PlanEntry
from dragoman.engine.events import Ask, Body, Event, Settled, Who
from dragoman.engine.info import SessionInfo, Whereabouts
from dragoman.engine.ports.checkpoints import Checkpoint as Checkpoint
from dragoman.engine.ports.checkpoints import Restored as Restored
from dragoman.engine.ports.checkpoints import TouchedFile as TouchedFile


class Told(msgspec.Struct, frozen=True):
    """One event as it is sent."""

    session: str
    seq: int
    gseq: int
    at: int
    event: Body

    def plain(self) -> Event:
        return Event(self.session, self.at, self.event, self.seq, self.gseq)


class Facts(msgspec.Struct, frozen=True):
    """A session as it is now."""

    session: SessionInfo
    live: bool
    busy: bool
    queued: int
    present: tuple[Who, ...]
    asks: tuple[Ask, ...]
    plan: tuple[PlanEntry, ...]


class Approval(msgspec.Struct, frozen=True):
    """A question to a human, and its answer when there is one."""

    ask: Ask
    settled: Settled | None = None
    settled_at: int | None = None


class Part(msgspec.Struct, frozen=True):
    """A piece of a question as it is to be shown: nothing in it hides."""

    kind: str  # command, diff, text, note
    label: str
    text: str


class Question(msgspec.Struct, frozen=True):
    """One question whole: its row, and how it reads."""

    approval: Approval
    title: str
    parts: list[Part]
    text: str


class AgentRow(msgspec.Struct, frozen=True):
    """An agent of the configuration; `problem` says why it cannot be used."""

    alias: str
    model: str
    mode: str
    reasoning: str
    backend: str
    problem: str = ""


class ModelRow(msgspec.Struct, frozen=True):
    """A model that can be used: `ref` is "provider/model", `model` what the catalogue knows."""

    ref: str
    model: dict[str, Any]


class ClientRow(msgspec.Struct, frozen=True):
    """A connected client."""

    id: str
    dialect: str
    peer: str
    name: str
    since: int


class CommandRow(msgspec.Struct, frozen=True):
    """A slash command of a folder: a Markdown file or a skill."""

    name: str
    description: str
    hint: str = ""


class BoardRow(msgspec.Struct, frozen=True):
    """A session with who is attached, and how many questions wait."""

    session: SessionInfo
    live: bool
    queued: int
    present: tuple[Who, ...]
    asks: int


class Board(msgspec.Struct, frozen=True):
    """`more`: there are older sessions. `spent_today`: in the last 24 hours, by all agents."""

    rows: list[BoardRow]
    more: bool
    spent_today: float


class Checkpoints(msgspec.Struct, frozen=True):
    """The turns that changed files, oldest first."""

    checkpoints: list[Checkpoint]


class Session(msgspec.Struct, frozen=True):
    session: SessionInfo


class Sessions(msgspec.Struct, frozen=True):
    sessions: tuple[SessionInfo, ...]
    cursor: str = ""
    total: int | None = None
    damaged: int | UnsetType = UNSET  # sessions that cannot be read, left out
    nodes: Mapping[str, Whereabouts] | UnsetType = UNSET  # of a fleet, by session


class History(msgspec.Struct, frozen=True):
    events: list[Told]
    more: bool


class Approvals(msgspec.Struct, frozen=True):
    approvals: list[Approval]


class Rules(msgspec.Struct, frozen=True):
    rules: list[Rule]


class OneRule(msgspec.Struct, frozen=True):
    rule: Rule


class Answered(msgspec.Struct, frozen=True):
    settled: Settled


class Turn(msgspec.Struct, frozen=True):
    turn: str


class Agents(msgspec.Struct, frozen=True):
    agents: list[AgentRow]
    default: str | None


class Models(msgspec.Struct, frozen=True):
    models: list[ModelRow]
    without_key: list[str] = []  # providers that nothing can be asked of, for want of a key
    key_variables: dict[str, list[str]] = {}  # of those: where the host looks for one at its start


class Commands(msgspec.Struct, frozen=True):
    commands: list[CommandRow]


class Clients(msgspec.Struct, frozen=True):
    clients: list[ClientRow]


class Watching(msgspec.Struct, frozen=True):
    watch: str
    # All kept events after this place come: `seq`, or `gseq` without a session. Never ahead of what
    # the client has; it moves on with every kept event that comes.
    last: int
    newest: int = 0  # where the newest one stood when the watch began
