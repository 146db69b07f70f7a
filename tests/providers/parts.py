"""What the provider tests share: requests, and streams read to their end."""

from collections.abc import AsyncIterator
from typing import Any

from dragoman.engine.content import Message, Text
from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelInfo,
    ModelPart,
    ModelRequest,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
    ToolSpec,
)
from dragoman.providers.retry import RetryRules

QUICK = RetryRules(retries=3, base=0.01, cap=0.02)
READ = ToolSpec("read", "Read a file", {"type": "object", "properties": {"path": {}}})


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def request(model: ModelInfo, *messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(model, more.pop("system", ""), messages or (user("hi"),), **more)


class Seen:
    """Everything a stream gave, and how it ended."""

    def __init__(self) -> None:
        self.parts: list[ModelPart] = []
        self.failure: ProviderFailed | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ModelText))

    @property
    def thought(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ModelThought))

    @property
    def calls(self) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for part in self.parts:
            if isinstance(part, ModelCallBegan):
                found[part.id] = (part.name, "")
            elif isinstance(part, ModelCallArgs):
                name, raw = found[part.id]
                found[part.id] = (name, raw + part.fragment)
        return found

    @property
    def usage(self) -> Any:
        return [part.usage for part in self.parts if isinstance(part, ModelUsage)][-1]

    @property
    def stop(self) -> str | None:
        last = self.parts[-1] if self.parts else None
        return last.reason if isinstance(last, ModelStop) else None

    def kinds(self) -> list[str]:
        return [type(part).__name__ for part in self.parts]


async def read(stream: AsyncIterator[ModelPart]) -> Seen:
    seen = Seen()
    try:
        async for part in stream:
            seen.parts.append(part)
    except ProviderFailed as failure:
        seen.failure = failure
    return seen
