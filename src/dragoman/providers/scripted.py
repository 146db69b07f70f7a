"""Provider `scripted`: a fixed list of turns, for tests and for authors of clients."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec

from dragoman.engine.content import ToolCall, Usage
from dragoman.engine.faults import BadInput, ProviderFailed
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelCallEnded,
    ModelInfo,
    ModelOpened,
    ModelPart,
    ModelRequest,
    ModelRetry,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
)

from .estimate import rough_usage

StopReason = Literal["end_turn", "tool_use", "length", "refusal"]
_BREATH = 32  # parts sent without giving other tasks the loop
_KEPT_REQUESTS = 1_000


class Say(msgspec.Struct, frozen=True, tag="say"):
    """Text in `deltas` pieces (0: one per word), `delay` seconds before each."""

    text: str
    deltas: int = 0
    delay: float = 0.0


class Think(msgspec.Struct, frozen=True, tag="think"):
    text: str
    signature: str = ""
    deltas: int = 0
    delay: float = 0.0


class Call(msgspec.Struct, frozen=True, tag="call"):
    """A tool call. `raw` replaces the encoded `args`, also by text that is no JSON."""

    name: str
    args: dict[str, Any] = {}
    id: str = ""
    fragments: int = 1
    delay: float = 0.0
    raw: str | None = None


class Wait(msgspec.Struct, frozen=True, tag="wait"):
    seconds: float


class Retry(msgspec.Struct, frozen=True, tag="retry"):
    """Tell that the provider will be asked again; what was streamed before is void."""

    attempt: int = 1
    delay: float = 0.0
    reason: str = "scripted"


class Fail(msgspec.Struct, frozen=True, tag="fail"):
    """Raise ProviderFailed; in the middle of a stream when parts stand before it."""

    kind: str = "server"
    message: str = "scripted failure"
    status: int | None = None
    retry_after: float | None = None


class Hang(msgspec.Struct, frozen=True, tag="hang"):
    """Stop here until the request is cancelled or `Scripted.release` is called."""


Part = Say | Think | Call | Wait | Retry | Fail | Hang


class Turn(msgspec.Struct, frozen=True):
    """The answer to one model call."""

    parts: tuple[Part, ...] = ()
    usage: Usage | None = None  # None: a rough count
    stop: StopReason | None = None  # None: tool_use when there are calls, else end_turn


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a script file."""

    turns: tuple[Turn | str, ...]
    loop: bool = False
    resume: bool = False
    model: dict[str, Any] = {}


