"""A session's events as pi's. Our turn is pi's agent run, our step is pi's turn.

The order is pi's: agent_start, turn_start, the user's message, the assistant's message with its
updates, all tool_execution_start, their ends, the results in the order of the calls, turn_end, and
so on; agent_end and agent_settled when the run is over and nothing waits to follow.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.content import Block, ToolCall, ToolResult
from dragoman.engine.events import Ask, Event
from dragoman.wire.codec import safe_encode
from dragoman.wire.link import Blob

from . import messages as pi

RETRIES = 3


class Speaker:
    """Implements `engine.hub.Shape` for one connection."""

    def __init__(self, model: str, more: Callable[[], bool], older: bool = False) -> None:
        self.model = model
        self.running = False  # between agent_start and agent_settled
        self.told: Callable[[ev.Settled], bool] = lambda settled: False
        self.delivered: Callable[[ev.Steered], dict[str, Any] | None] = lambda steered: None
        self.compacted_by_hand: Callable[[ev.Compacted], None] = lambda body: None
        self._more = more  # whether something waits to follow the turn
        self._older = older
        self._run: list[dict[str, Any]] = []  # messages of this run
        self._step = False  # turn_start was said, turn_end was not
        self._open = False  # the assistant's message has begun
        self._kind = ""  # of the content block that is being streamed
        self._index = -1
        self._text = ""
        self._call: tuple[str, str] = ("", "")  # id and name of the call that is being drafted
        self._calls: dict[str, ToolCall] = {}  # of this step
        self._ended: dict[str, ToolResult] = {}
        self._progress: dict[str, str] = {}
        self._said: dict[str, Any] = {}  # the assistant's message of this step
        self._retries = 0
        self._out: list[bytes] = []

    def speak(self, events: Sequence[Event]) -> Blob | None:
        out = self._out = []
        for event in events:
            say = _SAY.get(type(event.body))
            if say is not None:
                say(self, event.body, event.at)
        return Blob(out) if out else None

    def _say(self, kind: str, **fields: Any) -> None:
        self._out.append(safe_encode({"type": kind, **fields}))

    # --- a run ---

    def turn_began(self, body: ev.TurnBegan, at: int) -> None:
        if not self.running:
            self.running = True
            self._run = []
            self._say("agent_start")
        self._begin_step()
        self._message(pi.user(body.content, at))

    def steered(self, body: ev.Steered, at: int) -> None:
        self._close_step()
        self._begin_step()
        waiting = self.delivered(body)
        if waiting is not None:
            self._say("queue_update", **waiting)
        self._message(pi.user(body.content, at))

    def turn_ended(self, body: ev.TurnEnded, at: int) -> None:
        if self._open or (self._step and not self._said):
            stop = "error" if body.outcome == "failed" else "aborted"
            self._end_message(
                pi.assistant((), at, self.model, stop, error=body.error or _why(body))
            )
        for call in [one for one in self._calls.values() if one.id not in self._ended]:
            self._end_call(ToolResult(call.id, (), True, call.name), at)
        self._close_step()
        if body.outcome == "completed" and self._more():
            return  # the next one follows in the same run
        self._say("agent_end", messages=self._run, willRetry=False)
        if self._retries and body.outcome == "failed":
            ended = {"success": False, "attempt": self._retries, "finalError": body.error}
            self._say("auto_retry_end", **ended)
        self._retries = 0
        self.running = False
        self._say("agent_settled", aborted=body.outcome in ("cancelled", "interrupted"))

    # --- a step ---

    def _begin_step(self) -> None:
        if not self._step:
            self._step = True
            self._open, self._said = False, {}
            self._calls, self._ended, self._progress = {}, {}, {}
            self._say("turn_start")

    def step_began(self, body: ev.StepBegan, at: int) -> None:
        if not self.running:  # a retry begins the run anew
            self.running = True
            self._say("agent_start")
        if self._said:
            self._close_step()
        self._begin_step()

    def stream_opened(self, body: ev.StreamOpened, at: int) -> None:
        self.step_began(ev.StepBegan(body.turn, body.step), at)
        self._open_message(at)

    def _open_message(self, at: int) -> None:
        if not self._open:
            self._open = True
            self._kind, self._index, self._text = "", -1, ""
            begun = pi.assistant((), at, self.model, "stop" if self._older else "pending")
            self._say("message_start", message=begun)

    def _close_step(self) -> None:
        if self._step:
            self._step = False
            results = [
                pi.tool_result(self._ended[call], 0) for call in self._calls if call in self._ended
            ]
            self._say("turn_end", message=self._said, toolResults=results)

    def _message(self, message: dict[str, Any]) -> None:
        self._run.append(message)
        self._say("message_start", message=message)
        self._say("message_end", message=message)

    # --- the assistant's message ---

    def _update(self, kind: str, **fields: Any) -> None:
        event: dict[str, Any] = {"type": kind, "contentIndex": self._index, **fields}
        if self._older:
            partial = pi.assistant((), 0, self.model, "stop")
            self._say("message_update", assistantMessageEvent={**event, "partial": partial},
                      message=partial)  # fmt: skip
        else:
            self._say("message_update", assistantMessageEvent=event)

    def _block(self, kind: str, **fields: Any) -> None:
        """Begin a content block, unless one of this kind is being streamed."""
        if self._kind != kind:
            self._end_block()
            self._kind, self._text = kind, ""
            self._index += 1
            self._update(f"{kind}_start", **fields)

    def _end_block(self) -> None:
        kind, self._kind = self._kind, ""
        if kind in ("text", "thinking"):
            self._update(f"{kind}_end", content=self._text)
        elif kind == "toolcall":
            try:
                args = msgspec.json.decode(self._text or "{}")
            except msgspec.DecodeError:
                args = {}
            call = ToolCall(*self._call, args if isinstance(args, dict) else {})
            self._update("toolcall_end", toolCall=pi.tool_call(call))

    def text(self, body: ev.TextDelta, at: int) -> None:
        self._delta("text", body.text, at)

    def thought(self, body: ev.ThoughtDelta, at: int) -> None:
        self._delta("thinking", body.text, at)

    def _delta(self, kind: str, text: str, at: int) -> None:
        self._open_message(at)
        self._block(kind)
        self._text += text
        self._update(f"{kind}_delta", delta=text)

    def call_drafted(self, body: ev.CallDrafted, at: int) -> None:
        self._open_message(at)
        self._end_block()
        self._call = (body.call_id, body.name)
        self._block("toolcall", id=body.call_id, toolName=body.name)

    def call_args(self, body: ev.CallArgs, at: int) -> None:
        if self._kind == "toolcall" and body.fragment:
            self._text += body.fragment
            self._update("toolcall_delta", delta=body.fragment)

    def call_ready(self, body: ev.CallReady, at: int) -> None:
        if self._kind == "toolcall":
            self._end_block()

    def spoke(self, body: ev.Spoke, at: int) -> None:
        self.model = body.model or self.model
        self.step_began(ev.StepBegan(body.turn, body.step), at)
        self._open_message(at)
        self._end_block()
        stop = pi.STOPS.get(body.stop, "stop")
        told = (body.content, at, self.model, stop, body.usage, body.cost, body.error)
        self._end_message(pi.assistant(*told))
        if self._retries and stop not in ("error", "aborted"):
            self._say("auto_retry_end", success=True, attempt=self._retries)
            self._retries = 0
        calls = [block for block in body.content if isinstance(block, ToolCall)]
        self._calls = {call.id: call for call in calls}
        for call in calls:
            told_args = {"toolCallId": call.id, "toolName": call.name, "args": call.args or {}}
            self._say("tool_execution_start", **told_args)
        if not calls:
            self._close_step()

    def _end_message(self, message: dict[str, Any]) -> None:
        if not self._open:
            self._say("message_start", message=message)
        self._end_block()
        self._open = False
        self._said = message
        self._run.append(message)
        self._say("message_end", message=message)

    def retrying(self, body: ev.Retrying, at: int) -> None:
        """pi ends the run as an error and begins it again."""
        self._retries = body.attempt
        self._end_message(pi.assistant((), at, self.model, "error", error=body.reason))
        self._close_step()
        self._say("agent_end", messages=self._run, willRetry=True)
        self._run, self.running = [], False
        self._say(
            "auto_retry_start", attempt=body.attempt, maxAttempts=max(RETRIES, body.attempt),
            delayMs=round(body.delay * 1000), errorMessage=body.reason,
        )  # fmt: skip

    # --- tools and questions ---

    def progress(self, body: ev.Progress, at: int) -> None:
        call = self._calls.get(body.call_id)
        if call is not None:
            text = self._progress[call.id] = self._progress.get(call.id, "") + body.text
            partial = {"content": [{"type": "text", "text": text[-50_000:]}]}
            told = {"toolCallId": call.id, "toolName": call.name, "args": call.args or {}}
            self._say("tool_execution_update", **told, partialResult=partial)

    def call_ended(self, body: ev.CallEnded, at: int) -> None:
        if body.call_id in self._calls and body.call_id not in self._ended:
            self._end_call(ToolResult(body.call_id, body.content, body.is_error, body.name), at)

    def _end_call(self, result: ToolResult, at: int) -> None:
        self._ended[result.call_id] = result
        blocks: tuple[Block, ...] = result.content
        told = {"toolCallId": result.call_id, "toolName": result.name}
        self._say("tool_execution_end", **told, result={"content": pi.content(blocks)},
                  isError=result.is_error)  # fmt: skip
        if len(self._ended) == len(self._calls):
            for call_id in self._calls:
                self._message(pi.tool_result(self._ended[call_id], at))
            self._close_step()

    def asked(self, body: ev.Asked, at: int) -> None:
        self._out.append(safe_encode(dialog(body.ask, at)))

    def settled(self, body: ev.Settled, at: int) -> None:
        if not self.told(body):  # pi knows no recall: say that the open dialog is void
            who = body.by
            by = (who.name or who.peer or who.dialect) if who else "somebody"
            text = f"Answered by {by}: {body.verdict}"
            self._say("extension_ui_request", id=f"note-{body.ask_id}", method="notify",
                      message=text, notifyType="info")  # fmt: skip

    # --- the rest ---

    def compacted(self, body: ev.Compacted, at: int) -> None:
        if not body.automatic:
            self.compacted_by_hand(body)
        else:
            name = "auto_compaction" if self._older else "compaction"
            self._say(f"{name}_start", reason="threshold")
            result = {"summary": body.summary, "firstKeptEntryId": "", "tokensBefore": 0}
            ended = {"reason": "threshold", "aborted": False, "willRetry": False}
            self._say(f"{name}_end", **ended, result={**result, "details": {}})

    def renamed(self, body: ev.Renamed, at: int) -> None:
        self._say("session_info_changed", name=body.title)

    def reasoning_set(self, body: ev.ReasoningSet, at: int) -> None:
        self._say("thinking_level_changed", level=level_of(body.effort))

    def model_set(self, body: ev.ModelSet, at: int) -> None:
        self.model = body.model


def _why(body: ev.TurnEnded) -> str:
    return "Request was aborted" if body.outcome != "failed" else "The turn failed"


def level_of(effort: str) -> str:
    """pi's name of an effort."""
    return {"": "medium", "minimum": "minimal", "maximum": "max"}.get(effort, effort)


def dialog(ask: Ask, at: int) -> dict[str, Any]:
    """A question of ours as a dialog of pi's."""
    made: dict[str, Any] = {"type": "extension_ui_request", "id": ask.id}
    if ask.kind == "tool":
        made |= {"method": "confirm", "title": ask.tool or ask.title}
        made["message"] = "\n".join(part for part in (ask.summary or ask.title, ask.reason) if part)
    elif ask.choices:
        made |= {"method": "select", "title": ask.title, "options": ask.choices}
    else:
        made |= {"method": "input", "title": ask.title}
    if ask.expires_at is not None:
        made["timeout"] = max(ask.expires_at - at, 1)
    return made


_SAY: dict[type, Callable[[Speaker, Any, int], None]] = {
    ev.TurnBegan: Speaker.turn_began,
    ev.Steered: Speaker.steered,
    ev.TurnEnded: Speaker.turn_ended,
    ev.StepBegan: Speaker.step_began,
    ev.StreamOpened: Speaker.stream_opened,
    ev.TextDelta: Speaker.text,
    ev.ThoughtDelta: Speaker.thought,
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
    ev.Renamed: Speaker.renamed,
    ev.ReasoningSet: Speaker.reasoning_set,
    ev.ModelSet: Speaker.model_set,
}
