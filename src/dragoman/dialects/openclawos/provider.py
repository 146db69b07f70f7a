"""Model providers that apps offer."""

from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelCallEnded,
    ModelInfo,
    ModelOpened,
    ModelPart,
    ModelRequest,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
)
from dragoman.wire.codec import encode

from .faults import Wrong
from .invoke import CapabilityUse

if TYPE_CHECKING:
    from .grants import Grant

_STOPS = frozenset({"end_turn", "tool_use", "length", "refusal"})
_FAILURES = {"TIMEOUT": "network", "CONNECTION_CLOSED": "network", "UNAUTHORIZED": "auth",
             "FORBIDDEN": "auth", "INVALID_PARAMS": "bad_request", "NOT_FOUND": "bad_request",
             "CONFLICT": "overloaded"}  # fmt: skip


def models_of(grant: "Grant") -> tuple[ModelInfo, ...]:
    """The models that a provider's config, or else the manifest, names; none: any model."""
    given = grant.config.get("models")
    named = given if isinstance(given, list) and given else list(grant.seat.manifest.models)
    return tuple(model for one in named if (model := _model(grant.name, one)) is not None)


def _model(provider: str, given: object) -> ModelInfo | None:
    if isinstance(given, str) and given:
        return ModelInfo(provider, given.removeprefix(f"{provider}/"))
    if not isinstance(given, dict) or not isinstance(given.get("id"), str) or not given["id"]:
        return None
    return ModelInfo(
        provider,
        given["id"],
        name=str(given.get("name") or ""),
        context_window=_number(given.get("contextWindow"), 128_000),
        max_output=_number(given.get("maxOutput"), 8_192),
        reasoning=given.get("reasoning") is True,
        vision=given.get("vision") is True,
    )


def _number(given: object, default: int) -> int:
    return given if type(given) is int and given > 0 else default


class AppProvider:
    """Implements `ports.Provider` by asking an app."""

    def __init__(self, grant: "Grant") -> None:
        self._grant = grant
        self.name = grant.name

    async def close(self) -> None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        context = {"sessionKey": self._grant.seat.desk.key_of(request.session)}
        opened = called = False
        stop = ""
        try:
            results = CapabilityUse(self._grant).results(asked(request), context)
            async with aclosing(results) as found:
                async for said in found:
                    if not opened:
                        opened = True
                        yield ModelOpened()
                    if isinstance(said, str):
                        said = {"text": said}
                    if not isinstance(said, dict):
                        continue
                    for part in _parts(said):
                        called = called or isinstance(part, ModelCallBegan)
                        yield part
                    if isinstance(given := said.get("stop"), str) and given:
                        stop = given
        except Wrong as wrong:
            kind = _FAILURES.get(wrong.wire, "server")
            raise ProviderFailed(f"{self.name}: {wrong.message}", kind) from None
        reason = stop if stop in _STOPS else ("tool_use" if called else "end_turn")
        yield ModelStop(reason)  # type: ignore[arg-type]


def _parts(said: dict[str, Any]) -> list[ModelPart]:
    """The parts that one answer of the app stands for."""
    made: list[ModelPart] = []
    if isinstance(said.get("thinking"), str) and said["thinking"]:
        made.append(ModelThought(said["thinking"]))
    if isinstance(said.get("text"), str) and said["text"]:
        made.append(ModelText(said["text"]))
    calls = said.get("toolCalls")
    for call in (said.get("toolCall"), *(calls if isinstance(calls, list) else ())):
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            made += _call(call)
    usage = said.get("usage")
    if isinstance(usage, dict):
        names = ("input", "output", "cacheRead", "cacheWrite", "reasoning")
        made.append(ModelUsage(Usage(*(_number(usage.get(name), 0) for name in names))))
    return made


def _call(call: dict[str, Any]) -> list[ModelPart]:
    from uuid import uuid4

    given = call.get("id")
    call_id = given if isinstance(given, str) and given else f"call_{uuid4().hex[:12]}"
    args = call.get("arguments", {})
    text = args if isinstance(args, str) else encode(args).decode()
    return [
        ModelCallBegan(call_id, call["name"]),
        ModelCallArgs(call_id, text),
        ModelCallEnded(call_id),
    ]


def asked(request: ModelRequest) -> dict[str, Any]:
    """A model request as an app sees it."""
    made: dict[str, Any] = {
        "model": request.model.id,
        "system": request.system,
        "messages": [_message(message) for message in request.messages],
        "tools": [
            {"name": t.name, "description": t.description, "parameters": t.schema}
            for t in request.tools
        ],
    }
    if request.reasoning:
        made["reasoning"] = request.reasoning
    if request.max_output is not None:
        made["maxOutput"] = request.max_output
    if request.temperature is not None:
        made["temperature"] = request.temperature
    return made


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [_block(block) for block in message.content]}


def _block(block: object) -> dict[str, Any]:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(mime_type=mime_type, data=data):
            return {"type": "image", "mimeType": mime_type, "data": b64encode(data).decode()}
        case Thinking(text=text):
            return {"type": "thinking", "thinking": text}
        case ToolCall(id=id, name=name, args=args):
            return {"type": "toolCall", "id": id, "name": name, "arguments": args or {}}
        case ToolResult():
            return _result(block)
    return {"type": "text", "text": ""}


def _result(block: ToolResult) -> dict[str, Any]:
    content: Sequence[Any] = block.content
    return {
        "type": "toolResult",
        "callId": block.call_id,
        "name": block.name,
        "content": [_block(one) for one in content],
        "isError": block.is_error,
    }
