"""A session's events as zot's: one speaker per connection, since it also answers its prompts.

The order is the protocol's: response, user_message, then for each model call turn_start,
assistant_start, deltas, usage, assistant_message, tool_call…, turn_end; after it the results of the
tools; at the very end `error` if the turn failed, and `done`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dragoman.engine import events as ev
from dragoman.engine import shown
from dragoman.engine.content import Block, Image, Message, Text, ToolCall, ToolResult, Usage
from dragoman.engine.events import Ask, Event
from dragoman.engine.visible import visible
from dragoman.holding import Holder
from dragoman.wire.link import Blob

from .faults import CANCELLED, REFUSED
from .frames import clock_time, frame, money, success, text_delta

DONE = b'{"type":"done"}'
_ASSISTANT_START = b'{"type":"assistant_start"}'


# --- messages and their content: pictures are byte counts, thoughts are left out ---


def blocks(content: Iterable[Block]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text=text):
                if text:
                    made.append({"text": text, "type": "text"})
            case Image(mime_type=mime_type, data=data):
                made.append({"bytes": len(data), "mime_type": mime_type, "type": "image"})
            case ToolCall(id=call_id, name=name, args=args):
                made.append({"args": args, "id": call_id, "name": name, "type": "tool_call"})
            case ToolResult(call_id=call_id, content=inner, is_error=is_error):
                made.append({
                    "call_id": call_id,
                    "content": result_blocks(inner),
                    "is_error": is_error,
                    "type": "tool_result",
                })  # fmt: skip
    return made


def result_blocks(content: Iterable[Text | Image]) -> list[dict[str, Any]]:
    """A tool's output; an empty text stays, it is the whole result."""
    return [
        {"text": block.text, "type": "text"}
        if isinstance(block, Text)
        else {"bytes": len(block.data), "mime_type": block.mime_type, "type": "image"}
        for block in content
    ]


def message(said: Message) -> dict[str, Any]:
    made = {"content": blocks(said.content), "role": said.role, "time": clock_time(said.at)}
    return {**made, "cut": True} if said.cut else made


def usage(tokens: Usage, cost: float) -> dict[str, Any]:
    return {
        "cache_read": tokens.cache_read,
        "cache_write": tokens.cache_write,
        "cost_usd": money(cost),
        "input": tokens.input,
        "output": tokens.output,
    }


# --- events ---


class Words(Holder):
    """Frames that take their place among events which are held for a slow reader.

    `compacting` is True when they begin a compaction of this connection, False when they end one.
    """

    frames: Sequence[bytes]
    compacting: bool | None = None


