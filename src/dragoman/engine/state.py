"""A session's state: the fold of its kept events.

Every fact about a session gets here through `apply`, live and after a restart alike, so the state
that is rebuilt from the store equals the live one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.holding import Holder

from . import events as ev
from .content import Message, Text, ToolCall, ToolResult, Usage
from .events import Ask, Mode, Settled, Status
from .info import SessionInfo, plain_model
from .traits import merged

_CUT = 4_000  # characters of prompt and result that the session's row repeats
_REMEMBERED = 256  # settled approvals and idempotency keys a session remembers

_NO_EXTRA: dict[str, Any] = {}  # shared: `extra` is replaced, never changed in place
_UNUSED = Usage()
NONE: Mapping[str, Any] = MappingProxyType({})

SUMMARY_HEAD = "## Context Summary (compacted)"


class State(Holder):
    """What a session is now. Only `apply` changes it."""

    id: str
    _info: SessionInfo | None = None
    seq: int = 0
    agent: str = ""
    cwd: str = ""
    model: str = ""
    mode: Mode = "supervised"
    status: Status = "idle"
    interactive: bool = True
    title: str = ""
    query: str = ""
    result: str = ""
    error: str = ""
    parent: str | None = None
    origin: str = ""
    reasoning: str = ""
    created_at: int = 0
    updated_at: int = 0
    began_at: int = 0
    ended_at: int | None = None
    active_ms: int = 0
    messages: list[Message] = []
    turn: str = ""
    turns: int = 0
    steps: int = 0
    usage: Usage = _UNUSED
    last_usage: Usage = _UNUSED
    cost: float = 0.0
    archived: bool = False
    extra: dict[str, Any] = msgspec.field(default_factory=lambda: _NO_EXTRA)
    plan: tuple[Any, ...] = ()
    # These are replaced, never changed in place: most sessions share the empty ones.
    asks: Mapping[str, Ask] = NONE
    settled: Mapping[str, Settled] = NONE
    # What was said about calls that have no result yet: call id -> answer. Models may use an
    # id again, so an answer must not outlive its call.
    answers: Mapping[str, Settled] = NONE
    keys: Mapping[str, str] = NONE
    queued: Mapping[str, ev.Queued] = NONE  # acknowledged, not begun: in order
    denied: frozenset[str] = frozenset()
    resumed: str = ""  # the turn that went on by itself after its process died
    # Calls the model asked for that have no result yet: call id -> (name, started).
    journal: Mapping[str, tuple[str, bool]] = NONE

    def info(self) -> SessionInfo:
        """The session's row; within a turn the same object until something changes."""
        info = self._info
        if info is None:
            info = SessionInfo(
                id=self.id,
                agent=self.agent,
                cwd=self.cwd,
                model=self.model,
                mode=self.mode,
                status=self.status,
                created_at=self.created_at,
                updated_at=self.updated_at,
                title=self.title,
                query=self.query,
                parent=self.parent,
                interactive=self.interactive,
                origin=self.origin,
                reasoning=self.reasoning,
                messages=len(self.messages),
                turns=self.turns,
                steps=self.steps,
                usage=self.usage,
                last_usage=self.last_usage,
                cost=self.cost,
                error=self.error,
                result=self.result,
                archived=self.archived,
                ended_at=self.ended_at,
                active_ms=self.active_ms,
                last_seq=self.seq,
                extra=self.extra,
            )
            if self.turn:  # asked for often; an idle session keeps no more than it must
                self._info = info
        return info

    def change_agent(self, alias: str) -> None:
        """Have another agent take over from one that was removed from the configuration."""
        self.agent = alias
        self._info = None

    def apply(self, body: ev.Kept, at: int) -> int:
        """Take one fact in; returns its sequence number."""
        self.seq += 1
        self._info = None
        fold = _FOLDS.get(type(body))
        if fold is not None:
            fold(self, body, at)
        if type(body) not in _QUIET:
            self.updated_at = at
        return self.seq

    def unanswered(self) -> list[ToolCall]:
        """Tool calls that have no result yet, in order.

        A hosted agent may begin a call while an earlier one still runs, so that the open ones can
        belong to several messages.
        """
        found: dict[str, ToolCall] = {}
        for message in reversed(self.messages):
            if len(found) == len(self.journal):
                break
            for block in reversed(message.content):
                if isinstance(block, ToolCall) and block.id in self.journal:
                    found.setdefault(block.id, block)
        return list(found.values())[::-1]


