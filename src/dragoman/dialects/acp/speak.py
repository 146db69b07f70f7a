"""Events of a session as `session/update` notifications.

One `Speaker` serves all connections that want the same words, so each event is encoded once. What
differs between connections (who typed the prompt, how much text one has seen already) is left to
their attachments: a `Said` carries the encoded lines and the fact they stand for.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dragoman.engine import events as ev
from dragoman.engine.content import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    text_of,
)
from dragoman.engine.door import Door
from dragoman.engine.events import Event
from dragoman.engine.faults import Fault
from dragoman.engine.traits import Waiver
from dragoman.engine.view import SessionView
from dragoman.wire.codec import encode, to_safe
from dragoman.wire.jsonrpc import notification
from dragoman.wire.link import Blob

from . import calls, options
from .quirks import Manner

if TYPE_CHECKING:
    from dragoman.engine.work import Finished

_TITLE = 80
_CUT = b',"_meta":{"dragoman":{"cut":true}}}}}'


class Said:
    """Lines to send, and what they are about.

    `live` lines are for those who watch as it happens, not for a replay. `words` are what the
    lines carry of the model's own text or thought.
    """

    __slots__ = ("blob", "body", "id", "live", "seq", "text_size", "thought_size", "words")

    def __init__(
        self,
        lines: Sequence[bytes] = (),
        body: object = None,
        live: Sequence[bytes] = (),
        words: str = "",
        thought: bool = False,
        id: str = "",
    ) -> None:
        self.id = id  # of the message that the words are part of
        self.blob = Blob(lines) if lines else None
        self.live = Blob(live) if live else None
        self.body = body
        self.seq = 0  # of the kept event that it stands for
        self.words = words
        self.text_size = 0 if thought else len(words)
        self.thought_size = len(words) if thought else 0


class Teller:
    """What the speakers of both versions do alike; each has a table of its own (`tells`)."""

    tells: Mapping[type, Callable[..., Said | None]] = {}
    second = False  # it speaks version 2
    nowhere = ""  # the folder of a session that is not in memory
    chunk = b""  # how a piece of a message begins, but for its kind

    def __init__(self, door: Door, session_id: str, manner: Manner, parent: str = "") -> None:
        self._door = door
        self._manner = manner
        self._closed = manner.quirks.closed_updates
        self._parent = parent
        self.id = session_id
        head = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'
        self._head = head + encode(session_id) + b',"update":'
        self._text_head = self._head + self.chunk % b"agent_message"
        self._thought_head = self._head + self.chunk % b"agent_thought"

    def line(self, update: dict[str, Any]) -> bytes:
        return self._head + to_safe(encode(update)) + b"}}"

    def text(self, text: str, id: str) -> bytes:
        """A piece of the message with this id."""
        raise NotImplementedError

    def thought(self, text: str, id: str) -> bytes:
        raise NotImplementedError

    def place(self, seq: int, texts: int, thoughts: int) -> bytes:
        """How far a client of our own has come: it gives that back when it comes again."""
        params = {"sessionId": self.id, "seq": seq, "texts": texts, "thoughts": thoughts}
        return notification("_dragoman/place", params)

    def speak(self, events: Sequence[Event]) -> list[Said] | None:
        said: list[Said] = []
        tells = self.tells
        for event in events:
            tell = tells.get(type(event.body))
            if tell is not None:
                one = tell(self, event.body, event)
                if one is not None:
                    one.seq = event.seq
                    said.append(one)
        return said or None

    # --- events ---

    def _delta(self, body: ev.TextDelta, event: Event) -> Said:
        id = said_id(body.turn, body.step)
        return Said((self.text(body.text, id),), words=body.text, id=id)

    def _thinking(self, body: ev.ThoughtDelta, event: Event) -> Said:
        id = said_id(body.turn, body.step)
        return Said((self.thought(body.text, id),), words=body.text, thought=True, id=id)

    def _spoke(self, body: ev.Spoke, event: Event) -> Said:
        lines = [self.line(self.call(b)) for b in body.content if isinstance(b, ToolCall)]
        live = self.usage_of(self._door.live(self.id)) if body.usage.context else ()
        return Said(lines, body, live=live)

    def _planned(self, body: ev.Planned, event: Event) -> Said:
        return Said((self.line(plan_update(body, named=self._manner.plans)),), body)

    def _renamed(self, body: ev.Renamed, event: Event) -> Said | None:
        if self._closed:
            return None
        return Said((), body, live=(self._title(body.title, event.at),))

    def _option_set(self, body: object, event: Event) -> Said | None:
        lines = self._options()
        return Said((), body, live=lines) if lines else None

    def _extra_set(self, body: ev.ExtraSet, event: Event) -> Said | None:
        switched = self._manner.booleans and Waiver.NAME in body.values
        return self._option_set(body, event) if switched else None

    def _compacting(self, body: ev.Compacting, event: Event) -> Said | None:
        return Said((self.line(compacting(body)),), body) if self._manner.compaction else None

    def _compacted(self, body: ev.Compacted, event: Event) -> Said:
        lines: tuple[bytes, ...] = ()
        if self._manner.compaction:
            lines = (self.line(compaction_update(body, event)),)
        return Said((), body, live=(*lines, *self.usage_of(self._door.live(self.id))))

    def _noted(self, body: ev.Noted, event: Event) -> Said | None:
        if (body.data or {}).get("source") == "client":
            return None  # a client put it there; it is no news of ours
        if not self._manner.notices:
            return Said((), body)
        update = {"sessionUpdate": "notice", "severity": body.level, "title": body.title or "Note"}
        if body.text:
            update["description"] = body.text
        return Said((), body, live=(self.line(update),))

    def _mark(self, body: object, event: Event) -> Said:
        return Said((), body)

    # --- parts ---

    def call(self, call: ToolCall) -> dict[str, Any]:
        """A call before it runs."""
        session = self._door.live(self.id)
        cwd = session.cwd if session is not None else self.nowhere
        update: dict[str, Any] = {
            "sessionUpdate": "tool_call_update" if self.second else "tool_call",
            "toolCallId": call.id,
            "title": calls.title_of(call.name, call.args),
            "name": call.name,
            "kind": calls.kind_of(call.name, session),
            "status": "pending",
            "rawInput": call.args if call.args is not None else {"raw": call.raw},
        }
        if places := calls.locations_of(call.name, call.args, cwd):
            update["locations"] = places
        edits = call.name == "edit" and not self.second
        if edits and (proposed := calls.proposal_of(call.name, call.args, cwd)):
            update["content"] = proposed
        return update

    def usage_of(self, state: object) -> tuple[bytes, ...]:
        """How full the model's context is, and what the session has cost so far."""
        if self._closed or (update := usage_update(self._door, state)) is None:
            return ()
        return (self.line(update),)

    def _options(self) -> tuple[bytes, ...]:
        session = self._door.live(self.id)
        if session is None or self._closed:
            return ()
        listed = options.options(
            self._door, session.info(), booleans=self._manner.booleans, second=self.second
        )
        update = {"sessionUpdate": "config_option_update", "configOptions": listed}
        return (self.line(update),)

    def _first_title(self, at: int) -> tuple[bytes, ...]:
        session = self._door.live(self.id)
        if session is None or self._closed:
            return ()
        if session.turns != 1 or session.title or not session.query:
            return ()
        return (self._title(short_title(session.query), at),)

    def _title(self, title: str, at: int) -> bytes:
        return self.line(
            {"sessionUpdate": "session_info_update", "title": title, "updatedAt": stamp(at)}
        )


