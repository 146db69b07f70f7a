"""What people, models and tools say to each other: messages made of typed blocks.

None of them can be part of a reference cycle (their values are plain data), so the garbage
collector need not look at them: a host may hold hundreds of thousands.
"""

from typing import Any, Literal

import msgspec

Role = Literal["user", "assistant", "tool"]
ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]


class Text(msgspec.Struct, frozen=True, tag="text", gc=False):
    text: str


class Image(msgspec.Struct, frozen=True, tag="image", gc=False):
    """A picture. JSON carries `data` as base64; in memory it is the decoded bytes."""

    mime_type: str
    data: bytes


class Thinking(msgspec.Struct, frozen=True, tag="thinking", gc=False):
    """The model's reasoning. `signature` is opaque and must go back to the provider unchanged."""

    text: str
    signature: str = ""


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", gc=False):
    """A call the model asked for; `args` is None when its JSON (kept in `raw`) did not parse."""

    id: str
    name: str
    args: dict[str, Any] | None
    raw: str = ""


class Diff(msgspec.Struct, frozen=True, gc=False):
    """What a tool changed in one file. `old` is None for a new file."""

    path: str
    old: str | None
    new: str


class Location(msgspec.Struct, frozen=True, gc=False):
    path: str
    line: int | None = None


class Detail(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What clients may show of a tool's work beside its text."""

    diffs: tuple[Diff, ...] = ()
    locations: tuple[Location, ...] = ()
    exit_code: int | None = None
    full_output: str | None = None  # file that holds the output when the text was cut
    terminal_id: str | None = None  # a client's own terminal, when the tool ran there
    output: tuple[int, int] | None = None  # where in the text the command's own output is
    raw: bytes | None = None  # that output as it was, when it is no UTF-8

    def printed(self, text: str) -> bytes | None:
        """What a command printed, to the byte; None: the text does not hold all of it."""
        if self.raw is not None:
            return self.raw
        if self.output is None or self.full_output is not None:
            return None
        return text[slice(*self.output)].encode("utf-8", "replace")


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", gc=False):
    call_id: str
    content: tuple[Text | Image, ...]
    is_error: bool = False
    name: str = ""
    detail: Detail | None = None


Block = Text | Image | Thinking | ToolCall | ToolResult
Prompt = tuple[Text | Image, ...]


class Message(msgspec.Struct, frozen=True, gc=False):
    role: Role
    content: tuple[Block, ...]
    at: int = 0  # milliseconds since the epoch
    cut: bool | msgspec.UnsetType = msgspec.UNSET  # True: it was broken off


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one model call, or a sum of calls. `input` excludes what the cache served."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )

    @property
    def context(self) -> int:
        """Tokens that this call put into the model's context window."""
        return self.input + self.output + self.cache_read + self.cache_write


class PlanEntry(msgspec.Struct, frozen=True, gc=False):
    content: str
    priority: Literal["high", "medium", "low"] = "medium"
    status: Literal["pending", "in_progress", "completed"] = "pending"


def text_of(content: tuple[Block, ...]) -> str:
    """The plain text of a message, without thinking, calls or pictures."""
    if len(content) == 1 and type(content[0]) is Text:  # most are just that
        return content[0].text
    return "".join(block.text for block in content if isinstance(block, Text))


def not_streamed(text: str, streamed: str) -> tuple[str, bool]:
    """What of a text was not streamed; whether it goes on where the stream ended.

    Words in passing may be lost, what is kept may not: when some in the middle are missing, it is
    the whole text.
    """
    follows = text.startswith(streamed)
    return text[len(streamed) :] if follows else text, follows


def picture_type(head: bytes) -> str:
    """The type that a picture's first bytes tell, of those that models see; empty: none of them."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else ""
