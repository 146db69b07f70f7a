"""Makes a history fit: old results of tools are the first to be shortened, and only for the model.

What is kept stays whole. The place up to which results are shortened moves in large steps, so that
a provider's cache holds from one step to the next.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from dragoman.engine.content import Image, Message, Text, ToolResult

_STEP = 20  # messages by which the place moves
_LEFT = 400  # characters of a shortened result that stay
_LARGE = 2_000  # shorter results are left alone
SHARE = 0.6  # of the context window, from which results are shortened


def fitted(messages: Sequence[Message], used: int, window: int) -> tuple[Message, ...]:
    """The messages as they are sent; `used` is what the last request took."""
    if not window or used < SHARE * window:
        return tuple(messages)
    until = (len(messages) - _STEP) // _STEP * _STEP
    return shortened(messages, until, _LARGE) if until > 0 else tuple(messages)


def squeezed(messages: Sequence[Message]) -> tuple[Message, ...]:
    """As little as possible: every large result but those of the last step, and half of those."""
    last = max((n for n, one in enumerate(messages) if one.role == "assistant"), default=0)
    return shortened(shortened(messages, last, _LEFT), len(messages), 16_000)


def shortened(messages: Sequence[Message], until: int, large: int) -> tuple[Message, ...]:
    """The messages with the large results of the first ones cut."""
    return tuple(
        _cut(one, large) if number < until and one.role == "tool" else one
        for number, one in enumerate(messages)
    )


def _cut(message: Message, large: int) -> Message:
    blocks = []
    for block in message.content:
        if isinstance(block, ToolResult):
            parts = tuple(_short(part, large) for part in block.content)
            block = replace(block, content=parts)
        blocks.append(block)
    return replace(message, content=tuple(blocks))


def _short(part: Text | Image, large: int) -> Text | Image:
    if isinstance(part, Image):
        return Text("[an image, left out to make room]")
    if len(part.text) <= large:
        return part
    keep = min(_LEFT, large // 2)
    left = len(part.text) - 2 * keep
    middle = f"\n... [{left} characters left out to make room; call again if needed]\n"
    return Text(part.text[:keep] + middle + part.text[-keep:])
