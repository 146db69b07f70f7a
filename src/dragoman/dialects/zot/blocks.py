"""Messages and content blocks in zot's shape. Pictures are byte counts, thoughts are left out."""

from collections.abc import Iterable
from typing import Any

from dragoman.engine.content import Block, Image, Message, Text, ToolCall, ToolResult, Usage

from .frames import clock_time, money


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
