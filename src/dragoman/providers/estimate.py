"""Rough token counts for providers that have no tokenizer."""

from dragoman.engine.content import Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.engine.ports import ModelRequest

_IMAGE_CHARS = 4_000


def message_chars(message: Message) -> int:
    """How many characters a message puts into the context."""
    total = 0
    for block in message.content:
        if isinstance(block, Text | Thinking):
            total += len(block.text)
        elif isinstance(block, ToolCall):
            total += len(block.name) + len(block.raw or str(block.args))
        elif isinstance(block, ToolResult):
            for part in block.content:
                total += len(part.text) if isinstance(part, Text) else _IMAGE_CHARS
        else:
            total += _IMAGE_CHARS
    return total


def request_chars(request: ModelRequest) -> int:
    """How many characters a request puts into the context."""
    return len(request.system) + sum(message_chars(message) for message in request.messages)


def rough_usage(sent: int, output_chars: int, thought_chars: int = 0) -> Usage:
    """Usage at four characters per token, at least one token each way."""
    return Usage(
        input=max(1, sent // 4),
        output=max(1, (output_chars + thought_chars) // 4),
        reasoning=thought_chars // 4,
    )


def output_room(request: ModelRequest) -> int:
    """How many tokens the answer may have: the model's limit, or what the context leaves."""
    wanted = request.max_output or request.model.max_output
    left = request.model.context_window - request_chars(request) // 3
    return max(min(wanted, 1_024), min(wanted, left))
