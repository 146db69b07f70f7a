"""Provider `scripted`: a fixed list of turns, for tests and for authors of clients."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from itertools import count
from types import coroutine
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
from dragoman.engine.visible import many

from .estimate import message_chars, rough_usage

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
        self._steps: dict[int, Steps] = {}
        # Per session: messages counted so far, the last of them, their characters.
        self._counted: dict[str, tuple[int, Any, int]] = {}

    def release(self) -> None:
        """Let every stream that hangs now go on."""
        self._release.set()
        self._release = asyncio.Event()
        self.hanging.clear()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        self.requests.append(request)
        turn = self._next(request)
        steps = self._steps.get(id(turn))
        if steps is None:
            steps = self._steps[id(turn)] = Steps(turn)
        finished = False
        ids: Iterator[str] | None = None
        call_id = ""
        sent = 0
        try:
            for step in steps.steps:
                kind = type(step)
                if kind is ModelText or kind is ModelThought:
                    sent += 1
                    if not sent % _BREATH:
                        await _breath()
                    yield step
                elif kind is Wait:
                    if step.seconds > 0:
                        await asyncio.sleep(step.seconds)
                    else:
                        await _breath()
                elif kind is ModelCallBegan:
                    if step.id:
                        call_id = step.id
                        yield step
                    else:
                        ids = ids or _fresh_ids(request)
                        call_id = next(ids)
                        yield ModelCallBegan(call_id, step.name)
                elif kind is ModelCallArgs:
                    yield ModelCallArgs(call_id, step.fragment)
                elif kind is ModelCallEnded:
                    yield ModelCallEnded(call_id)
                elif kind is Fail:
                    raise ProviderFailed(
                        step.message, step.kind, status=step.status, retry_after=step.retry_after
                    )
                elif kind is Hang:
                    gate = self._release
                    self.hanging.set()
                    await gate.wait()
                else:
                    yield step
            yield ModelUsage(turn.usage or self._usage(request, steps))
            yield ModelStop(turn.stop or ("tool_use" if steps.calls else "end_turn"))
            finished = True
        except ProviderFailed:
            finished = True
            raise
        finally:
            if not finished:
                self.aborted += 1

    def _usage(self, request: ModelRequest, steps: "Steps") -> Usage:
        """A rough count. What of a history was counted before is not counted again."""
        messages = request.messages
        count, last, chars = self._counted.get(request.session, (0, None, 0))
        if count > len(messages) or count and messages[count - 1] is not last:
            count = chars = 0
        chars += sum(message_chars(message) for message in messages[count:])
        if len(self._counted) >= _KEPT_REQUESTS:
            self._counted.clear()
        if messages:
            self._counted[request.session] = (len(messages), messages[-1], chars)
        return rough_usage(len(request.system) + chars, steps.said, steps.thought)

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
                f"the script has only {many(len(self.turns), 'turn')}",
                "bad_request",
                hint="Add turns, or set loop.",
            )
        return self.turns[position]


class Steps:
    """A turn cut into what is sent and waited for, once for all the times it is played."""

    __slots__ = ("calls", "said", "steps", "thought", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn  # keeps it alive: it is found by its identity
        self.said = self.thought = self.calls = 0
        self.steps: list[Any] = []
        opened = False
        for part in turn.parts:
            if not opened and not isinstance(part, Wait | Fail):
                opened = True
                self.steps.append(ModelOpened())
            self._add(part)
        if not opened:
            self.steps.append(ModelOpened())

    def _add(self, part: Part) -> None:
        steps = self.steps
        if isinstance(part, Say):
            self.said += len(part.text)
            for piece in pieces(part.text, part.deltas):
                self._send(ModelText(piece), part.delay)
        elif isinstance(part, Think):
            self.thought += len(part.text)
            for piece in pieces(part.text, part.deltas):
                self._send(ModelThought(piece), part.delay)
            if part.signature:
                steps.append(ModelThought("", part.signature))
        elif isinstance(part, Call):
            self.calls += 1
            raw = msgspec.json.encode(part.args).decode() if part.raw is None else part.raw
            self.said += len(raw)
            steps.append(ModelCallBegan(part.id, part.name))
            for piece in pieces(raw, max(1, part.fragments)):
                self._send(ModelCallArgs(part.id, piece), part.delay)
            steps.append(ModelCallEnded(part.id))
        elif isinstance(part, Retry):
            steps.append(ModelRetry(part.attempt, part.delay, part.reason))
            steps.append(Wait(part.delay))
        else:
            steps.append(part)

    def _send(self, part: ModelPart, delay: float) -> None:
        if delay > 0:
            self.steps.append(Wait(delay))
        self.steps.append(part)


def _fresh_ids(request: ModelRequest) -> Iterator[str]:
    """Call ids that the session's history does not hold yet."""
    blocks = (block for message in request.messages for block in message.content)
    used = {block.id for block in blocks if isinstance(block, ToolCall)}
    ids = (f"call_{number}" for number in count(len(used) + 1))
    return (call_id for call_id in ids if call_id not in used)


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


@coroutine
def _breath() -> Generator[None, None, None]:
    """Give other tasks the loop: `asyncio.sleep(0)`, without its frame."""
    yield


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
