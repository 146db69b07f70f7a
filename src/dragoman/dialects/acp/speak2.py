"""Events of a session as version 2 tells them: messages and calls with ids, states, terminals.

One `Speaker2` serves all connections of version 2 in a session, since nothing of it depends on what
a client can do. A `Replay` tells the past: each message, call and terminal once, as it is now.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from dragoman.engine import events as ev
from dragoman.engine.content import (
    Detail,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    text_of,
)
from dragoman.engine.door import Door
from dragoman.engine.events import Event
from dragoman.engine.faults import Fault
from dragoman.wire.codec import encode, to_safe
from dragoman.wire.jsonrpc import notification

from . import calls, options
from .changes import diff_of
from .speak import Said, said_id, seeded_id, short_title, stamp, steered_id

Fields = dict[str, Any]
_STATUS = {"done": "completed", "cancelled": "cancelled"}
_STOPS = {
    "end_turn": "end_turn",
    "length": "max_tokens",
    "refusal": "refusal",
    "max_steps": "max_turn_requests",
}


class Speaker2:
    """Implements `engine.hub.Shape` for one session."""

    def __init__(self, door: Door, session_id: str) -> None:
        self._door = door
        self.id = session_id
        head = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'
        self._head = head + encode(session_id) + b',"update":'
        chunk = b'{"sessionUpdate":"%s_chunk","messageId":'
        self._text_head = self._head + chunk % b"agent_message"
        self._thought_head = self._head + chunk % b"agent_thought"
        self._commands: dict[str, str] = {}  # calls that run a command -> their terminal
        self._streamed: set[str] = set()  # terminals whose output was told

    # --- lines ---

    def line(self, update: Fields) -> bytes:
        return self._head + to_safe(encode(update)) + b"}}"

    def text(self, text: str, id: str) -> bytes:
        return self._chunk(self._text_head, text, id)

    def thought(self, text: str, id: str) -> bytes:
        return self._chunk(self._thought_head, text, id)

    def _chunk(self, head: bytes, text: str, id: str) -> bytes:
        middle = b',"content":{"type":"text","text":'
        return head + encode(id) + middle + to_safe(encode(text)) + b"}}}}"

    def whole(self, kind: str, id: str, content: Sequence[Text | Image]) -> bytes:
        """A message as it is: whatever was told of it before is replaced."""
        blocks = [calls.block_of(block) for block in content]
        return self.line({"sessionUpdate": kind, "messageId": id, "content": blocks})

    def place(self, seq: int, texts: int, thoughts: int) -> bytes:
        """How far a client of our own has come: it gives that back when it comes again."""
        params = {"sessionId": self.id, "seq": seq, "texts": texts, "thoughts": thoughts}
        return notification("_dragoman/place", params)

    def state(self, state: str, **more: Any) -> bytes:
        return self.line({"sessionUpdate": "state_update", "state": state, **more})

    def current(self) -> bytes:
        """The state as it is now."""
        session = self._door.live(self.id)
        if session is None or not session.busy:
            return self.state("idle")
        return self.state("requires_action" if session.asks else "running")

    # --- events ---

    def speak(self, events: Sequence[Event]) -> list[Said] | None:
        said: list[Said] = []
        for event in events:
            tell = _TELL.get(type(event.body))
            if tell is not None:
                one = tell(self, event.body, event)
                if one is not None:
                    one.seq = event.seq
                    said.append(one)
        return said or None

    def _delta(self, body: ev.TextDelta, event: Event) -> Said:
        id = said_id(body.turn, body.step)
        return Said((self.text(body.text, id),), words=body.text, id=id)

    def _thinking(self, body: ev.ThoughtDelta, event: Event) -> Said:
        id = said_id(body.turn, body.step)
        return Said((self.thought(body.text, id),), words=body.text, thought=True, id=id)

    def _began(self, body: ev.TurnBegan, event: Event) -> Said:
        lines = [self.whole("user_message", body.turn, body.content), self.state("running")]
        session = self._door.live(self.id)
        if session is not None and session.turns == 1 and not session.title and session.query:
            lines.append(self._title(short_title(session.query), event.at))
        return Said(lines, body)

    def _steered(self, body: ev.Steered, event: Event) -> Said:
        return Said((self.whole("user_message", steered_id(body, event), body.content),), body)

    def _spoke(self, body: ev.Spoke, event: Event) -> Said:
        lines = [
            self.line(self.call(block)) for block in body.content if isinstance(block, ToolCall)
        ]
        if body.usage.context:
            lines += self._usage()
        return Said(lines, body)

    def rest(self, body: ev.Spoke, texts: int, thoughts: int) -> list[bytes]:
        """Put right what was streamed of a message, when that is not the message."""
        id = said_id(body.turn, body.step)
        lines: list[bytes] = []
        thought = "".join(b.text for b in body.content if isinstance(b, Thinking))
        text = text_of(body.content)
        if len(thought) != thoughts:
            lines.append(self.whole("agent_thought", id, [Text(thought)] if thought else []))
        if len(text) != texts:
            lines.append(self.whole("agent_message", id, [Text(text)] if text else []))
        return lines

    def _started(self, body: ev.CallStarted, event: Event) -> Said:
        update: Fields = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": body.call_id,
            "title": calls.title_of(body.name, body.args),
            "status": "in_progress",
            "rawInput": body.args or {},
        }
        command = self._command_of(body.name, body.args)
        if not command:
            return Said((self.line(update),), body)
        terminal = self._commands[body.call_id] = f"term-{body.turn}-{body.call_id}"
        update["content"] = [calls.terminal_content(terminal)]
        shown = {"sessionUpdate": "terminal_update", "terminalId": terminal, "command": command}
        return Said((self.line(update), self.line({**shown, "cwd": self._cwd()})), body)

    def _refined(self, body: ev.CallRefined, event: Event) -> Said:
        update = self.call(ToolCall(body.call_id, body.name, body.args))
        del update["status"]
        return Said((self.line(update),), body)

    def _progress(self, body: ev.Progress, event: Event) -> Said:
        terminal = self._commands.get(body.call_id)
        if terminal is None:
            update: Fields = {
                "sessionUpdate": "tool_call_content_chunk",
                "toolCallId": body.call_id,
                "content": calls.text_content(body.text),
            }
        else:
            self._streamed.add(terminal)
            update = {
                "sessionUpdate": "terminal_output_chunk",
                "terminalId": terminal,
                "data": _base64(body.text),
            }
        return Said((self.line(update),), body)

    def _ended(self, body: ev.CallEnded, event: Event) -> Said:
        lines: list[bytes] = []
        terminal = self._commands.pop(body.call_id, None)
        update = self.result(body, terminal or "")
        if terminal is not None:
            shown: Fields = {"sessionUpdate": "terminal_update", "terminalId": terminal}
            if terminal not in self._streamed:
                shown["output"] = {"data": _base64(text_of(body.content))}
            self._streamed.discard(terminal)
            code = body.detail.exit_code if body.detail is not None else None
            shown["exitStatus"] = {"exitCode": code} if code is not None and code >= 0 else {}
            lines.append(self.line(shown))
        return Said((*lines, self.line(update)), body)

    def _planned(self, body: ev.Planned, event: Event) -> Said:
        return Said((self.line(plan_update(body)),), body)

    def _renamed(self, body: ev.Renamed, event: Event) -> Said:
        return Said((self._title(body.title, event.at),), body)

    def _option_set(self, body: Any, event: Event) -> Said | None:
        session = self._door.live(self.id)
        if session is None:
            return None
        listed = options.second(options.options(self._door, session.info(), booleans=True))
        update = {"sessionUpdate": "config_option_update", "configOptions": listed}
        return Said((), body, live=(self.line(update),))

    def _compacted(self, body: ev.Compacted, event: Event) -> Said:
        return Said((self.line(compaction_update(body, event)), *self._usage()), body)

    def _noted(self, body: ev.Noted, event: Event) -> Said | None:
        if (body.data or {}).get("source") == "client":
            return None  # a client put it there; it is no news of ours
        update = {"sessionUpdate": "notice", "severity": body.level, "title": body.title or "Note"}
        if body.text:
            update["description"] = body.text
        return Said((), body, live=(self.line(update),))

    def _asked(self, body: ev.Asked, event: Event) -> Said:
        return Said((), body, live=(self.state("requires_action"),))

    def _settled(self, body: ev.Settled, event: Event) -> Said:
        session = self._door.live(self.id)
        goes_on = session is not None and session.busy and not session.asks.keys() - {body.ask_id}
        return Said((), body, live=(self.state("running"),) if goes_on else ())

    def _over(self, body: ev.TurnEnded, event: Event) -> Said:
        self._commands.clear()
        self._streamed.clear()
        return Said((), body, live=(self.state("idle", **stop_of(body)),))

    def _mark(self, body: Any, event: Event) -> Said:
        return Said((), body)

    # --- parts ---

    def call(self, call: ToolCall) -> Fields:
        """A call before it runs."""
        session = self._door.live(self.id)
        tool = session.tool(call.name) if session is not None else None
        cwd = self._cwd()
        update: Fields = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": call.id,
            "title": calls.title_of(call.name, call.args),
            "name": call.name,
            "kind": calls.kind_of(call.name, tool.spec.kind if tool is not None else ""),
            "status": "pending",
            "rawInput": call.args if call.args is not None else {"raw": call.raw},
        }
        if places := calls.locations_of(call.name, call.args, cwd):
            update["locations"] = places
        return update

    def result(self, body: ev.CallEnded, terminal: str) -> Fields:
        """A call at its end."""
        detail = body.detail or Detail()
        update: Fields = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": body.call_id,
            "name": body.name,
            "status": _STATUS.get(body.outcome, "failed"),
            "rawOutput": text_of(body.content),
        }
        if not body.is_error and detail.diffs:
            update["content"] = [diff_of((one.path, one.old, one.new) for one in detail.diffs)]
        elif terminal:
            update["content"] = [calls.terminal_content(terminal)]
        else:
            update["content"] = calls.blocks_of(body.content)
        if detail.locations:
            update["locations"] = [
                {"path": place.path} if place.line is None or place.line < 1
                else {"path": place.path, "line": place.line}
                for place in detail.locations
            ]  # fmt: skip
        return update

    def _command_of(self, name: str, args: Fields | None) -> str:
        """The command line, when a call is one."""
        session = self._door.live(self.id)
        tool = session.tool(name) if session is not None else None
        kind = calls.kind_of(name, tool.spec.kind if tool is not None else "")
        command = (args or {}).get("command")
        return command if kind == "execute" and isinstance(command, str) else ""

    def _cwd(self) -> str:
        session = self._door.live(self.id)
        return session.cwd if session is not None else "/"

    def _title(self, title: str, at: int) -> bytes:
        update = {"sessionUpdate": "session_info_update", "title": title, "updatedAt": stamp(at)}
        return self.line(update)

    def _usage(self) -> tuple[bytes, ...]:
        session = self._door.live(self.id)
        return self.usage_of(session) if session is not None else ()

    def usage_of(self, state: Any) -> tuple[bytes, ...]:
        """How full the model's context is, and what the session has cost so far."""
        try:
            size = self._door.model(state.model).context_window
        except Fault:
            return ()  # the model is gone from the configuration: its window is not known
        update: Fields = {
            "sessionUpdate": "usage_update",
            "used": min(state.last_usage.context, size),
            "size": size,
        }
        if state.cost:
            update["cost"] = {"amount": state.cost, "currency": "USD"}
        return (self.line(update),)


