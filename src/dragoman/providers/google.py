"""Google's generateContent stream."""

import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec

from dragoman.engine.content import Image, Message, Thinking, ToolCall, ToolResult, Usage
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

from . import failures
from .estimate import output_room
from .history import result_text, tidy
from .reading import PartReader

_SIGNED = "google:"
# The documented stand-in for calls that were made by another model.
_UNSIGNED = "skip_thought_signature_validator"
_BUDGETS = {"off": 0, "minimum": 512, "low": 2_048, "medium": 8_192, "high": 16_384}
_BROKEN = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE")


class _Call(msgspec.Struct, gc=False):
    name: str
    args: dict[str, Any] | None = None
    id: str | None = None


class _Part(msgspec.Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _Call | None = None


class _Content(msgspec.Struct, gc=False):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, gc=False, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Usage(msgspec.Struct, gc=False, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Feedback(msgspec.Struct, gc=False, rename="camel"):
    block_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Usage | None = None
    prompt_feedback: _Feedback | None = None
    error: failures.ErrorBody | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class GoogleReader(PartReader):
    """Reads the chunks of one answer. The last chunk is known only by the end of the stream."""

    _called: bool = False
    _reason: str = ""

    def take(self, data: bytes) -> Sequence[ModelPart]:
        chunk = _decode(data)
        if chunk.error is not None:
            raise failures.from_event(self._provider, chunk.error, self._secret)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            self._reason = "BLOCKED"
        parts: list[ModelPart] = []
        for candidate in (chunk.candidates or ())[:1]:
            for part in (candidate.content and candidate.content.parts) or ():
                self._part(part, parts)
            if candidate.finish_reason:
                self._reason = candidate.finish_reason
                if self._reason in _BROKEN:
                    said = candidate.finish_message or self._reason
                    raise ProviderFailed(f"{self._provider} made a broken call: {said}", "server")
        if chunk.usage_metadata is not None:
            parts.append(ModelUsage(_usage(chunk.usage_metadata)))
        return parts

    def end(self) -> Sequence[ModelPart]:
        if not self._reason:
            return ()
        self.finished = True
        if self._reason == "MAX_TOKENS":
            return (ModelStop("length"),)
        if self._reason not in ("STOP", "FINISH_REASON_UNSPECIFIED"):
            return (ModelStop("refusal"),)
        return (ModelStop("tool_use" if self._called else "end_turn"),)

    def _part(self, part: _Part, parts: list[ModelPart]) -> None:
        if part.text:
            parts.append(ModelThought(part.text) if part.thought else ModelText(part.text))
        if part.thought_signature:
            parts.append(ModelThought("", _SIGNED + part.thought_signature))
        call = part.function_call
        if call is not None:
            self._called = True
            call_id = call.id or f"call_{uuid4().hex[:24]}"
            raw = msgspec.json.encode(call.args or {}).decode()
            parts += (
                ModelCallBegan(call_id, call.name),
                ModelCallArgs(call_id, raw),
                ModelCallEnded(call_id),
            )


def _usage(usage: _Usage) -> Usage:
    cached = usage.cached_content_token_count or 0
    thoughts = usage.thoughts_token_count or 0
    sent = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
    return Usage(
        input=max(0, sent - cached),
        output=(usage.candidates_token_count or 0) + thoughts,
        cache_read=cached,
        reasoning=thoughts,
    )


class Google:
    """The format of streamGenerateContent."""

    reader = GoogleReader

    def path(self, request: ModelRequest) -> str:
        return f"/v1beta/models/{request.model.id}:streamGenerateContent?alt=sse"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def body(self, request: ModelRequest) -> bytes:
        options: dict[str, Any] = {"maxOutputTokens": output_room(request)}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        if request.model.reasoning:
            options["thinkingConfig"] = _thinking(request)
        body: dict[str, Any] = {
            "contents": _contents(tidy(request.messages), _generation(request.model.id) >= 3),
            "generationConfig": options,
        }
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_tool(spec) for spec in request.tools]}]
        return msgspec.json.encode(body)


def _generation(model: str) -> int:
    match = re.match(r"gemini-(\d+)", model)
    return int(match[1]) if match else 0


def _thinking(request: ModelRequest) -> dict[str, Any]:
    config: dict[str, Any] = {"includeThoughts": True}
    level = request.reasoning
    if not level:
        return config
    if _generation(request.model.id) >= 3:
        config["thinkingLevel"] = _level(request.model.id, level)
        return config
    budget = _BUDGETS.get(level, 24_576)
    if budget == 0 and "pro" in request.model.id:
        budget = 128  # the least that these models take
    config["thinkingBudget"] = budget
    return config


def _level(model: str, level: str) -> str:
    """The level's word; only the flash models have more than two."""
    if "flash" in model:
        words = {"off": "minimal", "minimum": "minimal", "low": "low", "medium": "medium"}
        return words.get(level, "high")
    return "low" if level in ("off", "minimum", "low") else "high"


def _contents(messages: list[Message], strict: bool) -> list[dict[str, Any]]:
    """The history. `strict` models want a signature on the first call of each step."""
    found: list[dict[str, Any]] = []
    for message in messages:
        role = "model" if message.role == "assistant" else "user"
        parts = _parts(message, strict)
        if not parts:
            continue
        if found and found[-1]["role"] == role:
            found[-1]["parts"].extend(parts)
        else:
            found.append({"role": role, "parts": parts})
    return found


def _parts(message: Message, strict: bool) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    signature, called = "", False
    for block in message.content:
        if isinstance(block, Thinking):
            if block.signature.startswith(_SIGNED):
                signature = block.signature.removeprefix(_SIGNED)
            continue
        if isinstance(block, ToolResult):
            parts.append(_response(block))
            parts += [_picture(part) for part in block.content if isinstance(part, Image)]
            continue
        if isinstance(block, Image):
            parts.append(_picture(block))
            continue
        if isinstance(block, ToolCall):
            made: dict[str, Any] = {"functionCall": {"name": block.name, "args": block.args or {}}}
            if strict and not called and not signature:
                signature = _UNSIGNED
            called = True
        elif block.text:
            made = {"text": block.text}
        else:
            continue
        if signature:
            made["thoughtSignature"], signature = signature, ""
        parts.append(made)
    return parts


def _response(result: ToolResult) -> dict[str, Any]:
    field = "error" if result.is_error else "output"
    return {"functionResponse": {"name": result.name, "response": {field: result_text(result)}}}


def _picture(image: Image) -> dict[str, Any]:
    data = b64encode(image.data).decode()
    return {"inlineData": {"mimeType": image.mime_type, "data": data}}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "parametersJsonSchema": spec.schema,
    }
