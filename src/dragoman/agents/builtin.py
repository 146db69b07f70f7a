"""The built-in agent: ask the model, run the tools it asks for, until it rests.

One pass of the loop is a step: a model call and its tools. The loop knows nothing of clients,
approvals or storage; all of that is behind `turn`.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.engine.content import Image, Message, Text, ToolCall, ToolResult, text_of
from dragoman.engine.events import Stop
from dragoman.engine.faults import BadInput, ProviderFailed, sort_of
from dragoman.engine.info import PROPOSE
from dragoman.engine.ports import (
    ModelInfo,
    ModelRequest,
    Models,
    Provider,
    ToolSpec,
    TurnPort,
    TurnResult,
)
from dragoman.engine.visible import many

from .compaction import KEEP, summarise, too_much
from .prompt import mode_part, system_prompt
from .reply import Reply, short_of

_TOGETHER = 8  # calls that run side by side
Extras = Callable[[TurnPort], Awaitable[Sequence[str]]]


class BuiltinAgent:
    """Implements `ports.Agent` over any model provider."""

    def __init__(self, models: Models, extras: Extras | None = None) -> None:
        self._models = models
        self._extras = extras  # further parts of the system prompt: skills, memory, personality

    async def run(self, turn: TurnPort) -> TurnResult:
        await self._finish_calls(turn)
        system, mode = "", ""
        step = 0
        while True:
            if turn.info.mode != mode:  # the first step, or plan mode was left
                mode = turn.info.mode
                given = () if self._extras is None else await self._extras(turn)
                extras = (*given, *(mode_part(turn.info) if mode == "plan" else ()))
                system = system_prompt(turn.profile, turn.info.cwd, extras)
            limit = turn.profile.max_steps
            if limit and step >= limit:
                return TurnResult("max_steps", f"max steps ({limit}) exceeded")
            step += 1
            provider, model = self._models.resolve(turn.info.model, turn.info.agent)
            await turn.afford()
            await self._keep_room(turn, provider, model)
            try:
                stop, said = await self._step(turn, step, provider, model, system)
            except ProviderFailed as failure:
                if failure.kind != "context_full":
                    raise
                stop, said = await self._again(turn, step, provider, model, system)
            if stop == "tool_use":
                await self._finish_calls(turn)
                await turn.steering()
            elif not await turn.steering():
                if (note := short_of(stop, said)) is not None:
                    await turn.note("warning", *note)
                return TurnResult(stop)

    async def _finish_calls(self, turn: TurnPort) -> None:
        """Run every call of the last message that has no result: in their order, and those that
        only look side by side."""
        cancelled: asyncio.CancelledError | None = None
        for calls in _groups(turn, _unanswered(turn)):
            try:
                if len(calls) > 1:
                    await turn.together(calls)
                else:
                    await turn.call(calls[0])
            except asyncio.CancelledError as error:
                cancelled = error  # the others still need their (aborted) results
        if cancelled is not None:
            raise cancelled

    async def _again(
        self, turn: TurnPort, step: int, provider: Provider, model: ModelInfo, system: str
    ) -> tuple[Stop, bool]:
        """The model said that its context is full: compact if that can help, then squeeze."""
        try:
            await self._make_room(turn)
            return await self._step(turn, step, provider, model, system, squeeze=True)
        except ProviderFailed as failure:
            if failure.kind != "context_full":
                raise
            raise too_much(failure) from failure

    async def _step(
        self,
        turn: TurnPort,
        step: int,
        provider: Provider,
        model: ModelInfo,
        system: str,
        *,
        squeeze: bool = False,
    ) -> tuple[Stop, bool]:
        """Ask the model once; why it stopped, and whether it said or called anything."""
        stop: Stop
        turn.step_began(step)
        reply = Reply(turn, step)
        request = ModelRequest(
            model=model,
            system=system,
            messages=squeezed(turn.messages)
            if squeeze
            else fitted(turn.messages, turn.info.last_usage.context, model.context_window),
            tools=_told(turn.specs(), provider),
            reasoning=turn.profile.reasoning,
            temperature=turn.profile.temperature,
            session=turn.info.id,
            cwd=turn.info.cwd,
        )
        try:
            take = reply.take
            stream = provider.stream(request)
            try:
                async for part in stream:
                    take(part)
            finally:  # however it is left, it is closed at once
                close = getattr(stream, "aclose", None)
                if close is not None:
                    await close()
        except (asyncio.CancelledError, ProviderFailed) as end:
            if reply.opened:  # half a tool call is worth nothing; what was said before it is
                failed = isinstance(end, ProviderFailed)
                stop, error = ("error", str(end)) if failed else ("aborted", "cancelled")
                content, cost = reply.content(calls=False), model.cost(reply.usage)
                fault = sort_of(end) if failed else stop
                used = reply.usage
                await turn.spoke(step, content, stop, used, cost, error=error, fault=fault)
            raise
        content = reply.content()
        if turn.info.mode == "plan" and reply.stop in (None, "end_turn"):
            content = _asked_at_the_end(turn, content)
        calls = any(isinstance(block, ToolCall) for block in content)
        stop = "tool_use" if calls else (reply.stop or "end_turn")
        if stop == "tool_use" and not calls:
            stop = "end_turn"
        cost = model.cost(reply.usage)
        await turn.spoke(step, content, stop, reply.usage, cost)
        return stop, calls or bool(text_of(content).strip())

    async def _keep_room(self, turn: TurnPort, provider: Provider, model: ModelInfo) -> None:
        """Compact before the context window is full."""
        share = turn.profile.auto_compact
        used = turn.info.last_usage.context
        if not share or used < share * model.context_window or len(turn.messages) <= KEEP + 1:
            return
        try:
            await summarise(turn, provider, model, automatic=True)
        except (BadInput, ProviderFailed) as fault:
            await turn.note("warning", "The history could not be compacted", str(fault))

    async def _make_room(self, turn: TurnPort) -> None:
        """The model said that its context is full: compact, if that can help."""
        if not turn.profile.auto_compact or len(turn.messages) <= KEEP + 1:
            return
        provider, model = self._models.resolve(turn.info.model, turn.info.agent)
        try:
            await summarise(turn, provider, model, automatic=True)
        except ProviderFailed as failure:
            if failure.kind not in ("context_full", "refused"):  # else squeezing may still help
                raise

    async def compact(self, turn: TurnPort) -> str:
        provider, model = self._models.resolve(turn.info.model, turn.info.agent)
        return await summarise(turn, provider, model, automatic=False)


def _told(specs: Sequence[ToolSpec], provider: Provider) -> Sequence[ToolSpec]:
    """The tools without those that this provider's own service would have to do."""
    if not any(spec.served for spec in specs):
        return specs
    serves: frozenset[str] = getattr(provider, "serves", frozenset())
    return [spec for spec in specs if not spec.served or spec.name in serves]


