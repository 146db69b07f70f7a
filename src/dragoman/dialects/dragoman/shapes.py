"""What `dragoman/*` requests carry."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET

from dragoman.engine.content import Image, Text
from dragoman.engine.events import Mode
from dragoman.engine.traits import Given


class Params(msgspec.Struct, frozen=True):
    """Base of all params. Clients write null for what they leave out."""


class OfSession(Params, frozen=True):
    session_id: str


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


class History(OfSession, frozen=True):
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
    extra: Given | None = None  # on top of the agent's profile
    worktree: bool = False


class EndWorktree(OfSession, frozen=True):
    how: str  # merge, drop


class Prompt(OfSession, frozen=True):
    text: str = ""
    content: tuple[Text | Image, ...] = ()
    when_busy: Literal["queue", "refuse"] = "queue"
    wait: float | None = None
    key: str = ""
    metadata: dict[str, Any] | None = None
    detach: bool = False  # answer when it is queued, not when it has ended


class Steer(OfSession, frozen=True):
    text: str


class Cancel(OfSession, frozen=True):
    cause: str = "client"


class Retract(OfSession, frozen=True):
    key: str


class Fork(OfSession, frozen=True):
    agent: str = ""
    cwd: str = ""
    model: str = ""
    mode: Mode | None = None
    title: str = ""


class Rename(OfSession, frozen=True):
    title: str


class Undo(OfSession, frozen=True):
    """`turn`: back to before this one; empty: before the last that changed something."""

    turn: str = ""


class Archive(OfSession, frozen=True):
    archived: bool = True


class SetModel(OfSession, frozen=True):
    model: str


class SetMode(OfSession, frozen=True):
    mode: str


class SetReasoning(OfSession, frozen=True):
    effort: str


class Approvals(Params, frozen=True):
    session_id: str | None = None
    pending: bool = True


class OfApproval(Params, frozen=True):
    id: str


class Answer(Params, frozen=True):
    """`scope` and `lasts`: what is remembered of an answer for always.

    `digest`: what was seen; an answer that allows something has one.
    """

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


class OneApp(Params, frozen=True):
    id: str


class Pair(Params, frozen=True):
    link: bool = False  # a link that works once, instead of a code


class Config(Params, frozen=True):
    op: Literal["get", "set", "unset", "explain", "reload"] = "get"
    path: str = ""
    value: Any = UNSET


class Tap(Params, frozen=True):
    on: bool = True
    session_id: str | None = None


class Name(Params, frozen=True):
    """`dragoman/hello`: how this client is shown to others."""

    name: str


class OfSchedule(Params, frozen=True):
    id: str
    enabled: bool = True


class ScheduleRuns(Params, frozen=True):
    id: str
    limit: int = 20
