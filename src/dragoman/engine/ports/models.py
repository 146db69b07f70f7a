"""Models: what is asked of one, what streams back, and who provides it."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from ..content import Message, ToolKind, Usage


class ToolSpec(msgspec.Struct, frozen=True):
    """What the model and the clients are told about a tool."""

    name: str
    description: str
    schema: dict[str, Any]  # JSON Schema of the arguments
    kind: ToolKind = "other"
    repeatable: bool = False  # running it twice does no harm: it may be run again after a crash
    served: bool = False  # the model's own service does it: only told, where the provider has it


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the catalogue. Prices are USD per million tokens; None: not known."""

    provider: str
    id: str
    name: str = ""
    context_window: int = 128_000
    max_output: int = 8_192
    reasoning: bool = False
    vision: bool = False
    price_input: float | None = None
    price_output: float | None = None
    price_cache_read: float | None = None
    price_cache_write: float | None = None

    @property
    def ref(self) -> str:
        return f"{self.provider}/{self.id}"

    def cost(self, usage: Usage) -> float:
        """USD for these tokens; prices that are not known count as zero."""
        return (
            usage.input * (self.price_input or 0.0)
            + usage.output * (self.price_output or 0.0)
            + usage.cache_read * (self.price_cache_read or 0.0)
            + usage.cache_write * (self.price_cache_write or 0.0)
        ) / 1_000_000


class ModelRequest(msgspec.Struct, frozen=True):
    model: ModelInfo
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    reasoning: str = ""  # "", off, minimum, low, medium, high, xhigh, max
    max_output: int | None = None
    temperature: float | None = None
    session: str = ""
    cwd: str = ""


class ModelText(msgspec.Struct, frozen=True, gc=False):
    text: str


class ModelThought(msgspec.Struct, frozen=True, gc=False):
    text: str = ""
    signature: str = ""  # closes the current thought when not empty


class ModelCallBegan(msgspec.Struct, frozen=True, gc=False):
    id: str
    name: str


class ModelCallArgs(msgspec.Struct, frozen=True, gc=False):
    id: str
    fragment: str


class ModelCallEnded(msgspec.Struct, frozen=True, gc=False):
    id: str


class ModelUsage(msgspec.Struct, frozen=True, gc=False):
    """The tokens so far of this call; the last one counts."""

    usage: Usage


class ModelStop(msgspec.Struct, frozen=True, gc=False):
    """The last part of a stream that ended by itself."""

    reason: Literal["end_turn", "tool_use", "length", "refusal"]


class ModelOpened(msgspec.Struct, frozen=True, gc=False):
    """First part: the provider took the request. Nothing before it was shown to anybody."""


class ModelRetry(msgspec.Struct, frozen=True, gc=False):
    """The provider will be asked again after `delay`; what was streamed so far is void."""

    attempt: int
    delay: float
    reason: str


ModelPart = (
    ModelOpened
    | ModelText
    | ModelThought
    | ModelCallBegan
    | ModelCallArgs
    | ModelCallEnded
    | ModelUsage
    | ModelStop
    | ModelRetry
)


class Provider(Protocol):
    """A way to a model. Raises `ProviderFailed`; cancelling the iteration closes the stream."""

    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]: ...

    async def close(self) -> None: ...


class Models(Protocol):
    """The providers that are configured, and the catalogue."""

    def resolve(self, ref: str, agent: str = "") -> tuple[Provider, ModelInfo]:
        """What is behind "provider/model" for an agent, which may have a key of its own.

        Raises UnknownModel, or BadInput without a key.
        """
        ...

    def list(self, provider: str | None = None) -> Sequence[ModelInfo]: ...
