"""OpenAI's Chat Completions, as OpenAI and the many compatible servers speak it."""

import re
from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4

import msgspec

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.engine.faults import ProviderFailed
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
from dragoman.holding import Holder

from . import failures
from .estimate import output_room
from .history import data_url, result_text, tidy
from .presets import EffortStyle
from .reading import PartReader

_STOPS = {
    "stop": "end_turn",
    "length": "length",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None
    usage: _Usage | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: failures.ErrorBody | str | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class ChatReader(PartReader):
    """Reads the chunks of one completion."""

    _calls: dict[int, str] = {}
    _given: dict[int, str] = {}  # the ids as the server has them
    _reason: str = ""

    def take(self, data: bytes) -> Sequence[ModelPart]:
        if data == b"[DONE]":
            return self._finish()
        chunk = _decode(data)
        if chunk.error is not None:
            raise failures.from_event(self._provider, chunk.error, self._secret)
        parts: list[ModelPart] = []
        usage = chunk.usage
        if chunk.choices:
            choice = chunk.choices[0]
            usage = usage or choice.usage
            if choice.delta is not None:
                self._delta(choice.delta, parts)
            if choice.finish_reason:
                self._reason = choice.finish_reason
                if self._reason == "error":
                    raise ProviderFailed(f"{self._provider} broke off the answer", "server")
        if usage is not None:
            parts.append(ModelUsage(_usage(usage)))
        return parts

    def end(self) -> Sequence[ModelPart]:
        # Some servers leave out [DONE]; a finish reason is as good.
        return self._finish() if self._reason and not self.finished else ()

    def _finish(self) -> Sequence[ModelPart]:
        self.finished = True
        stop = _STOPS.get(self._reason, "end_turn")
        if self._calls and stop == "end_turn":
            stop = "tool_use"
        ended: list[ModelPart] = [ModelCallEnded(call_id) for call_id in self._calls.values()]
        return [*ended, ModelStop(cast(Any, stop))]

    def _delta(self, delta: _Delta, parts: list[ModelPart]) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            parts.append(ModelThought(thought))
        if isinstance(delta.content, str):
            if delta.content:
                parts.append(ModelText(delta.content))
        elif delta.content:
            for block in delta.content:
                parts.extend(_typed(block))
        if delta.refusal:
            parts.append(ModelText(delta.refusal))
        for place, call in enumerate(delta.tool_calls or ()):
            self._call(place, call, parts)

    def _call(self, place: int, call: _Call, parts: list[ModelPart]) -> None:
        function = call.function or _Function()
        index = call.index
        if index is None:  # some servers number nothing: a new id is a new call
            known = [at for at, known_id in self._calls.items() if known_id == call.id]
            if known:
                index = known[0]
            else:
                new = bool(call.id or function.name)
                index = len(self._calls) if new else max(len(self._calls) - 1, place)
        call_id = self._calls.get(index)
        given = self._given.get(index, "")
        if call_id and call.id and given and call.id != given and function.name:
            # Some servers give every call the same number.
            parts.append(ModelCallEnded(call_id))
            call_id = None
        if call_id is None:
            taken = call.id in self._given.values()  # and some the same id
            call_id = (not taken and call.id) or f"call_{uuid4().hex[:24]}"
            self._calls[index] = call_id
            self._given[index] = call.id or ""
            parts.append(ModelCallBegan(call_id, function.name or ""))
        arguments = function.arguments
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if arguments:
            parts.append(ModelCallArgs(call_id, arguments))


def _typed(block: dict[str, Any]) -> list[ModelPart]:
    """Mistral sends reasoning and text as lists of typed blocks."""
    if block.get("type") == "thinking":
        inner = block.get("thinking") or []
        return [ModelThought(text) for one in inner if (text := one.get("text"))]
    text = block.get("text")
    return [ModelText(text)] if text else []


def _usage(usage: _Usage) -> Usage:
    prompt = usage.prompt_tokens_details
    output = usage.completion_tokens_details
    cached = (prompt.cached_tokens if prompt else None) or 0
    cached = cached or usage.prompt_cache_hit_tokens or usage.cached_tokens or 0
    written = (prompt.cache_write_tokens if prompt else None) or 0
    return Usage(
        input=max(0, (usage.prompt_tokens or 0) - cached - written),
        output=usage.completion_tokens or 0,
        cache_read=cached,
        cache_write=written,
        reasoning=(output.reasoning_tokens if output else None) or 0,
    )


class OpenAIChat(Holder, kw_only=True):
    """The format of Chat Completions.

    `effort` says how a server takes the reasoning effort; `returns_thoughts` is for servers that
    want a turn's reasoning back while its tools run.
    """

    reader = ChatReader

    effort: EffortStyle = "openai"
    returns_thoughts: bool = False

    def path(self, request: ModelRequest) -> str:
        return "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> bytes:
        model = request.model
        body: dict[str, Any] = {
            "model": model.id,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": self._messages(request),
        }
        if request.tools:
            body["tools"] = [_tool(spec) for spec in request.tools]
        native = self.effort == "openai"
        # A model that no catalogue knows gets no limit: a guess may be more than it can take.
        if request.max_output or model.price_input is not None:
            field = "max_completion_tokens" if native and model.reasoning else "max_tokens"
            body[field] = output_room(request)
        if request.temperature is not None and not (native and model.reasoning):
            body["temperature"] = request.temperature
        if model.reasoning and request.reasoning:
            self._think(body, request)
        return msgspec.json.encode(body)

    def _think(self, body: dict[str, Any], request: ModelRequest) -> None:
        level = request.reasoning
        if self.effort == "openai":
            body["reasoning_effort"] = openai_effort(request.model.id, level)
        elif self.effort == "openrouter":
            if level == "off":
                body["reasoning"] = {"enabled": False}
            else:
                body["reasoning"] = {"effort": _PLAIN.get(level, level)}
        elif self.effort == "plain" and level != "off":
            body["reasoning_effort"] = _PLAIN.get(level, level)

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if request.system:
            found.append({"role": "system", "content": request.system})
        messages = tidy(request.messages)
        turn = max((n for n, m in enumerate(messages) if m.role == "user"), default=-1)
        for number, message in enumerate(messages):
            if message.role == "user":
                found.append({"role": "user", "content": _content(message)})
            elif message.role == "assistant":
                made = _assistant(message)
                thoughts = [b.text for b in message.content if isinstance(b, Thinking)]
                if self.returns_thoughts and number > turn and any(thoughts):
                    made["reasoning_content"] = "".join(thoughts)
                if len(made) > 1:
                    found.append(made)
            else:
                found.extend(_results(message))
        return found


_PLAIN = {"minimum": "low", "xhigh": "high", "max": "high"}


def openai_effort(model: str, level: str) -> str:
    """The effort word of OpenAI's own models, which differs by generation."""
    if match := re.match(r"gpt-(\d+)(?:\.(\d+))?", model):
        version = (int(match[1]), int(match[2] or 0))
        none = "low" if "codex" in model else "none"
        if version == (5, 0):
            words = {"off": "minimal", "minimum": "minimal", "xhigh": "high", "max": "high"}
        elif version == (5, 1):
            words = {"off": none, "minimum": "low", "xhigh": "high", "max": "high"}
        else:
            words = {"off": none, "minimum": "low", "max": "xhigh"}
        return words.get(level, level)
    return {"off": "low", **_PLAIN}.get(level, level)


def _content(message: Message) -> str | list[dict[str, Any]]:
    if all(isinstance(block, Text) for block in message.content):
        return "".join(cast(Text, block).text for block in message.content)
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            parts.append(_picture(block))
    return parts


def _picture(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def _assistant(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"role": "assistant"}
    text = "".join(block.text for block in message.content if isinstance(block, Text))
    if text:
        made["content"] = text
    calls = [block for block in message.content if isinstance(block, ToolCall)]
    if calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for call in calls
        ]
    return made


def arguments(call: ToolCall) -> str:
    """The call's arguments as JSON text; servers refuse text that is none."""
    return msgspec.json.encode(call.args or {}).decode()


def _results(message: Message) -> list[dict[str, Any]]:
    """One message per result; pictures follow as the user's, `tool` takes only text."""
    found: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ToolResult):
            found.append(
                {"role": "tool", "tool_call_id": block.call_id, "content": result_text(block)}
            )
            pictures += [_picture(part) for part in block.content if isinstance(part, Image)]
    if pictures:
        note = {"type": "text", "text": "Pictures from the tool results:"}
        found.append({"role": "user", "content": [note, *pictures]})
    return found


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}