class Replay:
    """Tells the past of a session to one client, page by page."""

    def __init__(self, speaker: Speaker2) -> None:
        self._speaker = speaker
        self._open: dict[str, ToolCall] = {}
        self._turn = ""

    def lines(self, events: Sequence[Event]) -> list[bytes]:
        out: list[bytes] = []
        speaker = self._speaker
        for event in events:
            match event.body:
                case ev.TurnBegan() as body:
                    self._turn = body.turn
                    out.append(speaker.whole("user_message", body.turn, body.content))
                case ev.Steered() as body:
                    id = steered_id(body, event)
                    out.append(speaker.whole("user_message", id, body.content))
                case ev.Spoke() as body:
                    out += speaker.rest(body, 0, 0)
                    self._take(body.content)
                case ev.CallRefined() as body:
                    self._open[body.call_id] = ToolCall(body.call_id, body.name, body.args)
                case ev.CallEnded() as body:
                    out += self._ended(body)
                case ev.Planned() as body:
                    out.append(speaker.line(plan_update(body)))
                case ev.Compacted() as body:
                    out.append(speaker.line(compaction_update(body, event)))
                case ev.Seeded() as body:
                    for place, message in enumerate(body.messages):
                        out += self._message(message, seeded_id(place))
                case _:
                    continue
        return out

    def rest(self) -> list[bytes]:
        """Calls that have no end yet."""
        return [self._speaker.line(self._speaker.call(call)) for call in self._open.values()]

    def _take(self, content: Sequence[Any]) -> None:
        self._open |= {block.id: block for block in content if isinstance(block, ToolCall)}

    def _message(self, message: Message, id: str) -> list[bytes]:
        speaker = self._speaker
        if message.role == "user":
            said = [block for block in message.content if isinstance(block, Text | Image)]
            return [speaker.whole("user_message", id, said)] if said else []
        out: list[bytes] = []
        thought = "".join(b.text for b in message.content if isinstance(b, Thinking))
        text = text_of(message.content)
        if thought:
            out.append(speaker.whole("agent_thought", id, [Text(thought)]))
        if text:
            out.append(speaker.whole("agent_message", id, [Text(text)]))
        self._take(message.content)
        for block in message.content:
            if isinstance(block, ToolResult):
                outcome: ev.CallOutcome = "failed" if block.is_error else "done"
                ended = ev.CallEnded(
                    id, block.call_id, block.name, outcome, block.content, block.is_error,
                    block.detail,
                )  # fmt: skip
                out += self._ended(ended)
        return out

    def _ended(self, body: ev.CallEnded) -> list[bytes]:
        speaker = self._speaker
        call = self._open.pop(body.call_id, None) or ToolCall(body.call_id, body.name, {})
        command = speaker._command_of(call.name, call.args)
        ran = command and body.outcome in ("done", "failed", "cancelled")
        terminal = f"term-{body.turn}-{body.call_id}" if ran else ""
        out = [speaker.line({**speaker.call(call), **speaker.result(body, terminal)})]
        if terminal:
            code = body.detail.exit_code if body.detail is not None else None
            shown = {
                "sessionUpdate": "terminal_update",
                "terminalId": terminal,
                "command": command,
                "cwd": speaker._cwd(),
                "output": {"data": _base64(text_of(body.content))},
                "exitStatus": {"exitCode": code} if code is not None and code >= 0 else {},
            }
            out.append(speaker.line(shown))
        return out


