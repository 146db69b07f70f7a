import json
from typing import Any

import pytest
from tests.providers.fake_http import (
    FakeApi,
    Reply,
    chat_call,
    chat_delta,
    chat_usage,
    sse,
)
from tests.providers.parts import QUICK, READ, Seen, read, request, user

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.engine.ports import ModelInfo, ModelThought
from dragoman.providers.catalogue import catalogue
from dragoman.providers.openai_chat import OpenAIChat, openai_effort
from dragoman.providers.openai_responses import OpenAIResponses
from dragoman.providers.remote import Format, Remote

GPT = catalogue().find("openai", "gpt-5") or ModelInfo("", "")
PLAIN = ModelInfo("ollama", "llama", price_input=None)


async def ask(
    format: Format, *replies: Reply, model: ModelInfo = GPT, **more: Any
) -> tuple[Seen, FakeApi]:
    async with FakeApi(*replies) as api:
        remote = Remote("openai", format, base_url=f"{api.url}/v1", key="sk-x", rules=QUICK)
        seen = await read(remote.stream(request(model, **more)))
        await remote.close()
    return seen, api


async def test_chat_text_and_usage() -> None:
    stream = sse(
        chat_delta(role="assistant", content=""),
        chat_delta(content="Hel"),
        chat_delta(content="lo"),
        chat_delta("stop"),
        chat_usage(120, 10, cached=20, reasoning=4),
        "[DONE]",
    )
    seen, api = await ask(OpenAIChat(), Reply([stream]), system="be brief", reasoning="low")
    assert seen.text == "Hello" and seen.stop == "end_turn"
    assert seen.usage == Usage(100, 10, 20, 0, 4)
    assert GPT.cost(seen.usage) == pytest.approx(0.0002275)
    asked = api.asked[0]
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer sk-x"
    assert asked.body["messages"][0] == {"role": "system", "content": "be brief"}
    assert asked.body["stream_options"] == {"include_usage": True}
    assert asked.body["max_completion_tokens"] == GPT.max_output
    assert asked.body["reasoning_effort"] == "low"


async def test_chat_calls_by_index() -> None:
    stream = sse(
        chat_delta(role="assistant", content=None),
        chat_call(0, "call_a", "read", ""),
        chat_call(0, None, None, '{"path"'),
        chat_call(1, "call_b", "ls", ""),
        chat_call(0, None, None, ':"x"}'),
        chat_call(1, None, None, "{}"),
        chat_delta("tool_calls"),
        "[DONE]",
    )
    seen, api = await ask(OpenAIChat(), Reply([stream]), tools=(READ,))
    assert seen.calls == {"call_a": ("read", '{"path":"x"}'), "call_b": ("ls", "{}")}
    assert seen.kinds()[-3:] == ["ModelCallEnded", "ModelCallEnded", "ModelStop"]
    assert seen.stop == "tool_use"
    assert api.asked[0].body["tools"][0]["function"]["parameters"] == READ.schema


async def test_chat_calls_that_all_have_one_number_are_told_apart() -> None:
    stream = sse(
        chat_call(0, "call_a", "read", '{"path"'),
        chat_call(0, "call_a", "read", ':"x"'),  # once more, as it was
        chat_call(0, None, None, "}"),
        chat_call(0, "call_b", "ls", '{"path":'),
        chat_call(0, None, None, '"y"}'),
        chat_delta("stop"),
        "[DONE]",
    )
    seen, _ = await ask(OpenAIChat(), Reply([stream]))
    assert seen.calls == {"call_a": ("read", '{"path":"x"}'), "call_b": ("ls", '{"path":"y"}')}
    assert seen.kinds().count("ModelCallEnded") == 2 and seen.stop == "tool_use"


async def test_chat_calls_that_all_have_one_id_are_told_apart() -> None:
    stream = sse(
        chat_call(0, "call", "read", '{"path"'),
        chat_call(1, "call", "ls", '{"path"'),
        chat_call(0, None, None, ':"x"}'),
        chat_call(1, None, None, ':"y"}'),
        chat_delta("tool_calls"),
        "[DONE]",
    )
    seen, _ = await ask(OpenAIChat(), Reply([stream]))
    assert list(seen.calls.values()) == [("read", '{"path":"x"}'), ("ls", '{"path":"y"}')]
    assert seen.kinds().count("ModelCallEnded") == 2


