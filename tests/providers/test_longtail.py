"""The long tail against pydantic-ai's own test models; runs where the extra is installed."""

from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Any

import pytest
from tests.providers.parts import QUICK, READ, read, request

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult
from dragoman.engine.ports import ModelInfo
from dragoman.providers.longtail import LongTail

pytestmark = pytest.mark.skipif(  # loading it takes a second
    not find_spec("pydantic_ai"), reason="needs the extra: providers"
)
MODEL = ModelInfo("cohere", "x")


def tail(function: Any) -> LongTail:
    from pydantic_ai.models.function import FunctionModel

    return LongTail("cohere", "x", model=FunctionModel(stream_function=function), rules=QUICK)


async def test_text_and_calls() -> None:
    from pydantic_ai.models.function import DeltaToolCall

    given: list[Any] = []

    async def answer(messages: list[Any], info: Any) -> AsyncIterator[Any]:
        given.extend(messages)
        assert [tool.name for tool in info.function_tools] == ["read"]
        yield "hel"
        yield "lo"
        yield {1: DeltaToolCall(name="read", json_args='{"pa', tool_call_id="c1")}
        yield {1: DeltaToolCall(json_args='th":"x"}')}

    history = (
        Message("user", (Text("look"), Image("image/png", b"x"))),
        Message("assistant", (Thinking("hm"), Text("a"), ToolCall("c0", "read", {"path": "a"}))),
        Message("tool", (ToolResult("c0", (Text("r"),)),)),
    )
    asked = request(MODEL, *history, tools=(READ,), system="be brief")
    seen = await read(tail(answer).stream(asked))
    assert seen.text == "hello" and seen.stop == "tool_use"
    assert seen.calls == {"c1": ("read", '{"path":"x"}')}
    assert seen.usage.output > 0
    assert [message.kind for message in given] == ["request", "request", "response", "request"]


async def test_errors_have_their_kind() -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    async def refuse(messages: list[Any], info: Any) -> AsyncIterator[Any]:
        raise ModelHTTPError(401, "m", {"error": "no"})
        yield ""

    seen = await read(tail(refuse).stream(request(MODEL)))
    assert seen.failure is not None and seen.failure.kind == "auth"
