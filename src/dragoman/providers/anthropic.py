"""Anthropic's Messages API."""

import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman.engine.content import (
    Block,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelCallEnded,
    ModelPart,
    ModelRequest,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
    ToolSpec,
)

from . import failures
from .estimate import output_room
from .history import tidy
from .reading import PartReader

REDACTED = "redacted:"  # signature of a thought that the provider keeps to itself
_FOREIGN = ("openai:", "google:")
_BUDGETS = {
    "minimum": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 49_152,
}
_EFFORTS = {"minimum": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
_STOPS = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "pause_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_CACHED = {"type": "ephemeral"}


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct, gc=False):
    usage: _Usage | None = None


class _Block(msgspec.Struct, gc=False):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: dict[str, Any] | None = None


class _Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Event(msgspec.Struct, gc=False):
    type: str
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: failures.ErrorBody | None = None


_decode = msgspec.json.Decoder(_Event).decode


class AnthropicReader(PartReader):
    """Reads the events of one message."""

    _calls: dict[int, str] = {}
    _with_args: set[int] = msgspec.field(default_factory=set)
    _inputs: dict[int, dict[str, Any]] = {}
    _signatures: dict[int, str] = {}
    _usage: Usage = Usage()
    _stop: str = "end_turn"

    def take(self, data: bytes) -> Sequence[ModelPart]:
        event = _decode(data)
        kind, delta = event.type, event.delta
        if kind == "content_block_delta" and delta is not None:
            return self._delta(event.index, delta)
        if kind == "content_block_start" and event.content_block is not None:
            return self._began(event.index, event.content_block)
        if kind == "content_block_stop":
            return self._ended(event.index)
        if kind == "message_start" and event.message is not None:
            return self._count(event.message.usage)
        if kind == "message_delta":
            if delta is not None and delta.stop_reason:
                self._stop = _STOPS.get(delta.stop_reason, "end_turn")
            return self._count(event.usage)
        if kind == "message_stop":
            self.finished = True
            return (ModelStop(cast(Any, self._stop)),)
        if kind == "error":
            error = event.error or failures.ErrorBody()
            raise failures.from_event(self._provider, error, self._secret)
        return ()

    def _delta(self, index: int, delta: _Delta) -> Sequence[ModelPart]:
        if delta.type == "text_delta":
            return (ModelText(delta.text),) if delta.text else ()
        if delta.type == "input_json_delta":
            call_id = self._calls.get(index)
            if call_id is None or not delta.partial_json:
                return ()
            self._with_args.add(index)
            return (ModelCallArgs(call_id, delta.partial_json),)
        if delta.type == "thinking_delta":
            return (ModelThought(delta.thinking),) if delta.thinking else ()
        if delta.type == "signature_delta":
            self._signatures[index] = self._signatures.get(index, "") + delta.signature
        return ()

    def _began(self, index: int, block: _Block) -> Sequence[ModelPart]:
        if block.type == "tool_use":
            self._calls[index] = block.id
            self._inputs[index] = block.input or {}
            return (ModelCallBegan(block.id, block.name),)
        if block.type == "text" and block.text:
            return (ModelText(block.text),)
        if block.type == "thinking":
            self._signatures[index] = block.signature
            return (ModelThought(block.thinking),) if block.thinking else ()
        if block.type == "redacted_thinking":
            self._signatures[index] = REDACTED + block.data
        return ()

    def _ended(self, index: int) -> Sequence[ModelPart]:
        signature = self._signatures.pop(index, "")
        if signature:
            return (ModelThought("", signature),)
        call_id = self._calls.pop(index, None)
        if call_id is None:
            return ()
        if index not in self._with_args:
            # No fragments came: the whole input stood in the block's beginning.
            raw = msgspec.json.encode(self._inputs.get(index) or {}).decode()
            return (ModelCallArgs(call_id, raw), ModelCallEnded(call_id))
        return (ModelCallEnded(call_id),)

    def _count(self, usage: _Usage | None) -> Sequence[ModelPart]:
        if usage is None:
            return ()
        old = self._usage
        self._usage = Usage(
            _or(usage.input_tokens, old.input),
            _or(usage.output_tokens, old.output),
            _or(usage.cache_read_input_tokens, old.cache_read),
            _or(usage.cache_creation_input_tokens, old.cache_write),
        )
        return (ModelUsage(self._usage),)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