class Speaker(Teller):
    """Implements `engine.hub.Shape` for one session."""

    chunk = b'{"sessionUpdate":"%s_chunk","content":{"type":"text","text":'

    def __init__(self, door: Door, session_id: str, manner: Manner, parent: str = "") -> None:
        super().__init__(door, session_id, manner, parent)
        self._quirks = manner.quirks
        self._user_head = self._head + self.chunk % b"user_message"
        self._tails = ("\0", b"")

    # --- lines ---

    def text(self, text: str, id: str, *, cut: bool = False) -> bytes:
        """A piece of the message with this id; `cut`: the message was not finished."""
        end = self._tail(id)
        return self._text_head + to_safe(encode(text)) + (end[:-3] + _CUT if cut else end)

    def thought(self, text: str, id: str) -> bytes:
        return self._thought_head + to_safe(encode(text)) + self._tail(id)

    def user(self, block: Text | Image, id: str) -> bytes:
        if isinstance(block, Text):
            return self._user_head + to_safe(encode(block.text)) + self._tail(id)
        update = {"sessionUpdate": "user_message_chunk", "content": calls.block_of(block)}
        if self._quirks.message_ids:
            update["messageId"] = id
        return self.line(update)

    def _tail(self, id: str) -> bytes:
        """What closes a chunk; the same for all chunks of one message."""
        known = self._tails
        if known[0] != id:
            tail = b',"messageId":' + encode(id) if self._quirks.message_ids else b""
            known = self._tails = (id, b"}" + tail + b"}}}")
        return known[1]

    # --- events ---

    def _began(self, body: ev.TurnBegan, event: Event) -> Said:
        if self._parent and is_given(body):
            return Said((self.line(given(body, self._parent, self.id)),), body)
        lines = [self.user(block, body.turn) for block in body.content]
        return Said(lines, body, live=self._first_title(event.at))

    def _steered(self, body: ev.Steered, event: Event) -> Said:
        id = steered_id(body, event)
        return Said([self.user(block, id) for block in body.content], body)

    def rest(self, body: ev.Spoke, texts: int, thoughts: int) -> list[bytes]:
        """What a message has beyond the characters of it that were streamed."""
        id = said_id(body.turn, body.step)
        lines: list[bytes] = []
        cut = body.stop in ("aborted", "error")
        if not texts and not thoughts:
            for block in body.content:
                if isinstance(block, Thinking) and block.text:
                    lines.append(self.thought(block.text, id))
                elif isinstance(block, Text) and block.text:
                    lines.append(self.text(block.text, id, cut=cut))
            return lines
        thought = "".join(b.text for b in body.content if isinstance(b, Thinking))
        text = text_of(body.content)
        if len(thought) > thoughts:
            lines.append(self.thought(thought[thoughts:], id))
        if len(text) > texts:
            lines.append(self.text(text[texts:], id, cut=cut))
        return lines

    def _started(self, body: ev.CallStarted, event: Event) -> Said:
        update: dict[str, Any] = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": body.call_id,
            "status": "in_progress",
        }
        if self._was_changed(body):
            update["title"] = calls.title_of(body.name, body.args)
            update["rawInput"] = body.args
        return Said((), body, live=(self.line(update),))

    def _refined(self, body: ev.CallRefined, event: Event) -> Said:
        session = self._door.live(self.id)
        cwd = session.cwd if session is not None else ""
        update: dict[str, Any] = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": body.call_id,
            "title": calls.title_of(body.name, body.args),
            "name": body.name,
            "rawInput": body.args,
        }
        if places := calls.locations_of(body.name, body.args, cwd):
            update["locations"] = places
        return Said((self.line(update),), body)

    def _was_changed(self, body: ev.CallStarted) -> bool:
        """Whether a hook made something else of what the model asked for."""
        session = self._door.live(self.id)
        if session is None:
            return False
        for message in reversed(session.messages):
            if message.role == "assistant":
                asked = [b for b in message.content if isinstance(b, ToolCall)]
                return any(b.id == body.call_id and b.args != body.args for b in asked)
        return False

    def _ended(self, body: ev.CallEnded, event: Event) -> Said:
        return Said((self.result(body),), body)

    def result(self, body: ev.CallEnded, *, terminal: bool = False) -> bytes:
        """The last update of a call, with the client's own `terminal` if it ran there."""
        output = self._quirks.object_output
        return self.line(calls.result_update(body, object_output=output, terminal=terminal))

    def _mode_set(self, body: ev.ModeSet, event: Event) -> Said:
        update = {"sessionUpdate": "current_mode_update", "currentModeId": body.mode}
        return Said((), body, live=(self.line(update), *self._options()))

    def _seeded(self, body: ev.Seeded, event: Event) -> Said:
        lines: list[bytes] = []
        for place, message in enumerate(body.messages):
            lines += self.message(message, seeded_id(place))
        return Said(lines, body)

    # --- parts ---

    def message(self, message: Message, id: str) -> list[bytes]:
        """A whole message of the past."""
        lines: list[bytes] = []
        for block in message.content:
            match block:
                case Text() | Image() if message.role == "user":
                    lines.append(self.user(block, id))
                case Text():
                    lines.append(self.text(block.text, id, cut=message.cut is True))
                case Thinking():
                    if block.text:
                        lines.append(self.thought(block.text, id))
                case ToolCall():
                    lines.append(self.line(self.call(block)))
                case ToolResult():
                    lines.append(self.result(ended_of(block, "")))
                case _:
                    continue
        return lines