class Speaker(Holder):
    """Implements `engine.hub.Shape` for one connection.

    `waiting` has the prompts of this connection that have not begun: turn -> request id. The `done`
    of its own turns is left to the connection, which says it when the session is free again
    (`owes_done`), so that a client may clear at once.
    """

    used: Usage
    cost: float
    _is_own: Callable[[str], bool]
    waiting: dict[str, str] = {}
    compacting: bool = False  # a compaction of this connection runs; its end is told elsewhere
    owes_done: bool = False
    later: list[Words] = []  # words that are held and not said yet
    _step: int = 0  # the model call that has begun and not ended; 0: none
    _started: bool = False  # assistant_start was said for it
    _out: list[bytes] = []

    def speak(self, events: Sequence[Event]) -> Blob | None:
        out = self._out = []
        for event in events:
            say = _SAY.get(type(event.body))
            if say is not None:
                say(self, event.body, event.at)
        return Blob(out) if out else None

    def _say(self, **fields: Any) -> None:
        self._out.append(frame(fields))

    # --- a turn ---

    def turn_began(self, body: ev.TurnBegan, at: int) -> None:
        if self.owes_done:
            self.owes_done = False
            self._out.append(DONE)
        request_id = self.waiting.pop(body.turn, None)
        if request_id is not None:
            self._out.append(success("prompt", request_id, {"started": True}))
        self._step, self._started = 0, False
        self.user_message(body, at)

    def user_message(self, body: ev.TurnBegan | ev.Steered, at: int) -> None:
        self._say(content=blocks(body.content), time=clock_time(at), type="user_message")

    def turn_ended(self, body: ev.TurnEnded, at: int) -> None:
        if self._step:  # the model call never came to its end
            if body.outcome == "failed":
                self._end_step("error", body.error)
            else:
                self._end_step("aborted", CANCELLED)
        if body.outcome == "failed":
            self._say(message=body.error, type="error")
        elif body.stop == "refusal":
            self._say(message=REFUSED, type="error")
        if self._is_own(body.turn):
            self.owes_done = True
        else:
            self._out.append(DONE)

    # --- a model call ---

    def step_began(self, body: ev.StepBegan, at: int) -> None:
        self._step, self._started = body.step, False
        self._say(step=body.step, type="turn_start")

    def stream_opened(self, body: ev.StreamOpened, at: int) -> None:
        self._open(body.step)

    def _open(self, step: int) -> None:
        """Say what must have been said before anything of the answer."""
        if self._step != step:
            self.step_began(ev.StepBegan("", step), 0)
        if not self._started:
            self._started = True
            self._out.append(_ASSISTANT_START)

    def text(self, body: ev.TextDelta, at: int) -> None:
        self._out.append(text_delta(body.text))

    def call_drafted(self, body: ev.CallDrafted, at: int) -> None:
        self._say(id=body.call_id, name=body.name, type="tool_use_start")

    def call_args(self, body: ev.CallArgs, at: int) -> None:
        if body.fragment:
            self._say(delta=body.fragment, id=body.call_id, type="tool_use_args")

    def call_ready(self, body: ev.CallReady, at: int) -> None:
        self._say(id=body.call_id, type="tool_use_end")

    def retrying(self, body: ev.Retrying, at: int) -> None:
        """What was streamed is void: that call ends as an error and begins again."""
        self._say(
            attempt=body.attempt,
            delay_ms=round(body.delay * 1000),
            message=body.reason,
            type="retry",
        )
        step = self._step
        if step and self._started:
            self._end_step("error", body.reason)
            self._open(step)

    def spoke(self, body: ev.Spoke, at: int) -> None:
        self._open(body.step)
        self.used = self.used + body.usage
        self.cost += body.cost
        per_call = usage(body.usage, body.cost)
        self._say(**per_call, cumulative=usage(self.used, self.cost), type="usage")
        if body.content:
            content = blocks(body.content)
            self._say(content=content, time=clock_time(at), type="assistant_message")
        for block in body.content:
            if isinstance(block, ToolCall):
                self._say(args=block.args, id=block.id, name=block.name, type="tool_call")
        if body.stop == "refusal":
            self._end_step("error", REFUSED)
        elif body.stop == "aborted":
            self._end_step("aborted", CANCELLED)
        else:
            self._end_step(body.stop, body.error)

    def _end_step(self, stop: str, error: str = "") -> None:
        self._step, self._started = 0, False
        if error:
            self._say(error=error, stop=stop, type="turn_end")
        else:
            self._say(stop=stop, type="turn_end")

    # --- tools and questions ---

    def progress(self, body: ev.Progress, at: int) -> None:
        self._say(id=body.call_id, text=body.text, type="tool_progress")

    def call_ended(self, body: ev.CallEnded, at: int) -> None:
        content = result_blocks(body.content)
        self._say(content=content, id=body.call_id, is_error=body.is_error, type="tool_result")

    def asked(self, body: ev.Asked, at: int) -> None:
        self._say(**request(body.ask), type="approval_request")

    def settled(self, body: ev.Settled, at: int) -> None:
        who = body.by
        by = (who.name or who.peer or who.dialect) if who else ""
        more: dict[str, Any] = {"dialect": who.dialect} if who else {}
        if body.scope:
            more |= {"remembered": visible(body.scope), "rule": body.rule}
        self._say(
            **more, approval=body.ask_id, by=by, decision=body.verdict, type="approval_settled"
        )

    # --- the rest ---

    def compacted(self, body: ev.Compacted, at: int) -> None:
        if not body.automatic:
            self._say(summary=body.summary, type="compact_done")
            if not self.compacting:
                self._out.append(DONE)

    def words(self, body: Words, at: int) -> None:
        if body in self.later:
            self.later.remove(body)
            self._out.extend(body.frames)
            if body.compacting is not None:
                self.compacting = body.compacting

    def lagged(self, body: ev.Lagged, at: int) -> None:
        self._say(dropped=body.dropped, type="lagged")


def request(ask: Ask) -> dict[str, Any]:
    """What a client is told of an open question."""
    made: dict[str, Any] = {
        "approval": ask.id,
        "args": ask.args,
        "call_id": ask.call_id,
        "kind": ask.kind,
        "name": ask.tool,
        "summary": visible(ask.summary, strict=True),
        "title": shown.title(ask),
    }
    if ask.choices:
        made["choices"] = ask.choices
    if ask.kind == "tool":
        made["question"] = shown.whole(ask)
    if ask.digest:
        made["digest"] = ask.digest
    if ask.scopes:
        made["scopes"] = [
            {"id": scope.id, "lasts": scope.lasts, "name": words}
            for words, scope in shown.offers(ask)
        ]
    if ask.risk:
        made["risk"] = ask.risk
    if ask.reason:
        made["reason"] = ask.reason
    if ask.expires_at is not None:
        made["expires"] = clock_time(ask.expires_at)
    return made


_SAY: dict[type, Callable[[Speaker, Any, int], None]] = {
    ev.TurnBegan: Speaker.turn_began,
    ev.Steered: Speaker.user_message,
    ev.TurnEnded: Speaker.turn_ended,
    ev.StepBegan: Speaker.step_began,
    ev.StreamOpened: Speaker.stream_opened,
    ev.TextDelta: Speaker.text,
    ev.CallDrafted: Speaker.call_drafted,
    ev.CallArgs: Speaker.call_args,
    ev.CallReady: Speaker.call_ready,
    ev.Retrying: Speaker.retrying,
    ev.Spoke: Speaker.spoke,
    ev.Progress: Speaker.progress,
    ev.CallEnded: Speaker.call_ended,
    ev.Asked: Speaker.asked,
    ev.Settled: Speaker.settled,
    ev.Compacted: Speaker.compacted,
    ev.Lagged: Speaker.lagged,
    Words: Speaker.words,
}
EVENTS = (
    "approval_request", "approval_settled", "assistant_message", "assistant_start", "compact_done",
    "done", "error", "lagged", "retry", "text_delta", "tool_call", "tool_progress", "tool_result",
    "tool_use_args", "tool_use_end", "tool_use_start", "turn_end", "turn_start", "usage",
    "user_message", "waiting",
)  # fmt: skip
