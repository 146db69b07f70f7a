"""Events of a session as version 2 tells them: messages and calls with ids, states, terminals.

One `Speaker2` serves all connections of version 2 in a session, since nothing of it depends on what
a client can do. A `Replay` tells the past: each message, call and terminal once, as it is now.
"""

from base64 import b64encode
from collections.abc import Sequence
from signal import Signals
from typing import Any

from dragoman.engine import events as ev
from dragoman.engine.content import (
    Block,
    Detail,
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
from dragoman.wire.codec import encode, to_safe

from . import calls
from .changes import diff_of
from .quirks import ALL
from .speak import (
    SAME,
    Said,
    Teller,
    compaction_update,
    ended_of,
    given,
    is_given,
    plan_update,
    said_id,
    seeded_id,
    state_of,
    steered_id,
    stop_of,
    usage_of_turn,
)

Fields = dict[str, Any]
_CANCEL: Fields = {"capabilities": {"cancel": {}}}
_STATUS = {"done": "completed", "cancelled": "cancelled"}


class Speaker2(Teller):
    """Implements `engine.hub.Shape` for one session."""

    second = True
    nowhere = "/"
    chunk = b'{"sessionUpdate":"%s_chunk","messageId":'

    def __init__(self, door: Door, session_id: str, parent: str = "") -> None:
        super().__init__(door, session_id, ALL, parent)
        self._terminals: dict[str, str] = {}  # calls that run -> their terminal; "": it has none
        self._streamed: dict[str, int] = {}  # bytes of output that were told, by terminal
        self._spent = Usage()  # by the model in this turn

    # --- lines ---

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

    def prompt(self, body: ev.TurnBegan) -> bytes:
        """What a turn is to do, and who said so."""
        if self._parent and is_given(body):
            return self.line(given(body, self._parent, self.id))
        return self.whole("user_message", body.turn, body.content)

    def has_terminal(self, call_id: str) -> bool:
        """Whether a call runs a command now."""
        return bool(self._terminals.get(call_id))

    def state(self, state: str, **more: Any) -> bytes:
        return self.line({"sessionUpdate": "state_update", "state": state, **more})

    def current(self) -> bytes:
        """The state as it is now."""
        return self.state(**state_of(self._door.live(self.id)))

    # --- events ---

    def _began(self, body: ev.TurnBegan, event: Event) -> Said:
        lines = (self.prompt(body), self.state("running"), *self._first_title(event.at))
        return Said(lines, body)

    def _steered(self, body: ev.Steered, event: Event) -> Said:
        return Said((self.whole("user_message", steered_id(body, event), body.content),), body)

    def _spoke(self, body: ev.Spoke, event: Event) -> Said:
        self._spent += body.usage
        return super()._spoke(body, event)

    def rest(self, body: ev.Spoke, texts: int, thoughts: int) -> list[bytes]:
        """Put right what was streamed of a message, when that is not the message."""
        return self.said(said_id(body.turn, body.step), body.content, texts, thoughts)

    def said(
        self, id: str, content: tuple[Block, ...], texts: int = 0, thoughts: int = 0
    ) -> list[bytes]:
        """What a model said, unless so many characters of it are known."""
        lines: list[bytes] = []
        thought = "".join(b.text for b in content if isinstance(b, Thinking))
        text = text_of(content)
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
        session = self._door.live(self.id)
        can = _CANCEL if session is not None and session.can_stop(body.call_id) else {}
        command = self._command_of(body.name, body.args)
        terminal = terminal_id(body.turn, body.call_id) if command else ""
        self._terminals[body.call_id] = terminal
        if not terminal:
            return Said((self.line(update | can),), body)
        update["content"] = [calls.terminal_content(terminal)]
        return Said(
            (self.line(update | can), self.line(self.terminal(terminal, command, can))), body
        )

    def terminal(self, id: str, command: str, more: Fields) -> Fields:
        """A terminal in which a command runs, or ran."""
        update = {"sessionUpdate": "terminal_update", "terminalId": id, "command": command}
        return {**update, "cwd": self._cwd(), **more}

    def _terminal_of(self, turn: str, call_id: str) -> str:
        """The terminal of a call that runs, also of one that ran before anybody watched."""
        known = self._terminals.get(call_id)
        if known is not None:
            return known
        session = self._door.live(self.id)
        blocks = (b for m in reversed(session.messages) for b in m.content) if session else ()
        for block in blocks:
            if isinstance(block, ToolCall) and block.id == call_id:
                known = (
                    terminal_id(turn, call_id) if self._command_of(block.name, block.args) else ""
                )
                break
        self._terminals[call_id] = known = known or ""
        return known

    def _refined(self, body: ev.CallRefined, event: Event) -> Said:
        update = self.call(ToolCall(body.call_id, body.name, body.args))
        del update["status"]
        return Said((self.line(update),), body)

    def _progress(self, body: ev.Progress, event: Event) -> Said:
        terminal = self._terminal_of(body.turn, body.call_id)
        if not terminal:
            update: Fields = {
                "sessionUpdate": "tool_call_content_chunk",
                "toolCallId": body.call_id,
                "content": calls.text_content(body.text),
            }
        else:
            data = _bytes(body.text)
            self._streamed[terminal] = self._streamed.get(terminal, 0) + len(data)
            update = {
                "sessionUpdate": "terminal_output_chunk",
                "terminalId": terminal,
                "data": b64encode(data).decode(),
            }
        return Said((self.line(update),), body)

    def _ended(self, body: ev.CallEnded, event: Event) -> Said:
        ran = body.call_id in self._terminals or body.detail is not None and body.detail.output
        terminal = self._terminal_of(body.turn, body.call_id) if ran else ""
        self._terminals.pop(body.call_id, None)
        update = {**self.result(body, terminal), "capabilities": None}
        if not terminal:
            return Said((self.line(update),), body)
        told = self._streamed.pop(terminal, None)
        shown: Fields = {"sessionUpdate": "terminal_update", "terminalId": terminal}
        printed = printed_by(body)
        if told is None or printed is not None and told != len(printed):
            shown["output"] = output_of(body, printed)
        shown |= {"exitStatus": exit_of(body), "capabilities": None}
        return Said((self.line(shown), self.line(update)), body)

    def _asked(self, body: ev.Asked, event: Event) -> Said:
        return Said((), body, live=(self.state("requires_action"),))

    def _settled(self, body: ev.Settled, event: Event) -> Said:
        session = self._door.live(self.id)
        goes_on = session is not None and session.busy and not session.asks.keys() - {body.ask_id}
        return Said((), body, live=(self.state("running"),) if goes_on else ())

    def _over(self, body: ev.TurnEnded, event: Event) -> Said:
        self._terminals.clear()
        self._streamed.clear()
        spent, self._spent = self._spent, Usage()
        more = {"usage": usage_of_turn(spent)} if spent.context else {}
        return Said((), body, live=(self.state("idle", **stop_of(body), **more),))

    def _deleted(self, body: ev.Deleted, event: Event) -> Said:
        """Nothing more is told of it: what ran is over."""
        if state_of(self._door.live(self.id))["state"] == "idle":
            return Said((), body)
        return Said((), body, live=(self.state("idle", stopReason="cancelled"),))

    # --- parts ---

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
            update["locations"] = calls.places_of(detail)
        return update

    def _command_of(self, name: str, args: Fields | None) -> str:
        """The command line, when a call is one."""
        session = self._door.live(self.id)
        kind = calls.kind_of(name, session)
        command = (args or {}).get("command")
        return command if kind == "execute" and isinstance(command, str) else ""

    def _cwd(self) -> str:
        session = self._door.live(self.id)
        return session.cwd if session is not None else self.nowhere


class Replay:
    """Tells the past of a session to one client, page by page."""

    def __init__(self, speaker: Speaker2) -> None:
        self._speaker = speaker
        self._open: dict[str, ToolCall] = {}
        self._begun: dict[str, str] = {}  # calls that were begun -> their turn

    def lines(self, events: Sequence[Event]) -> list[bytes]:
        out: list[bytes] = []
        speaker = self._speaker
        for event in events:
            match event.body:
                case ev.TurnBegan() as body:
                    out.append(speaker.prompt(body))
                case ev.Steered() as body:
                    id = steered_id(body, event)
                    out.append(speaker.whole("user_message", id, body.content))
                case ev.Spoke() as body:
                    out += speaker.rest(body, 0, 0)
                    self._take(body.content)
                case ev.CallRefined() as body:
                    self._open[body.call_id] = ToolCall(body.call_id, body.name, body.args)
                case ev.CallStarted() as body:
                    self._begun[body.call_id] = body.turn
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
        out: list[bytes] = []
        for call in self._open.values():
            out += self._running(call)
        return out

    def _running(self, call: ToolCall) -> list[bytes]:
        speaker = self._speaker
        update = speaker.call(call)
        turn = self._begun.get(call.id)
        if turn is None:
            return [speaker.line(update)]
        session = speaker._door.live(speaker.id)
        can = _CANCEL if session is not None and session.can_stop(call.id) else {}
        update |= {"status": "in_progress", **can}
        command = speaker._command_of(call.name, call.args)
        if not command:
            return [speaker.line(update)]
        terminal = terminal_id(turn, call.id)
        update["content"] = [calls.terminal_content(terminal)]
        return [speaker.line(update), speaker.line(speaker.terminal(terminal, command, can))]

    def _take(self, content: Sequence[Any]) -> None:
        self._open |= {block.id: block for block in content if isinstance(block, ToolCall)}

    def _message(self, message: Message, id: str) -> list[bytes]:
        speaker = self._speaker
        if message.role == "user":
            said = [block for block in message.content if isinstance(block, Text | Image)]
            return [speaker.whole("user_message", id, said)] if said else []
        out = speaker.said(id, message.content)
        self._take(message.content)
        for block in message.content:
            if isinstance(block, ToolResult):
                out += self._ended(ended_of(block, id))
        return out

    def _ended(self, body: ev.CallEnded) -> list[bytes]:
        speaker = self._speaker
        call = self._open.pop(body.call_id, None) or ToolCall(body.call_id, body.name, {})
        command = speaker._command_of(call.name, call.args)
        ran = command and body.outcome in ("done", "failed", "cancelled")
        self._begun.pop(body.call_id, None)
        terminal = terminal_id(body.turn, body.call_id) if ran else ""
        out = [speaker.line({**speaker.call(call), **speaker.result(body, terminal)})]
        if terminal:
            more = {"output": output_of(body, printed_by(body)), "exitStatus": exit_of(body)}
            out.append(speaker.line(speaker.terminal(terminal, command, more)))
        return out


def terminal_id(turn: str, call_id: str) -> str:
    return f"term-{turn}-{call_id}"


def printed_by(body: ev.CallEnded) -> bytes | None:
    """What a command printed, if that is known to the byte."""
    return body.detail.printed(text_of(body.content)) if body.detail is not None else None


def output_of(body: ev.CallEnded, printed: bytes | None) -> Fields:
    """A terminal's whole output; where it is not known, what the model was given of it."""
    data = _bytes(text_of(body.content)) if printed is None else printed
    return {"data": b64encode(data).decode()}


def exit_of(body: ev.CallEnded) -> Fields:
    """How a command ended; less than nothing stands for a signal."""
    code = body.detail.exit_code if body.detail is not None else None
    if code is None or code >= 0:
        return {"exitCode": code} if code is not None else {}
    try:
        return {"signal": Signals(-code).name}
    except ValueError:
        return {}  # the system has no such signal


def _bytes(text: str) -> bytes:
    """The bytes that a text was made of (`engine.events.Progress`)."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # it has other lone surrogates, which stand for nothing
        return text.encode("utf-8", "replace")


Speaker2.tells = {
    **SAME,
    ev.TurnBegan: Speaker2._began,
    ev.Steered: Speaker2._steered,
    ev.Spoke: Speaker2._spoke,
    ev.CallStarted: Speaker2._started,
    ev.CallRefined: Speaker2._refined,
    ev.CallEnded: Speaker2._ended,
    ev.Progress: Speaker2._progress,
    ev.ModeSet: Speaker2._option_set,
    ev.Asked: Speaker2._asked,
    ev.Settled: Speaker2._settled,
    ev.TurnEnded: Speaker2._over,
    ev.Deleted: Speaker2._deleted,
}