def is_given(body: ev.TurnBegan) -> bool:
    """Whether a prompt is what a session gave its child to do."""
    return body.by is not None and body.by.dialect == "task"


def given(body: ev.TurnBegan, parent: str, child: str) -> dict[str, Any]:
    """What a session gave its child to do, as a message between the two."""
    return {
        "sessionUpdate": "session_message",
        "messageId": body.turn,
        "senderSessionId": parent,
        "recipientSessionId": child,
        "content": [calls.block_of(block) for block in body.content],
    }


_STOPS = {
    "end_turn": "end_turn",
    "length": "max_tokens",
    "refusal": "refusal",
    "max_steps": "max_turn_requests",
}


def stop_of(body: "ev.TurnEnded | Finished") -> dict[str, Any]:
    """Why a turn ended, as members of the idle state."""
    if body.outcome in ("cancelled", "interrupted"):
        return {"stopReason": "cancelled"}
    if body.stop in _STOPS and (body.outcome == "completed" or body.stop == "max_steps"):
        return {"stopReason": _STOPS[body.stop]}
    text = " ".join((body.error or body.stop).split())
    return {"stopReason": "error", "error": {"code": -32603, "message": text}}


def state_of(session: SessionView | None) -> dict[str, str]:
    """What a session does now, as version 2 says it."""
    if session is None or not session.busy:
        return {"state": "idle"}
    return {"state": "requires_action" if session.asks else "running"}