def _groups(turn: TurnPort, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    """Neighbours that only look, at most so many together; every other call by itself."""
    if len(calls) < 2:
        return [[call] for call in calls]
    looking = {spec.name for spec in turn.specs() if spec.kind in ("read", "search", "fetch")}
    looking.add("task")  # children work side by side
    groups: list[list[ToolCall]] = []
    for number, call in enumerate(calls):
        looks = call.name in looking and number and calls[number - 1].name in looking
        if looks and len(groups[-1]) < _TOGETHER:
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _asked_at_the_end(turn: TurnPort, content: tuple[Any, ...]) -> tuple[Any, ...]:
    """A turn in plan mode ends with the question whether to go on, also when the model forgot."""
    if any(isinstance(block, ToolCall) for block in content):
        return content
    if all(spec.name != PROPOSE for spec in turn.specs()):
        return content  # nobody is there to be asked
    for message in reversed(turn.messages):
        if message.role == "user":
            break
        called = [block.name for block in message.content if isinstance(block, ToolCall)]
        if PROPOSE in called:
            return content  # it was asked, and nothing was done since
        if called:
            break
    call = ToolCall(f"call_{os.urandom(12).hex()}", PROPOSE, {})
    turn.call_drafted(call.id, call.name)
    turn.call_args(call.id, "{}")
    turn.call_ready(call.id)
    return (*content, call)


def _unanswered(turn: TurnPort) -> list[ToolCall]:
    """Calls of the last message without a result; none when the user has spoken since."""
    answered: set[str] = set()
    for message in reversed(turn.messages):
        if message.role == "user":
            return []
        if message.role == "assistant":
            return [
                block
                for block in message.content
                if isinstance(block, ToolCall) and block.id not in answered
            ]
        answered.update(getattr(block, "call_id", "") for block in message.content)
    return []


# Making a history fit: old results of tools are the first to be shortened, and only for the model;
# what is kept stays whole. The place up to which results are shortened moves in large steps, so
# that a provider's cache holds from one step to the next.
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
    """As little as possible: every large result but those of the last step, and half of those.

    What was said before the last prompt, and what calls before the last step were given, is cut,
    too: one text that does not fit must not keep a session from going on.
    """
    last = max((n for n, one in enumerate(messages) if one.role == "assistant"), default=0)
    asked = max((n for n, one in enumerate(messages) if one.role == "user"), default=0)
    made = shortened(shortened(messages, last, _LEFT), len(messages), 16_000)
    return tuple(
        _said_less(one, n < asked, n < last) if n < max(asked, last) else one
        for n, one in enumerate(made)
    )


def _said_less(message: Message, texts: bool, calls: bool) -> Message:
    if message.role == "tool":
        return message
    blocks: list[Any] = []
    for block in message.content:
        if texts and isinstance(block, Text | Image):
            block = _short(block, _LARGE)
        elif calls and isinstance(block, ToolCall) and block.args:
            block = replace(block, args={k: _less(v) for k, v in block.args.items()}, raw="")
        blocks.append(block)
    return replace(message, content=tuple(blocks))


def _less(value: Any) -> Any:
    """What a call was given, with long texts cut."""
    if isinstance(value, str) and len(value) > _LARGE:
        left = len(value) - 2 * _LEFT
        gap = f"... [{many(left, 'character')} left out to make room] ..."
        return f"{value[:_LEFT]}{gap}{value[-_LEFT:]}"
    if isinstance(value, dict):
        return {name: _less(one) for name, one in value.items()}
    return [_less(one) for one in value] if isinstance(value, list) else value


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
    middle = f"\n... [{many(left, 'character')} left out to make room; call again if needed]\n"
    return Text(part.text[:keep] + middle + part.text[-keep:])