def stop_of(body: ev.TurnEnded) -> Fields:
    """Why a turn ended, as members of the idle state."""
    if body.outcome in ("cancelled", "interrupted"):
        return {"stopReason": "cancelled"}
    if body.stop in _STOPS and (body.outcome == "completed" or body.stop == "max_steps"):
        return {"stopReason": _STOPS[body.stop]}
    text = " ".join((body.error or body.stop).split())
    return {"stopReason": "error", "error": {"code": -32603, "message": text}}


def plan_update(body: ev.Planned) -> Fields:
    entries = [
        {"content": one.content, "priority": one.priority, "status": one.status}
        for one in body.entries
    ]
    plan = {"type": "items", "planId": "main", "entries": entries}
    return {"sessionUpdate": "plan_update", "plan": plan}


def compaction_update(body: ev.Compacted, event: Event) -> Fields:
    return {
        "sessionUpdate": "compaction_update",
        "compactionId": f"compaction-{event.seq}",
        "status": "completed",
        "summary": [{"type": "text", "text": body.summary}],
    }


def _base64(text: str) -> str:
    return b64encode(text.encode("utf-8", "replace")).decode()


_TELL: dict[type, Any] = {
    ev.TextDelta: Speaker2._delta,
    ev.ThoughtDelta: Speaker2._thinking,
    ev.TurnBegan: Speaker2._began,
    ev.Steered: Speaker2._steered,
    ev.Spoke: Speaker2._spoke,
    ev.CallStarted: Speaker2._started,
    ev.CallRefined: Speaker2._refined,
    ev.CallEnded: Speaker2._ended,
    ev.Progress: Speaker2._progress,
    ev.Planned: Speaker2._planned,
    ev.Renamed: Speaker2._renamed,
    ev.ModeSet: Speaker2._option_set,
    ev.ModelSet: Speaker2._option_set,
    ev.ReasoningSet: Speaker2._option_set,
    ev.Compacted: Speaker2._compacted,
    ev.Noted: Speaker2._noted,
    ev.Asked: Speaker2._asked,
    ev.Settled: Speaker2._settled,
    ev.TurnEnded: Speaker2._over,
    ev.StepBegan: Speaker2._mark,
    ev.Retrying: Speaker2._mark,
    ev.Deleted: Speaker2._mark,
}
