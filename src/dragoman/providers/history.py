"""History as providers want it: every call answered, right after it was made."""

from base64 import b64encode
from collections.abc import Sequence

import msgspec

from dragoman.engine.content import Image, Message, Text, ToolCall, ToolResult

_LOST = (Text("No result was recorded for this call."),)


def tidy(messages: Sequence[Message]) -> list[Message]:
    """Messages where one `tool` message with all results follows each message with calls.

    A cancelled turn or a crash may leave calls without results; providers refuse such a history.
    """
    found: list[Message] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.role == "tool":
            continue  # no call before it
        found.append(message)
        calls = [block for block in message.content if isinstance(block, ToolCall)]
        if message.role != "assistant" or not calls:
            continue
        results: dict[str, ToolResult] = {}
        between: list[Message] = []
        while index < len(messages) and messages[index].role != "assistant":
            following = messages[index]
            index += 1
            if following.role == "tool":
                for block in following.content:
                    if isinstance(block, ToolResult):
                        results.setdefault(block.call_id, block)
            else:
                between.append(following)
        answers = tuple(_answer(call, results.get(call.id)) for call in calls)
        found.append(Message("tool", answers, message.at))
        found.extend(between)
    return found


def _answer(call: ToolCall, result: ToolResult | None) -> ToolResult:
    if result is None:
        return ToolResult(call.id, _LOST, True, call.name)
    return result if result.name else msgspec.structs.replace(result, name=call.name)


def data_url(image: Image) -> str:
    return f"data:{image.mime_type};base64,{b64encode(image.data).decode()}"


def result_text(result: ToolResult) -> str:
    """The text of a result, for formats that have no error flag."""
    text = "".join(part.text for part in result.content if isinstance(part, Text))
    if result.is_error:
        return f"{text}\n[the tool failed]" if text else "[the tool failed]"
    return text or "(no output)"