async def test_chat_calls_without_index_or_id() -> None:
    whole = {"function": {"name": "read", "arguments": {"path": "x"}}}
    second = {"id": "two", "function": {"name": "ls", "arguments": "{}"}}
    stream = sse(chat_delta(tool_calls=[whole, second]), chat_delta("stop"), "[DONE]")
    seen, _ = await ask(OpenAIChat(), Reply([stream]))
    assert list(seen.calls.values()) == [("read", '{"path":"x"}'), ("ls", "{}")]
    assert "two" in seen.calls and seen.stop == "tool_use"


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
async def test_chat_reasoning(delta: dict[str, Any]) -> None:
    stream = sse(chat_delta(**delta), chat_delta(content="yes"), chat_delta("stop"), "[DONE]")
    seen, _ = await ask(OpenAIChat(), Reply([stream]))
    assert seen.thought == "hm" and seen.text == "yes"


@pytest.mark.parametrize(
    ("finish", "stop"), [("length", "length"), ("content_filter", "refusal"), ("odd", "end_turn")]
)
async def test_chat_stops(finish: str, stop: str) -> None:
    seen, _ = await ask(OpenAIChat(), Reply([sse(chat_delta(finish, content="x"), "[DONE]")]))
    assert seen.stop == stop


async def test_chat_without_done_but_with_a_finish_is_whole() -> None:
    seen, _ = await ask(OpenAIChat(), Reply([sse(chat_delta(content="x"), chat_delta("stop"))]))
    assert seen.failure is None and seen.stop == "end_turn"


async def test_chat_without_a_finish_is_cut() -> None:
    seen, _ = await ask(OpenAIChat(), Reply([sse(chat_delta(content="half"))]))
    assert seen.failure is not None and seen.failure.kind == "network" and seen.text == "half"


async def test_chat_error_in_the_stream() -> None:
    error = {"error": {"message": "Provider overloaded", "code": 503}}
    seen, _ = await ask(OpenAIChat(), Reply([sse(chat_delta(content="x"), error)]))
    assert seen.failure is not None and seen.failure.kind == "overloaded"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
            Usage(6, 2, 4),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 3}, Usage(7, 2, 3)),
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, 2)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 5},
            },
            Usage(4, 2, 1, 5),
        ),
    ],
)
async def test_chat_cached_tokens_of_other_servers(usage: dict[str, Any], expected: Usage) -> None:
    chunk = chat_delta("stop", content="x") | {"usage": usage}
    seen, _ = await ask(OpenAIChat(), Reply([sse(chunk, "[DONE]")]))
    assert seen.usage == expected


PICTURE = Image("image/png", b"PNG")
HISTORY = (
    Message("user", (Text("look"), PICTURE)),
    Message("assistant", (Thinking("hm"), Text("I do"), ToolCall("a", "read", {"path": "x"}))),
    Message("tool", (ToolResult("a", (Text("bad"), PICTURE), True, "read"),)),
)


def _chat(*messages: Message, model: ModelInfo = GPT, format: OpenAIChat, **more: Any) -> Any:
    return json.loads(format.body(request(model, *messages, **more)))


