"""What one session takes over from the history of another."""

from collections.abc import Sequence

from .content import Message, Text, ToolCall, ToolResult

ELSEWHERE = "not run here: this call belongs to the session that this one was copied from"


def copied(messages: Sequence[Message]) -> tuple[Message, ...]:
    """A history in which every call has a result, also those that are still under way there."""
    answered = {
        block.call_id for m in messages for block in m.content if isinstance(block, ToolResult)
    }
    made: list[Message] = []
    missing: list[ToolResult] = []
    for message in messages:
        if missing and message.role != "tool":
            made.append(Message("tool", tuple(missing), made[-1].at))
            missing = []
        if missing:
            message = Message("tool", (*message.content, *missing), message.at)
            missing = []
        made.append(message)
        missing = [
            ToolResult(block.id, (Text(ELSEWHERE),), True, block.name)
            for block in message.content
            if isinstance(block, ToolCall) and block.id not in answered
        ]
    if missing:
        made.append(Message("tool", tuple(missing), made[-1].at))
    return tuple(made)