class Scripted:
    """Gives each session the turns in order, one per model call.

    `loop` begins again after the last; `resume` starts a session that has a history behind as
    many turns as it has answers of the assistant (for scripts that outlive a restart).
    """

    name = "scripted"

    def __init__(
        self,
        turns: Iterable[Turn | Part | str | Sequence[Part | str]],
        *,
        loop: bool = False,
        resume: bool = False,
        model: ModelInfo | None = None,
    ) -> None:
        self.turns = tuple(_as_turn(item) for item in turns)
        self.loop = loop
        self.resume = resume
        self.model = model or _model("script", {})
        self.requests: deque[ModelRequest] = deque(maxlen=_KEPT_REQUESTS)
        self.hanging = asyncio.Event()
        self.aborted = 0  # streams that were left before their end
        self._release = asyncio.Event()
        self._position: dict[str, int] = {}

    def release(self) -> None:
        """Let every stream that hangs now go on."""
        self._release.set()
        self._release = asyncio.Event()
        self.hanging.clear()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        self.requests.append(request)
        turn = self._next(request)
        finished = False
        try:
            async with aclosing(self._play(turn, request)) as parts:
                async for part in parts:
                    yield part
            finished = True
        except ProviderFailed:
            finished = True
            raise
        finally:
            if not finished:
                self.aborted += 1

    async def close(self) -> None:
        self.release()

    def _next(self, request: ModelRequest) -> Turn:
        position = self._position.get(request.session)
        if position is None:
            position = 0
            if self.resume:
                position = sum(1 for message in request.messages if message.role == "assistant")
        self._position[request.session] = position + 1
        if self.loop and self.turns:
            position %= len(self.turns)
        if position >= len(self.turns):
            raise ProviderFailed(
                f"the script has only {len(self.turns)} turns",
                "bad_request",
                hint="Add turns, or set loop.",
            )
        return self.turns[position]

    async def _play(self, turn: Turn, request: ModelRequest) -> AsyncGenerator[ModelPart, None]:
        opened = False
        said = thought = calls = 0
        ids = _Ids(request)
        for part in turn.parts:
            if not opened and not isinstance(part, Wait | Fail):
                opened = True
                yield ModelOpened()
            if isinstance(part, Say):
                said += len(part.text)
                for number, piece in enumerate(pieces(part.text, part.deltas)):
                    await _pause(part.delay, number)
                    yield ModelText(piece)
            elif isinstance(part, Think):
                thought += len(part.text)
                for number, piece in enumerate(pieces(part.text, part.deltas)):
                    await _pause(part.delay, number)
                    yield ModelThought(piece)
                if part.signature:
                    yield ModelThought("", part.signature)
            elif isinstance(part, Call):
                calls += 1
                raw = msgspec.json.encode(part.args).decode() if part.raw is None else part.raw
                said += len(raw)
                call_id = part.id or ids.fresh()
                yield ModelCallBegan(call_id, part.name)
                for number, piece in enumerate(pieces(raw, max(1, part.fragments))):
                    await _pause(part.delay, number)
                    yield ModelCallArgs(call_id, piece)
                yield ModelCallEnded(call_id)
            elif isinstance(part, Wait):
                await asyncio.sleep(part.seconds)
            elif isinstance(part, Retry):
                yield ModelRetry(part.attempt, part.delay, part.reason)
                await asyncio.sleep(part.delay)
            elif isinstance(part, Fail):
                raise ProviderFailed(
                    part.message, part.kind, status=part.status, retry_after=part.retry_after
                )
            else:
                gate = self._release
                self.hanging.set()
                await gate.wait()
        if not opened:
            yield ModelOpened()
        yield ModelUsage(turn.usage or rough_usage(request, said, thought))
        yield ModelStop(turn.stop or ("tool_use" if calls else "end_turn"))


class _Ids:
    """Call ids that the session's history does not hold yet."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._used: set[str] | None = None
        self._count = 0

    def fresh(self) -> str:
        if self._used is None:
            self._used = {
                block.id
                for message in self._request.messages
                for block in message.content
                if isinstance(block, ToolCall)
            }
            self._count = len(self._used)
        while True:
            self._count += 1
            call_id = f"call_{self._count}"
            if call_id not in self._used:
                self._used.add(call_id)
                return call_id


def pieces(text: str, count: int = 0) -> list[str]:
    """Cut a text into `count` pieces of even length, or after each word."""
    if not text:
        return []
    if count <= 0:
        import re

        return re.findall(r"\s*\S+|\s+$", text)
    count = min(count, len(text))
    edges = [len(text) * number // count for number in range(count + 1)]
    return [text[edges[n] : edges[n + 1]] for n in range(count)]


async def _pause(delay: float, number: int) -> None:
    if delay > 0:
        await asyncio.sleep(delay)
    elif number % _BREATH == _BREATH - 1:
        await asyncio.sleep(0)


def _as_turn(item: Turn | Part | str | Sequence[Part | str]) -> Turn:
    if isinstance(item, Turn):
        return item
    if isinstance(item, str):
        return Turn((Say(item),))
    if isinstance(item, Sequence):
        return Turn(tuple(Say(part) if isinstance(part, str) else part for part in item))
    return Turn((item,))


def _model(model_id: str, overrides: dict[str, Any]) -> ModelInfo:
    fields = {
        "name": "scripted turns",
        "context_window": 200_000,
        "reasoning": True,
        "vision": True,
        "price_input": 0.0,
        "price_output": 0.0,
        "price_cache_read": 0.0,
        "price_cache_write": 0.0,
    } | overrides
    return msgspec.convert(fields | {"provider": "scripted", "id": model_id}, ModelInfo)


def load(path: str) -> Scripted:
    """Read a script from a JSON or TOML file."""
    from pathlib import Path

    file = Path(path).expanduser()
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(
            f"cannot read the script {path}: {error.strerror}", "Name a JSON or TOML file."
        ) from None
    try:
        if file.suffix == ".toml":
            script = msgspec.toml.decode(data, type=Script)
        else:
            script = msgspec.json.decode(data, type=Script)
        model = _model(path, script.model)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"the script {path} is not valid: {error}", "See docs/models.md.") from None
    return Scripted(script.turns, loop=script.loop, resume=script.resume, model=model)