def _opened(state: State, body: ev.Opened, at: int) -> None:
    state.agent, state.cwd = body.agent, body.cwd
    state.model, state.mode = plain_model(body.model), body.mode
    state.interactive, state.title, state.parent = body.interactive, body.title, body.parent
    state.origin = body.by.dialect if body.by else ""
    state.extra = dict(body.extra) if body.extra else _NO_EXTRA
    state.created_at = at
    state.status = "idle" if body.interactive else "starting"


def _seeded(state: State, body: ev.Seeded, at: int) -> None:
    state.messages = list(body.messages)


def _turn_began(state: State, body: ev.TurnBegan, at: int) -> None:
    state.messages.append(Message("user", body.content, at))
    state.turn = body.turn
    state.turns += 1
    state.began_at = at
    state.ended_at = None
    state.error = ""
    if not state.query:
        texts = (block.text for block in body.content if isinstance(block, Text))
        state.query = "\n".join(texts)[:_CUT]
    if body.key:
        state.keys = _remembered(state.keys, body.key, body.turn)
    if state.queued:
        state.queued = without(state.queued, body.turn)


def _queued(state: State, body: ev.Queued, at: int) -> None:
    state.queued = {**state.queued, body.id: body}
    if body.key:
        state.keys = _remembered(state.keys, body.key, body.id)


def _dropped(state: State, body: ev.Dropped, at: int) -> None:
    state.queued = without(state.queued, body.id)


def _steered(state: State, body: ev.Steered, at: int) -> None:
    state.queued = without(state.queued, body.queued)
    state.messages.append(Message("user", body.content, at))


def _spoke(state: State, body: ev.Spoke, at: int) -> None:
    state.steps += 1
    state.usage = state.usage + body.usage
    state.cost += body.cost
    if body.usage.context:
        state.last_usage = body.usage
    if not body.content:
        return
    cut = True if body.stop in ("aborted", "error") else msgspec.UNSET
    state.messages.append(Message("assistant", body.content, at, cut))
    for block in body.content:
        if isinstance(block, ToolCall):
            state.journal = {**state.journal, block.id: (block.name, False)}


def _call_started(state: State, body: ev.CallStarted, at: int) -> None:
    state.journal = {**state.journal, body.call_id: (body.name, True)}


def _call_refined(state: State, body: ev.CallRefined, at: int) -> None:
    for place in range(len(state.messages) - 1, -1, -1):
        message = state.messages[place]
        if not any(isinstance(b, ToolCall) and b.id == body.call_id for b in message.content):
            continue
        call = ToolCall(body.call_id, body.name, body.args)
        content = tuple(
            call if isinstance(block, ToolCall) and block.id == body.call_id else block
            for block in message.content
        )
        state.messages[place] = Message(message.role, content, message.at)
        return


def _call_ended(state: State, body: ev.CallEnded, at: int) -> None:
    state.journal = without(state.journal, body.call_id)
    state.answers = without(state.answers, body.call_id)
    result = ToolResult(body.call_id, body.content, body.is_error, body.name, body.detail)
    if state.messages and state.messages[-1].role == "tool":
        last = state.messages[-1]
        state.messages[-1] = Message("tool", (*last.content, result), last.at)
    else:
        state.messages.append(Message("tool", (result,), at))


def _turn_ended(state: State, body: ev.TurnEnded, at: int) -> None:
    state.turn = ""
    state.journal = NONE
    state.answers = NONE
    state.result = body.text[:_CUT]
    state.error = body.error
    state.ended_at = at
    state.active_ms += max(0, at - state.began_at)


