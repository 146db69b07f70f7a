from typing import Any

import pytest
from tests.providers.fake_http import (
    FakeApi,
    Reply,
    claude,
    claude_call,
    claude_end,
    claude_error,
    claude_start,
    claude_text,
    claude_thinking,
)
from tests.providers.parts import QUICK, READ, Seen, read, request, user

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.engine.ports import ModelCallEnded, ModelInfo, ModelThought
from dragoman.providers.anthropic import Anthropic
from dragoman.providers.catalogue import catalogue
from dragoman.providers.remote import Remote

SONNET = catalogue().find("anthropic", "claude-sonnet-4-5") or ModelInfo("", "")
OPUS = catalogue().find("anthropic", "claude-opus-4-7") or ModelInfo("", "")


async def ask(*replies: Reply, model: ModelInfo = SONNET, **more: Any) -> tuple[Seen, FakeApi]:
    async with FakeApi(*replies) as api:
        remote = Remote("anthropic", Anthropic(), base_url=api.url, key="sk-test", rules=QUICK)
        seen = await read(remote.stream(request(model, **more)))
        await remote.close()
    return seen, api


async def test_text_usage_and_headers() -> None:
    stream = claude(
        claude_start(cache_read_input_tokens=20, cache_creation_input_tokens=30),
        *claude_text("Hel", "lo ", "wörld"),
        *claude_end(),
    )
    seen, api = await ask(Reply([stream]), system="be brief")
    assert seen.text == "Hello wörld" and seen.stop == "end_turn"
    assert seen.usage == Usage(100, 10, 20, 30)
    assert SONNET.cost(seen.usage) == pytest.approx(0.0005685)
    asked = api.asked[0]
    assert asked.path == "/v1/messages"
    assert asked.headers["x-api-key"] == "sk-test"
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert asked.body["model"] == "claude-sonnet-4-5" and asked.body["stream"] is True
    assert asked.body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert asked.body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "thinking" not in asked.body and "tools" not in asked.body


async def test_several_calls_in_fragments() -> None:
    stream = claude(
        claude_start(),
        *claude_text("I look."),
        *claude_call("toolu_1", "read", '{"pa', 'th":"a"}', index=1),
        *claude_call("toolu_2", "ls", index=2),
        *claude_end("tool_use"),
    )
    seen, api = await ask(Reply([stream]), tools=(READ,))
    assert seen.calls == {"toolu_1": ("read", '{"path":"a"}'), "toolu_2": ("ls", "{}")}
    ended = [part.id for part in seen.parts if isinstance(part, ModelCallEnded)]
    assert ended == ["toolu_1", "toolu_2"] and seen.stop == "tool_use"
    tool = api.asked[0].body["tools"][0]
    assert tool["input_schema"] == READ.schema and "cache_control" in tool


async def test_thinking_with_signature_and_redacted() -> None:
    redacted = {"type": "redacted_thinking", "data": "ENC"}
    stream = claude(
        claude_start(),
        *claude_thinking("hm", " so", signature="SIG=="),
        {"type": "content_block_start", "index": 1, "content_block": redacted},
        {"type": "content_block_stop", "index": 1},
        *claude_text("yes", index=2),
        *claude_end(),
    )
    seen, _ = await ask(Reply([stream]))
    assert seen.thought == "hm so" and seen.text == "yes"
    signed = [p.signature for p in seen.parts if isinstance(p, ModelThought) and p.signature]
    assert signed == ["SIG==", "redacted:ENC"]


@pytest.mark.parametrize(
    ("said", "stop"),
    [
        ("max_tokens", "length"),
        ("refusal", "refusal"),
        ("stop_sequence", "end_turn"),
        ("pause_turn", "end_turn"),
        ("model_context_window_exceeded", "length"),
        ("something_new", "end_turn"),
    ],
)
async def test_stop_reasons(said: str, stop: str) -> None:
    seen, _ = await ask(Reply([claude(claude_start(), *claude_text("x"), *claude_end(said))]))
    assert seen.stop == stop


