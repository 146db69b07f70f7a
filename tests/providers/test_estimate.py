"""Rough counts: everything that goes into the context counts."""

import pytest
from tests.providers.parts import request, user

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult
from dragoman.engine.ports import ModelInfo
from dragoman.providers.estimate import message_chars, output_room, request_chars, rough_usage

MODEL = ModelInfo("p", "m", context_window=10_000, max_output=4_000)


@pytest.mark.parametrize(
    ("block", "chars"),
    [
        (Text("12345"), 5),
        (Thinking("123"), 3),
        (Image("image/png", b"x"), 4_000),
        (ToolCall("1", "read", {}, raw='{"a":1}'), 4 + 7),
        (ToolResult("1", (Text("ab"), Image("image/png", b"x"))), 2 + 4_000),
    ],
)
def test_each_kind_of_content_counts(block: object, chars: int) -> None:
    assert message_chars(Message("user", (block,))) == chars  # type: ignore[arg-type]


def test_a_request_counts_its_system_prompt_too() -> None:
    asked = request(MODEL, user("1234"), user("12"), system="123")
    assert request_chars(asked) == 9


def test_usage_is_never_nothing() -> None:
    assert (rough_usage(0, 0).input, rough_usage(0, 0).output) == (1, 1)
    used = rough_usage(400, 40, 80)
    assert (used.input, used.output, used.reasoning) == (100, 30, 20)


@pytest.mark.parametrize(
    ("chars", "asked", "room"),
    [(0, 0, 4_000), (0, 500, 500), (24_000, 0, 2_000), (30_000, 0, 1_024), (90_000, 300, 300)],
)
def test_room_for_the_answer(chars: int, asked: int, room: int) -> None:
    assert output_room(request(MODEL, user("x" * chars), max_output=asked or None)) == room
