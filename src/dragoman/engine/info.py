"""What is known about a session without reading its history: the row that lists show."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from .content import Usage
from .events import Mode, Status

PROPOSE = "propose_plan"  # the tool that ends plan mode, with a question
_PLANS = os.path.join(".agents", "plans")


class SessionInfo(msgspec.Struct, frozen=True, omit_defaults=False):
    id: str
    agent: str
    cwd: str
    model: str  # "provider/model"
    mode: Mode
    status: Status
    created_at: int
    updated_at: int
    title: str = ""
    query: str = ""  # the first prompt, cut to 4,000 characters
    parent: str | None = None
    interactive: bool = True
    origin: str = ""  # dialect that opened it
    reasoning: str = ""
    messages: int = 0
    turns: int = 0
    steps: int = 0
    usage: Usage = Usage()
    last_usage: Usage = Usage()  # of the last model call: what is in the context now
    cost: float = 0.0
    error: str = ""
    result: str = ""  # last assistant text of the last turn, cut to 4,000 characters
    archived: bool = False
    ended_at: int | None = None
    active_ms: int = 0  # time spent in turns
    last_seq: int = 0
    extra: dict[str, Any] = {}  # what traits keep with it, by their names


def begun_by_somebody(info: SessionInfo) -> bool:
    """Whether it is a conversation: no schedule began it, and no other session's turn."""
    return info.origin not in ("schedule", "task")


def has_worktree(extra: dict[str, Any]) -> bool:
    """Whether a session works in a worktree of its own that is still to be merged or dropped."""
    tree = extra.get("worktree") or {}
    return bool(tree.get("path")) and not tree.get("ended")


def plan_file(cwd: str, session: str) -> str:
    """The one file that a session in plan mode may write."""
    plain = (c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in session[:64])
    name = "".join(plain) or "plan"
    return os.path.join(os.path.realpath(cwd), _PLANS, f"{name}.md")


class Whereabouts(msgspec.Struct, frozen=True):
    """Where in a fleet a session is."""

    node: str  # that has it, or had it last
    waiting: str = ""  # for a node that is gone, since when
    pinned: bool = False  # its folder is only there


def plain_model(ref: str) -> str:
    """`provider/model` of a reference that still says whose variant of the provider it was."""
    if "@" not in ref:
        return ref
    head, slash, rest = ref.partition("/")
    provider = head.partition("@")[0]
    return f"{provider}{slash}{rest}" if slash and provider != head else ref


class SessionQuery(msgspec.Struct, frozen=True):
    """Which sessions to list, newest activity first. `cursor` is opaque, from the page before."""

    cwd: str | None = None
    agent: str | None = None
    parent: str | None = None
    status: tuple[str, ...] = ()
    archived: bool | None = None  # None: both
    origin: str | None = None
    text: str = ""  # words that must be in title or first prompt
    leaves: bool = False  # only sessions that are nobody's parent
    extra: dict[str, Any] = {}  # names of traits, and fields that must have these values
    limit: int = 100
    offset: int = 0
    cursor: str = ""
    counted: bool = False  # tell how many there are in all


class Page(msgspec.Struct, frozen=True):
    sessions: tuple[SessionInfo, ...]
    cursor: str = ""  # empty: no more
    total: int | None = None  # filled when `counted`, and when `offset` paging is used
    damaged: int = 0  # rows left out because they cannot be read


async def each_session(
    listed: Callable[[SessionQuery], Awaitable[Page]], query: SessionQuery
) -> AsyncIterator[SessionInfo]:
    """The sessions of all pages that a query has."""
    while True:
        page = await listed(query)
        for info in page.sessions:
            yield info
        if not page.cursor:
            return
        query = msgspec.structs.replace(query, cursor=page.cursor)