async def test_events_and_blocks_of_the_future_are_passed_over() -> None:
    strange = {"type": "server_tool_use", "id": "s", "name": "web", "input": {"a": 1}}
    stream = claude(
        claude_start(),
        {"type": "weather_report", "sunny": True},
        {"type": "content_block_start", "index": 0, "content_block": strange},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta"}},
        {"type": "content_block_stop", "index": 0},
        *claude_text("x", index=1),
        *claude_end(),
    )
    seen, _ = await ask(Reply([stream]))
    assert seen.text == "x" and seen.calls == {} and seen.stop == "end_turn"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("overloaded_error", "overloaded"),
        ("api_error", "server"),
        ("rate_limit_error", "rate_limit"),
        ("authentication_error", "auth"),
    ],
)
async def test_an_error_event_after_words_ends_the_answer(error: str, kind: str) -> None:
    stream = claude(claude_start(), *claude_text("half")[:-1], claude_error(error))
    seen, api = await ask(Reply([stream]))
    assert seen.failure is not None and seen.failure.kind == kind
    assert seen.text == "half" and len(api.asked) == 1


async def test_overloaded_before_any_word_is_tried_again() -> None:
    broken = claude(claude_start(), claude_error("overloaded_error", "Overloaded"))
    good = claude(claude_start(), *claude_text("ok"), *claude_end())
    busy = Reply.error(529, {"type": "error", "error": {"type": "overloaded_error"}})
    seen, api = await ask(busy, Reply([broken]), Reply([good]))
    assert seen.failure is None and seen.text == "ok" and len(api.asked) == 3
    assert seen.kinds().count("ModelRetry") == 2


async def test_history_goes_back_as_it_came() -> None:
    picture = Image("image/png", b"\x89PNG")
    history = (
        Message("user", (Text("look"), picture)),
        Message(
            "assistant",
            (
                Thinking("hm", "SIG"),
                Thinking("", "redacted:ENC"),
                Thinking("foreign", "openai:{}"),
                Thinking("unsigned"),
                Text(" "),
                ToolCall("a:1", "read", {"path": "x"}),
                ToolCall("b", "ls", None, "{broken"),
            ),
        ),
        Message("tool", (ToolResult("a:1", (Text("T"), picture), name="read"),)),
        Message("user", (Text("go on"),)),
    )
    body = _body(SONNET, *history)
    first, second, third = body["messages"]
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    assert first["content"][1]["source"]["media_type"] == "image/png"
    assert second["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "ENC"},
        {"type": "tool_use", "id": "a_1", "name": "read", "input": {"path": "x"}},
        {"type": "tool_use", "id": "b", "name": "ls", "input": {}},
    ]
    results = third["content"]
    assert [block["type"] for block in results] == ["tool_result", "tool_result", "text"]
    assert results[0]["tool_use_id"] == "a_1"
    assert [part["type"] for part in results[0]["content"]] == ["text", "image"]
    assert results[1]["is_error"] is True  # the call that was never answered


def _body(model: ModelInfo, *messages: Message, **more: Any) -> Any:
    import json

    return json.loads(Anthropic().body(request(model, *messages, **more)))


def test_reasoning_becomes_a_budget_or_an_effort() -> None:
    assert "thinking" not in _body(SONNET, reasoning="off")
    body = _body(SONNET, reasoning="low", temperature=0.3)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert "temperature" not in body
    small = _body(SONNET, reasoning="high", max_output=1000)
    assert small["max_tokens"] > small["thinking"]["budget_tokens"] >= 16_384
    body = _body(OPUS, reasoning="xhigh")
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "xhigh"}
    assert _body(SONNET, temperature=0.3)["temperature"] == 0.3


def test_thinking_is_not_switched_on_between_a_call_and_its_result() -> None:
    called = Message("assistant", (ToolCall("a", "ls", {}),))
    result = Message("tool", (ToolResult("a", (Text("x"),)),))
    assert "thinking" not in _body(SONNET, user("x"), called, result, reasoning="high")
    thought = Message("assistant", (Thinking("h", "S"), ToolCall("a", "ls", {})))
    assert "thinking" in _body(SONNET, user("x"), thought, result, reasoning="high")


def test_the_answer_leaves_room_for_the_prompt() -> None:
    body = _body(SONNET, user("x" * 480_000))
    assert body["max_tokens"] <= 200_000 - 160_000
    assert _body(SONNET)["max_tokens"] == SONNET.max_output