def ended_of(result: ToolResult, turn: str) -> ev.CallEnded:
    """How a call ended that is known by its result alone."""
    outcome: ev.CallOutcome = "failed" if result.is_error else "done"
    return ev.CallEnded(
        turn, result.call_id, result.name, outcome, result.content, result.is_error, result.detail
    )


def plan_update(body: ev.Planned, *, named: bool = True) -> dict[str, Any]:
    """A plan, for clients that know several of them by a name of its own."""
    entries = [
        {"content": one.content, "priority": one.priority, "status": one.status}
        for one in body.entries
    ]
    if not named:
        return {"sessionUpdate": "plan", "entries": entries}
    plan = {"type": "items", "planId": "main", "entries": entries}
    return {"sessionUpdate": "plan_update", "plan": plan}


def compacting(body: ev.Compacting) -> dict[str, Any]:
    """A compaction on its way: its beginning, a piece of its summary, or a bad end."""
    if body.state == "more":
        content = {"type": "text", "text": body.text}
        said = {"sessionUpdate": "compaction_summary_chunk", "content": content}
        return {**said, "compactionId": body.id}
    status = "in_progress" if body.state == "began" else body.state
    update = {"sessionUpdate": "compaction_update", "compactionId": body.id, "status": status}
    return {**update, "error": body.text} if body.state == "failed" else update