def _asked(state: State, body: ev.Asked, at: int) -> None:
    state.asks = {**state.asks, body.ask.id: body.ask}


def _settled(state: State, body: ev.Settled, at: int) -> None:
    state.asks = without(state.asks, body.ask_id)
    state.settled = _remembered(state.settled, body.ask_id, body)
    if body.call_id and body.call_id in state.journal:
        state.answers = {**state.answers, body.call_id: body}


def _status(state: State, body: ev.StatusChanged, at: int) -> None:
    state.status = body.new


def _renamed(state: State, body: ev.Renamed, at: int) -> None:
    state.title = body.title


def _model_set(state: State, body: ev.ModelSet, at: int) -> None:
    state.model = plain_model(body.model)


def _mode_set(state: State, body: ev.ModeSet, at: int) -> None:
    state.mode = body.mode


def _reasoning_set(state: State, body: ev.ReasoningSet, at: int) -> None:
    state.reasoning = body.effort


def _planned(state: State, body: ev.Planned, at: int) -> None:
    state.plan = body.entries


def _compacted(state: State, body: ev.Compacted, at: int) -> None:
    tail = state.messages[len(state.messages) - body.kept :] if body.kept else []
    while tail and tail[0].role == "tool":  # its calls are gone: providers refuse such results
        tail = tail[1:]
    summary = Text(f"{SUMMARY_HEAD}\n\n{body.summary}")
    state.messages = [Message("user", (summary,), at), *tail]
    state.last_usage = _UNUSED


def _cleared(state: State, body: ev.Cleared, at: int) -> None:
    state.messages = []
    state.plan = ()
    state.last_usage = _UNUSED


def _allowed(state: State, body: ev.Allowed, at: int) -> None:
    if body.deny and not body.rule:  # from before there were rules; those are the host's
        state.denied = state.denied | {body.tool}


def _archived(state: State, body: ev.Archived, at: int) -> None:
    state.archived = body.archived


def _extra_set(state: State, body: ev.ExtraSet, at: int) -> None:
    state.extra = merged(state.extra, body.values)


def _noted(state: State, body: ev.Noted, at: int) -> None:
    if body.data is not None and "resumed" in body.data:
        state.resumed = str(body.data["resumed"])


def _remembered(memory: Mapping[str, Any], key: str, value: object) -> dict[str, Any]:
    """With one more, and without the oldest when they are too many."""
    grown = {**memory, key: value}
    while len(grown) > _REMEMBERED:
        del grown[next(iter(grown))]
    return grown


def without(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if key not in values:
        return values
    return {name: value for name, value in values.items() if name != key} or NONE


# `Delegated` only has its place: the child knows its parent.
_FOLDS: dict[type, Any] = {
    ev.Opened: _opened,
    ev.Seeded: _seeded,
    ev.TurnBegan: _turn_began,
    ev.Queued: _queued,
    ev.Dropped: _dropped,
    ev.Steered: _steered,
    ev.Spoke: _spoke,
    ev.CallStarted: _call_started,
    ev.CallRefined: _call_refined,
    ev.CallEnded: _call_ended,
    ev.TurnEnded: _turn_ended,
    ev.Asked: _asked,
    ev.Settled: _settled,
    ev.StatusChanged: _status,
    ev.Renamed: _renamed,
    ev.ModelSet: _model_set,
    ev.ModeSet: _mode_set,
    ev.ReasoningSet: _reasoning_set,
    ev.Planned: _planned,
    ev.Compacted: _compacted,
    ev.Cleared: _cleared,
    ev.Allowed: _allowed,
    ev.Archived: _archived,
    ev.ExtraSet: _extra_set,
    ev.Noted: _noted,
}
# Housekeeping that must not move a session to the top of the lists.
_QUIET = frozenset({ev.Renamed, ev.Archived, ev.ExtraSet, ev.Noted})
