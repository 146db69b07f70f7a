"""Messages, models and usage in pi's shapes."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

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
from dragoman.engine.ports import ModelInfo

STOPS = {
    "end_turn": "stop",
    "tool_use": "toolUse",
    "length": "length",
    "aborted": "aborted",
    "refusal": "error",
    "max_steps": "error",
    "error": "error",
}


def content(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for block in blocks:
        match block:
            case Text(text=text):
                made.append({"type": "text", "text": text})
            case Image(mime_type=mime_type, data=data):
                encoded = b64encode(data).decode()
                made.append({"type": "image", "data": encoded, "mimeType": mime_type})
            case Thinking(text=text, signature=signature):
                thought: dict[str, Any] = {"type": "thinking", "thinking": text}
                if signature:
                    thought["thinkingSignature"] = signature
                made.append(thought)
            case ToolCall():
                made.append(tool_call(block))
    return made


def tool_call(call: ToolCall) -> dict[str, Any]:
    return {"type": "toolCall", "id": call.id, "name": call.name, "arguments": call.args or {}}


def user(blocks: Iterable[Block], at: int) -> dict[str, Any]:
    return {"role": "user", "content": content(blocks), "timestamp": at}


def assistant(
    blocks: Iterable[Block],
    at: int,
    model: str,
    stop: str,
    used: Usage = Usage(),  # noqa: B008 - frozen
    cost: float = 0.0,
    error: str = "",
) -> dict[str, Any]:
    provider, _, name = model.partition("/")
    made = {
        "role": "assistant",
        "content": content(blocks),
        "api": "dragoman",
        "provider": provider,
        "model": name,
        "usage": usage(used, cost),
        "stopReason": stop,
        "timestamp": at,
    }
    if error:
        made["errorMessage"] = error
    return made


def tool_result(result: ToolResult, at: int) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": result.call_id,
        "toolName": result.name,
        "content": content(result.content),
        "isError": result.is_error,
        "timestamp": at,
    }


def usage(used: Usage, cost: float) -> dict[str, Any]:
    total = used.input + used.output + used.cache_read + used.cache_write
    return {
        "input": used.input,
        "output": used.output,
        "cacheRead": used.cache_read,
        "cacheWrite": used.cache_write,
        "totalTokens": total,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost},
    }


def history(messages: Sequence[Message], model: str) -> list[dict[str, Any]]:
    """What was said, as `get_messages` has it: each tool's result is a message of its own."""
    made: list[dict[str, Any]] = []
    for said in messages:
        if said.role == "assistant":
            calls = any(isinstance(block, ToolCall) for block in said.content)
            made.append(assistant(said.content, said.at, model, "toolUse" if calls else "stop"))
            continue
        results = [block for block in said.content if isinstance(block, ToolResult)]
        made += [tool_result(block, said.at) for block in results]
        rest = [block for block in said.content if not isinstance(block, ToolResult)]
        if rest or not results:
            made.append(user(rest, said.at))
    return made


def model(info: ModelInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "name": info.name or info.id,
        "api": "dragoman",
        "provider": info.provider,
        "baseUrl": "",
        "reasoning": info.reasoning,
        "input": ["text", "image"] if info.vision else ["text"],
        "cost": {
            "input": info.price_input or 0,
            "output": info.price_output or 0,
            "cacheRead": info.price_cache_read or 0,
            "cacheWrite": info.price_cache_write or 0,
        },
        "contextWindow": info.context_window,
        "maxTokens": info.max_output,
    }