def compaction_update(body: ev.Compacted, event: Event) -> dict[str, Any]:
    """A compaction at its good end; its summary replaces the pieces."""
    return {
        "sessionUpdate": "compaction_update",
        "compactionId": body.id or f"compaction-{event.seq}",
        "status": "completed",
        "summary": [{"type": "text", "text": body.summary}],
    }


def usage_update(door: Door, state: Any) -> dict[str, Any] | None:
    """How full a session's context is; None where nobody knows how much there is of it."""
    if state is None:
        return None
    try:
        size = door.model(state.model, state.agent).context_window
    except Fault:
        return None  # the model is gone from the configuration: its window is not known
    used = state.last_usage.context or _rough(state.messages)
    update: dict[str, Any] = {"sessionUpdate": "usage_update", "used": min(used, size)}
    update["size"] = size
    if state.cost:
        update["cost"] = {"amount": state.cost, "currency": "USD"}
    return update


def usage_of_turn(spent: Usage) -> dict[str, int]:
    """What the model took and gave in one turn."""
    return {
        "totalTokens": spent.context,
        "inputTokens": spent.input,
        "outputTokens": spent.output,
        "thoughtTokens": spent.reasoning,
        "cachedReadTokens": spent.cache_read,
        "cachedWriteTokens": spent.cache_write,
    }


def said_id(turn: str, step: int) -> str:
    """The id of what the model says in one step: known from the first word, and kept."""
    return f"{turn}.{step}"


def steered_id(body: ev.Steered, event: Event) -> str:
    return body.queued or f"{body.turn}.s{event.seq}"


def seeded_id(place: int) -> str:
    """The id of a message that was taken over from another session."""
    return f"seed.{place}"


def short_title(query: str) -> str:
    """A title made of a first prompt."""
    line = " ".join(query[: _TITLE * 4].split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1].rstrip() + "…"


def stamp(at: int) -> str:
    """Milliseconds since the epoch as RFC 3339."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


def _rough(messages: Sequence[Message]) -> int:
    """About how many tokens these messages are, when no model counted them yet."""
    size = 0
    for message in messages:
        for block in message.content:
            size += len(getattr(block, "text", "") or getattr(block, "raw", "") or "")
    return size // 4


SAME: Mapping[type, Callable[..., Said | None]] = {
    ev.TextDelta: Teller._delta,
    ev.ThoughtDelta: Teller._thinking,
    ev.Planned: Teller._planned,
    ev.Renamed: Teller._renamed,
    ev.ModelSet: Teller._option_set,
    ev.ReasoningSet: Teller._option_set,
    ev.ExtraSet: Teller._extra_set,
    ev.Compacting: Teller._compacting,
    ev.Compacted: Teller._compacted,
    ev.Noted: Teller._noted,
    ev.Delegated: Teller._mark,
    ev.StepBegan: Teller._mark,
    ev.Retrying: Teller._mark,
}
Speaker.tells = {
    **SAME,
    ev.TurnBegan: Speaker._began,
    ev.Steered: Speaker._steered,
    ev.Spoke: Speaker._spoke,
    ev.CallStarted: Speaker._started,
    ev.CallRefined: Speaker._refined,
    ev.CallEnded: Speaker._ended,
    ev.ModeSet: Speaker._mode_set,
    ev.Seeded: Speaker._seeded,
    ev.Asked: Speaker._mark,
    ev.Settled: Speaker._mark,
    ev.TurnEnded: Speaker._mark,
    ev.Progress: Speaker._mark,
    ev.Deleted: Speaker._mark,
}
