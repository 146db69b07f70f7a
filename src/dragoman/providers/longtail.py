"""The long tail of providers (Bedrock, Vertex, Cohere, …) through pydantic-ai's model layer."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec

from dragoman.engine.content import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    text_of,
)
from dragoman.engine.faults import BadInput, ProviderFailed
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelCallEnded,
    ModelOpened,
    ModelPart,
    ModelRequest,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
)

from . import failures
from .estimate import output_room
from .history import result_text, tidy
from .retry import RetryRules, with_retry

_NAMES = {"vertex": "google-vertex"}
_STOPS = {"length": "length", "content_filter": "refusal"}


class LongTail:
    """One model of a provider that has no reader of its own.

    `model` may be given ready made; else it is looked up as "provider:id", and the provider's
    own package and environment variables are used.
    """

    def __init__(
        self, name: str, model_id: str, *, model: Any = None, rules: RetryRules | None = None
    ) -> None:
        self.name = name
        self.rules = rules or RetryRules()
        self._inner = model if model is not None else _infer(name, model_id)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        return with_retry(lambda: self._attempt(request), self.rules)

    async def close(self) -> None:
        """The layer below shares its connections and closes them itself."""

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[ModelPart, None]:
        from pydantic_ai import exceptions, models, tools

        parameters = models.ModelRequestParameters(
            function_tools=[
                tools.ToolDefinition(
                    name=spec.name,
                    description=spec.description,
                    parameters_json_schema=spec.schema,
                )
                for spec in request.tools
            ]
        )
        settings: dict[str, Any] = {"max_tokens": output_room(request)}
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        try:
            async with self._inner.request_stream(
                _history(request), settings, parameters
            ) as response:
                yield ModelOpened()
                calls: dict[int, str] = {}
                async for event in response:
                    for part in _parts(event, calls):
                        yield part
                for call_id in calls.values():
                    yield ModelCallEnded(call_id)
                yield ModelUsage(_usage(response.usage))
                stop = _STOPS.get(response.finish_reason or "", "end_turn")
                yield ModelStop("tool_use" if calls and stop == "end_turn" else stop)  # type: ignore[arg-type]
        except exceptions.ModelHTTPError as error:
            body = (
                error.body if isinstance(error.body, bytes) else str(error.body or error).encode()
            )
            raise failures.from_response(self.name, error.status_code, {}, body) from error
        except exceptions.UserError as error:
            raise ProviderFailed(f"{self.name} is not set up: {error}", "auth") from error
        except exceptions.AgentRunError as error:
            raise ProviderFailed(f"{self.name} failed: {error}", "network") from error


def _infer(name: str, model_id: str) -> Any:
    try:
        from pydantic_ai import exceptions, models
    except ImportError:
        from dragoman.observe.extras import adding

        raise BadInput(
            f"{name} needs the package pydantic-ai-slim",
            f"Run: {adding('providers')} (and the provider's own package)",
        ) from None
    try:
        return models.infer_model(f"{_NAMES.get(name, name)}:{model_id}")
    except exceptions.UserError as error:
        raise BadInput(f"no credential for {name}; {error}") from None
    except (ImportError, ValueError) as error:
        raise BadInput(
            f"{name}/{model_id} cannot be used: {error}", "Install the provider's own package."
        ) from None


def _history(request: ModelRequest) -> list[Any]:
    from pydantic_ai import messages

    found: list[Any] = []
    if request.system:
        found.append(messages.ModelRequest(parts=[messages.SystemPromptPart(request.system)]))
    for message in tidy(request.messages):
        if message.role == "assistant":
            found.append(messages.ModelResponse(parts=_said(message)))
        elif message.role == "tool":
            returned = [
                messages.ToolReturnPart(block.name, result_text(block), block.call_id)
                for block in message.content
                if isinstance(block, ToolResult)
            ]
            found.append(messages.ModelRequest(parts=returned))
        else:
            content: list[Any] = [
                messages.BinaryContent(data=block.data, media_type=block.mime_type)
                for block in message.content
                if isinstance(block, Image)
            ]
            prompt = messages.UserPromptPart([text_of(message.content), *content])
            found.append(messages.ModelRequest(parts=[prompt]))
    return found


def _said(message: Message) -> list[Any]:
    from pydantic_ai import messages

    parts: list[Any] = []
    for block in message.content:
        if isinstance(block, Text) and block.text:
            parts.append(messages.TextPart(block.text))
        elif isinstance(block, Thinking) and block.text:
            parts.append(messages.ThinkingPart(block.text))
        elif isinstance(block, ToolCall):
            parts.append(messages.ToolCallPart(block.name, block.args or {}, block.id))
    return parts


def _parts(event: Any, calls: dict[int, str]) -> list[ModelPart]:
    """One event of the layer below as ours; `calls` keeps the open calls by their place."""
    kind = getattr(event, "event_kind", "")
    if kind == "part_start":
        part = event.part
        if part.part_kind == "text":
            return [ModelText(part.content)] if part.content else []
        if part.part_kind == "thinking":
            return [ModelThought(part.content)] if part.content else []
        if part.part_kind == "tool-call":
            calls[event.index] = part.tool_call_id
            began: list[ModelPart] = [ModelCallBegan(part.tool_call_id, part.tool_name)]
            raw = _raw(part.args)
            return [*began, ModelCallArgs(part.tool_call_id, raw)] if raw else began
    elif kind == "part_delta":
        delta = event.delta
        if delta.part_delta_kind == "text":
            return [ModelText(delta.content_delta)] if delta.content_delta else []
        if delta.part_delta_kind == "thinking":
            return [ModelThought(delta.content_delta)] if delta.content_delta else []
        if delta.part_delta_kind == "tool_call" and event.index in calls:
            raw = _raw(delta.args_delta)
            return [ModelCallArgs(calls[event.index], raw)] if raw else []
    return []


def _raw(args: Any) -> str:
    if isinstance(args, dict):
        return msgspec.json.encode(args).decode()
    return args or ""


def _usage(usage: Any) -> Usage:
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    return Usage(
        input=max(0, (usage.input_tokens or 0) - read - written),
        output=usage.output_tokens or 0,
        cache_read=read,
        cache_write=written,
    )