class Anthropic:
    """The format of the Messages API."""

    reader = AnthropicReader
    serves = frozenset({"web_search"})

    def path(self, request: ModelRequest) -> str:
        return "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, request: ModelRequest) -> bytes:
        messages = tidy(request.messages)
        body: dict[str, Any] = {
            "model": request.model.id,
            "max_tokens": output_room(request),
            "stream": True,
            "messages": _messages(messages),
        }
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
        if request.tools:
            body["tools"] = [_tool(spec) for spec in request.tools]
            body["tools"][-1]["cache_control"] = _CACHED
        version = _version(request.model.id)
        _think(body, request, messages, version)
        if request.temperature is not None and "thinking" not in body and version < (4, 7):
            body["temperature"] = request.temperature
        return msgspec.json.encode(body)


def _version(model: str) -> tuple[int, int]:
    """The generation in a model's id: claude-opus-4-6 → (4, 6)."""
    runs = "".join(letter if letter.isdecimal() else " " for letter in model).split()
    numbers = [run for run in runs if len(run) <= 2]
    return (int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0) if numbers else (0, 0)


def _think(
    body: dict[str, Any],
    request: ModelRequest,
    messages: list[Message],
    version: tuple[int, int],
) -> None:
    level = request.reasoning
    if not request.model.reasoning or level in ("", "off") or _open_without_thought(messages):
        return
    if version >= (4, 6):  # these choose the length of their thoughts themselves
        body["thinking"] = {"type": "adaptive"}
        if version >= (4, 7):  # these keep their thoughts to themselves unless asked
            body["thinking"]["display"] = "summarized"
        effort = "max" if level == "max" else _EFFORTS.get(level, "medium")
        if level == "xhigh" and version >= (4, 7):
            effort = "xhigh"
        body["output_config"] = {"effort": effort}
        return
    budget = _BUDGETS.get(level, 8_192)
    limit = request.model.max_output
    body["max_tokens"] = min(max(body["max_tokens"], budget + 4_096), max(limit, 2_048))
    budget = max(1_024, min(budget, body["max_tokens"] - 1_024))
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _open_without_thought(messages: list[Message]) -> bool:
    """Whether the turn goes on after calls that were made without thinking.

    The API refuses to switch thinking on in the middle of such a turn.
    """
    if len(messages) < 2 or messages[-1].role != "tool":
        return False
    return not any(isinstance(block, Thinking) and _ours(block) for block in messages[-2].content)


def _ours(thought: Thinking) -> bool:
    return bool(thought.signature) and not thought.signature.startswith(_FOREIGN)


def _messages(messages: list[Message]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [made for block in message.content if (made := _block(block)) is not None]
        if not blocks:
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"].extend(blocks)
        else:
            found.append({"role": role, "content": blocks})
    if found and found[-1]["role"] == "user":
        found[-1]["content"][-1]["cache_control"] = _CACHED
    return found


def _block(block: Block) -> dict[str, Any] | None:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text} if block.text.strip() else None
    if isinstance(block, Image):
        return _image(block)
    if isinstance(block, Thinking):
        if not _ours(block):
            return None
        if block.signature.startswith(REDACTED):
            return {"type": "redacted_thinking", "data": block.signature.removeprefix(REDACTED)}
        return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    if isinstance(block, ToolCall):
        return {
            "type": "tool_use",
            "id": _id(block.id),
            "name": block.name,
            "input": block.args or {},
        }
    return _result(block)


def _result(result: ToolResult) -> dict[str, Any]:
    content = [made for part in result.content if (made := _block(part)) is not None]
    made = {"type": "tool_result", "tool_use_id": _id(result.call_id), "content": content}
    if result.is_error:
        made["is_error"] = True
    return made


def _image(image: Image) -> dict[str, Any]:
    source = {
        "type": "base64",
        "media_type": image.mime_type,
        "data": b64encode(image.data).decode(),
    }
    return {"type": "image", "source": source}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    if spec.served:
        return {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    return {"name": spec.name, "description": spec.description, "input_schema": spec.schema}


def _id(call_id: str) -> str:
    """The id in the letters that the API takes; calls may come from another provider."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)