def test_chat_history() -> None:
    body = _chat(*HISTORY, format=OpenAIChat(returns_thoughts=True))
    first, second, third, fourth = body["messages"]
    assert first["content"][1]["image_url"]["url"] == "data:image/png;base64,UE5H"
    assert second["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"path":"x"}'}
    assert second["content"] == "I do" and second["reasoning_content"] == "hm"
    assert third["role"] == "tool" and third["content"].startswith("bad\n[")
    assert fourth["role"] == "user" and fourth["content"][1]["type"] == "image_url"
    assert "reasoning_content" not in _chat(*HISTORY, format=OpenAIChat())["messages"][1]


def test_chat_limits_and_effort_by_server() -> None:
    plain = _chat(model=PLAIN, format=OpenAIChat(effort="plain"), temperature=0.5)
    assert "max_tokens" not in plain and plain["temperature"] == 0.5
    assert _chat(model=PLAIN, format=OpenAIChat(effort="plain"), max_output=99)["max_tokens"] == 99
    router = _chat(format=OpenAIChat(effort="openrouter"), reasoning="off")
    assert router["reasoning"] == {"enabled": False} and "max_tokens" in router
    assert "reasoning_effort" not in _chat(format=OpenAIChat(effort="none"), reasoning="high")


@pytest.mark.parametrize(
    ("model", "level", "word"),
    [
        ("gpt-5", "off", "minimal"),
        ("gpt-5-mini", "max", "high"),
        ("gpt-5.1", "off", "none"),
        ("gpt-5.2", "max", "xhigh"),
        ("gpt-5.2-codex", "off", "low"),
        ("o3", "minimum", "low"),
        ("o4-mini", "medium", "medium"),
    ],
)
def test_effort_words(model: str, level: str, word: str) -> None:
    assert openai_effort(model, level) == word


# --- Responses ---------------------------------------------------------------------------------


def _done(kind: str = "response.completed", **response: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 120,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 130,
    }
    return {"type": kind, "response": {"id": "resp_1", "usage": usage, "error": None, **response}}


async def test_responses_reasoning_text_and_calls() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read"}
    late = {**call, "id": "fc_2", "call_id": "call_2", "name": "ls", "arguments": "{}"}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"}
    summary = "response.reasoning_summary_text.delta"
    args = "response.function_call_arguments.delta"
    stream = sse(
        {"type": "response.created", "response": {"id": "resp_1", "usage": None}},
        {"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1"}},
        {"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": {}},
        {"type": summary, "item_id": "rs_1", "summary_index": 0, "delta": "hm"},
        {"type": "response.reasoning_summary_part.added", "summary_index": 1, "part": {}},
        {"type": summary, "item_id": "rs_1", "summary_index": 1, "delta": "so"},
        {"type": "response.output_item.done", "item": thought},
        {"type": "response.output_text.delta", "item_id": "m", "delta": "I look."},
        {"type": "response.output_item.added", "item": {**call, "arguments": ""}},
        {"type": args, "item_id": "fc_1", "delta": '{"path":'},
        {"type": args, "item_id": "fc_1", "delta": '"x"}'},
        {"type": "response.output_item.done", "item": {**call, "arguments": '{"path":"x"}'}},
        {"type": "response.output_item.done", "item": late},
        _done(),
        name=True,
    )
    seen, api = await ask(OpenAIResponses(), Reply([stream]), tools=(READ,), system="be brief")
    assert seen.thought == "hm\n\nso" and seen.text == "I look." and seen.stop == "tool_use"
    assert seen.calls == {"call_1": ("read", '{"path":"x"}'), "call_2": ("ls", "{}")}
    assert seen.usage == Usage(100, 10, 20, 0, 3)
    signed = [p.signature for p in seen.parts if isinstance(p, ModelThought) and p.signature]
    assert signed == ['openai:{"id":"rs_1","encrypted_content":"ENC"}']
    body = api.asked[0].body
    assert api.asked[0].path == "/v1/responses" and body["store"] is False
    assert body["instructions"] == "be brief"
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["tools"][0]["name"] == "read"


@pytest.mark.parametrize(
    ("event", "stop"),
    [
        (
            _done("response.incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "length",
        ),
        (_done("response.incomplete", incomplete_details={"reason": "content_filter"}), "refusal"),
        (_done(), "end_turn"),
    ],
)
async def test_responses_stops(event: dict[str, Any], stop: str) -> None:
    seen, _ = await ask(OpenAIResponses(), Reply([sse(event)]))
    assert seen.stop == stop


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, "rate_limit"),
        ({"type": "error", "error": {"code": "server_error", "message": "x"}}, "server"),
        (_done("response.failed", error={"code": "context_length_exceeded"}), "context_full"),
    ],
)
async def test_responses_failures(event: dict[str, Any], kind: str) -> None:
    text = {"type": "response.output_text.delta", "delta": "half"}
    seen, _ = await ask(OpenAIResponses(), Reply([sse(text, event)]))
    assert seen.failure is not None and seen.failure.kind == kind and seen.text == "half"


async def test_responses_without_its_end_is_cut() -> None:
    text = {"type": "response.output_text.delta", "delta": "half"}
    seen, _ = await ask(OpenAIResponses(), Reply([sse(text)]))
    assert seen.failure is not None and seen.failure.kind == "network"


def test_responses_history() -> None:
    signed = Thinking("hm", 'openai:{"id":"rs_1","encrypted_content":"ENC"}')
    said = Message("assistant", (signed, Thinking("x", "SIG"), *HISTORY[1].content))
    messages = (HISTORY[0], said, HISTORY[2], user("go on"))
    body = json.loads(OpenAIResponses().body(request(GPT, *messages, reasoning="high")))
    kinds = [item["type"] for item in body["input"]]
    assert kinds == [
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert body["input"][0]["content"][1]["type"] == "input_image"
    assert body["input"][1]["encrypted_content"] == "ENC"
    assert body["input"][4]["output"][1]["type"] == "input_image"
    assert body["reasoning"] == {"summary": "auto", "effort": "high"}
