"""The built-in agent: ask the model, run the tools it asks for, until it rests.

One pass of the loop is a step: a model call and its tools. The loop knows nothing of clients,
approvals or storage; all of that is behind `turn`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from dragoman.engine.content import ToolCall
from dragoman.engine.events import Stop
from dragoman.engine.faults import BadInput, ProviderFailed
from dragoman.engine.ports import (
    ModelInfo,
    ModelRequest,
    Models,
    Provider,
    TurnPort,
    TurnResult,
)

from .compaction import KEEP, summarise
from .fitting import fitted, squeezed
from .prompt import system_prompt
from .reply import Reply

_TOGETHER = 8  # calls that run side by side
Extras = Callable[[TurnPort], Awaitable[Sequence[str]]]


async def nothing(turn: TurnPort) -> Sequence[str]:
    """No further parts of the system prompt."""
    return ()


class BuiltinAgent:
    """Implements `ports.Agent` over any model provider."""

    def __init__(self, models: Models, extras: Extras = nothing) -> None:
        self._models = models
        self._extras = extras  # further parts of the system prompt: skills, memory, personality

    async def run(self, turn: TurnPort) -> TurnResult:
        await self._finish_calls(turn)
        system = system_prompt(turn.profile, turn.info.cwd, tuple(await self._extras(turn)))
        step = 0
        while True:
            limit = turn.profile.max_steps
            if limit and step >= limit:
                return TurnResult("max_steps", f"max steps ({limit}) exceeded")
            step += 1
            provider, model = self._models.resolve(turn.info.model, turn.info.agent)
            await turn.afford()
            await self._keep_room(turn, provider, model)
            try:
                stop = await self._step(turn, step, provider, model, system)
            except ProviderFailed as failure:
                if failure.kind != "context_full":
                    raise
                stop = await self._again(turn, step, provider, model, system)
            if stop == "tool_use":
                await self._finish_calls(turn)
                await turn.steering()
            elif not await turn.steering():
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
    ) -> Stop:
        """The model said that its context is full: compact if that can help, then squeeze."""
        try:
            await self._make_room(turn, step)
            return await self._step(turn, step, provider, model, system, squeeze=True)
        except ProviderFailed as failure:
            if failure.kind != "context_full":
                raise
            raise ProviderFailed(
                "What is to be read at once does not fit into this model.",
                "context_full",
                hint="Begin a new session with less, or choose a model with a larger window.",
            ) from failure

    async def _step(
        self,
        turn: TurnPort,
        step: int,
        provider: Provider,
        model: ModelInfo,
        system: str,
        *,
        squeeze: bool = False,
    ) -> Stop:
        turn.step_began(step)
        reply = Reply(turn, step)
        request = ModelRequest(
            model=model,
            system=system,
            messages=squeezed(turn.messages)
            if squeeze
            else fitted(turn.messages, turn.info.last_usage.context, model.context_window),
            tools=turn.specs(),
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
        except asyncio.CancelledError:
            if reply.opened:  # half a tool call is worth nothing; what was said before it is
                content = reply.content(calls=False)
                await self._spoke(turn, reply, model, content, "aborted", "cancelled")
            raise
        except ProviderFailed as failure:
            if reply.opened:
                content = reply.content(calls=False)
                await self._spoke(turn, reply, model, content, "error", str(failure))
            raise
        content = reply.content()
        calls = any(isinstance(block, ToolCall) for block in content)
        stop: Stop = "tool_use" if calls else (reply.stop or "end_turn")
        if stop == "tool_use" and not calls:
            stop = "end_turn"
        await self._spoke(turn, reply, model, content, stop, "")
        return stop

    async def _spoke(
        self,
        turn: TurnPort,
        reply: Reply,
        model: ModelInfo,
        content: tuple[object, ...],
        stop: Stop,
        error: str,
    ) -> None:
        usage = reply.usage
        await turn.spoke(reply.step, content, stop, usage, model.cost(usage), error=error)

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

    async def _make_room(self, turn: TurnPort, step: int) -> bool:
        """The model said that its context is full: compact, if that can help."""
        if not turn.profile.auto_compact or len(turn.messages) <= KEEP + 1:
            return False
        provider, model = self._models.resolve(turn.info.model, turn.info.agent)
        await summarise(turn, provider, model, automatic=True)
        return True

    async def compact(self, turn: TurnPort) -> str:
        provider, model = self._models.resolve(turn.info.model, turn.info.agent)
        return await summarise(turn, provider, model, automatic=False)


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
