"""OpenAI's Responses API, which keeps the reasoning of its models across tool calls."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
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
from .history import data_url, result_text, tidy
from .openai_chat import OutputDetails, arguments, openai_effort
from .reading import PartReader

_SIGNED = "openai:"  # signature of a reasoning item: its id and encrypted content as JSON


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str = ""


class _Response(msgspec.Struct, gc=False):
    usage: _Usage | None = None
    error: failures.ErrorBody | None = None
    incomplete_details: _Incomplete | None = None


class _Item(msgspec.Struct, gc=False):
    type: str = ""
    id: str = ""
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    encrypted_content: str | None = None


class _Event(msgspec.Struct, gc=False):
    type: str
    delta: str | None = None
    item_id: str = ""
    summary_index: int = 0
    item: _Item | None = None
    response: _Response | None = None
    message: str | None = None
    code: str | int | None = None
    error: failures.ErrorBody | None = None


class _Signature(msgspec.Struct, gc=False):
    id: str
    encrypted_content: str


_decode = msgspec.json.Decoder(_Event).decode


class ResponsesReader(PartReader):
    """Reads the events of one response."""

    _calls: dict[str, str] = {}  # item id → call id
    _with_args: set[str] = msgspec.field(default_factory=set)
    _called: bool = False
    _refused: bool = False

    def take(self, data: bytes) -> Sequence[ModelPart]:
        if data == b"[DONE]":
            return ()
        event = _decode(data)
        kind = event.type
        if kind == "response.output_text.delta":
            return (ModelText(event.delta),) if event.delta else ()
        if kind == "response.function_call_arguments.delta":
            call_id = self._calls.get(event.item_id)
            if call_id is None or not event.delta:
                return ()
            self._with_args.add(event.item_id)
            return (ModelCallArgs(call_id, event.delta),)
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            return (ModelThought(event.delta),) if event.delta else ()
        if kind == "response.reasoning_summary_part.added":
            return (ModelThought("\n\n"),) if event.summary_index else ()
        if kind == "response.refusal.delta":
            self._refused = True
            return (ModelText(event.delta),) if event.delta else ()
        if kind == "response.output_item.added" and event.item is not None:
            return self._began(event.item)
        if kind == "response.output_item.done" and event.item is not None:
            return self._ended(event.item)
        if kind in ("response.completed", "response.incomplete"):
            return self._finish(event.response or _Response(), kind)
        if kind in ("response.failed", "error"):
            raise self._failure(event)
        return ()

    def _began(self, item: _Item) -> Sequence[ModelPart]:
        if item.type != "function_call":
            return ()
        self._calls[item.id] = item.call_id
        self._called = True
        return (ModelCallBegan(item.call_id, item.name),)

    def _ended(self, item: _Item) -> Sequence[ModelPart]:
        if item.type == "reasoning" and item.encrypted_content:
            signature = _Signature(item.id, item.encrypted_content)
            return (ModelThought("", _SIGNED + msgspec.json.encode(signature).decode()),)
        if item.type != "function_call":
            return ()
        parts: list[ModelPart] = []
        if item.id not in self._calls:
            parts += self._began(item)
        if item.id not in self._with_args and item.arguments:
            parts.append(ModelCallArgs(item.call_id, item.arguments))
        return [*parts, ModelCallEnded(item.call_id)]

    def _finish(self, response: _Response, kind: str) -> Sequence[ModelPart]:
        self.finished = True
        parts: list[ModelPart] = []
        if response.usage is not None:
            parts.append(ModelUsage(_usage(response.usage)))
        if kind == "response.incomplete":
            reason = response.incomplete_details.reason if response.incomplete_details else ""
            parts.append(ModelStop("refusal" if reason == "content_filter" else "length"))
        elif self._called:
            parts.append(ModelStop("tool_use"))
        else:
            parts.append(ModelStop("refusal" if self._refused else "end_turn"))
        return parts

    def _failure(self, event: _Event) -> Exception:
        error = event.error or (event.response.error if event.response else None)
        if error is None:
            error = failures.ErrorBody(message=event.message or "", code=event.code)
        return failures.from_event(self._provider, error, self._secret)


def _usage(usage: _Usage) -> Usage:
    cached = (usage.input_tokens_details and usage.input_tokens_details.cached_tokens) or 0
    details = usage.output_tokens_details
    return Usage(
        input=max(0, (usage.input_tokens or 0) - cached),
        output=usage.output_tokens or 0,
        cache_read=cached,
        reasoning=(details and details.reasoning_tokens) or 0,
    )


class OpenAIResponses:
    """The format of the Responses API, without storage on the server."""

    reader = ResponsesReader
    serves = frozenset({"web_search"})

    def path(self, request: ModelRequest) -> str:
        return "/responses"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> bytes:
        model = request.model
        body: dict[str, Any] = {
            "model": model.id,
            "stream": True,
            "store": False,
            "input": [item for message in tidy(request.messages) for item in _items(message)],
        }
        if request.system:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = [_tool(spec) for spec in request.tools]
        if request.max_output or model.price_input is not None:
            body["max_output_tokens"] = output_room(request)
        if model.reasoning:
            body["include"] = ["reasoning.encrypted_content"]
            body["reasoning"] = {"summary": "auto"}
            if request.reasoning:
                body["reasoning"]["effort"] = openai_effort(model.id, request.reasoning)
        elif request.temperature is not None:
            body["temperature"] = request.temperature
        return msgspec.json.encode(body)


def _items(message: Message) -> list[dict[str, Any]]:
    if message.role == "user":
        content = [_input(b) for b in message.content if isinstance(b, Text | Image)]
        return [{"type": "message", "role": "user", "content": content}] if content else []
    items: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, Text) and block.text:
            content = [{"type": "output_text", "text": block.text}]
            items.append({"type": "message", "role": "assistant", "content": content})
        elif isinstance(block, Thinking) and block.signature.startswith(_SIGNED):
            items.append(_reasoning(block))
        elif isinstance(block, ToolCall):
            items.append(
                {
                    "type": "function_call",
                    "call_id": block.id,
                    "name": block.name,
                    "arguments": arguments(block),
                }
            )
        elif isinstance(block, ToolResult):
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": block.call_id,
                    "output": _output(block),
                }
            )
    return items


def _reasoning(thought: Thinking) -> dict[str, Any]:
    signature = msgspec.json.decode(thought.signature.removeprefix(_SIGNED), type=_Signature)
    summary = [{"type": "summary_text", "text": thought.text}] if thought.text else []
    return {
        "type": "reasoning",
        "id": signature.id,
        "summary": summary,
        "encrypted_content": signature.encrypted_content,
    }


def _output(result: ToolResult) -> str | list[dict[str, Any]]:
    pictures = [_input(part) for part in result.content if isinstance(part, Image)]
    if not pictures:
        return result_text(result)
    return [{"type": "input_text", "text": result_text(result)}, *pictures]


def _input(block: Text | Image) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "input_text", "text": block.text}
    return {"type": "input_image", "image_url": data_url(block)}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    if spec.served:
        return {"type": "web_search"}
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.schema,
        "strict": False,
    }
