import json
from typing import Any

import pytest
from tests.providers.fake_http import FakeApi, Reply, gemini, sse
from tests.providers.parts import QUICK, READ, Seen, read, request, user

from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from dragoman.engine.ports import ModelInfo, ModelThought
from dragoman.providers.catalogue import catalogue
from dragoman.providers.google import Google
from dragoman.providers.remote import Remote

PRO = catalogue().find("google", "gemini-2.5-pro") or ModelInfo("", "")
NEW = ModelInfo("google", "gemini-3-flash-preview", reasoning=True)
NEWPRO = ModelInfo("google", "gemini-3.1-pro-preview", reasoning=True)


async def ask(*replies: Reply, **more: Any) -> tuple[Seen, FakeApi]:
    async with FakeApi(*replies) as api:
        remote = Remote("google", Google(), base_url=api.url, key="AIza", rules=QUICK)
        seen = await read(remote.stream(request(PRO, **more)))
        await remote.close()
    return seen, api


async def test_text_thoughts_usage() -> None:
    stream = sse(
        gemini({"text": "hm", "thought": True}, promptTokenCount=120),
        gemini({"text": "Hel"}),
        gemini(
            {"text": "lo"},
            finish="STOP",
            promptTokenCount=120,
            candidatesTokenCount=10,
            thoughtsTokenCount=5,
            cachedContentTokenCount=20,
            totalTokenCount=135,
        ),
    )
    seen, api = await ask(Reply([stream]), system="be brief", tools=(READ,))
    assert (seen.thought, seen.text, seen.stop) == ("hm", "Hello", "end_turn")
    assert seen.usage == Usage(100, 15, 20, 0, 5)
    asked = api.asked[0]
    assert asked.path == "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    assert asked.headers["x-goog-api-key"] == "AIza"
    assert asked.body["systemInstruction"]["parts"][0]["text"] == "be brief"
    declared = asked.body["tools"][0]["functionDeclarations"][0]
    assert declared["parametersJsonSchema"] == READ.schema


async def test_calls_come_whole_with_their_signature() -> None:
    first = {"functionCall": {"name": "read", "args": {"path": "x"}}, "thoughtSignature": "SIG"}
    second = {"functionCall": {"name": "ls", "id": "own"}}
    seen, _ = await ask(Reply([sse(gemini(first, second, finish="STOP"))]))
    assert list(seen.calls.values()) == [("read", '{"path":"x"}'), ("ls", "{}")]
    assert "own" in seen.calls and seen.stop == "tool_use"
    assert ModelThought("", "google:SIG") in seen.parts


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("MAX_TOKENS", "length"), ("SAFETY", "refusal"), ("RECITATION", "refusal")],
)
async def test_stops(finish: str, stop: str) -> None:
    seen, _ = await ask(Reply([sse(gemini({"text": "x"}, finish=finish))]))
    assert seen.stop == stop


async def test_a_blocked_prompt_is_a_refusal() -> None:
    seen, _ = await ask(Reply([sse({"promptFeedback": {"blockReason": "SAFETY"}})]))
    assert seen.stop == "refusal" and seen.failure is None


async def test_a_stream_without_a_finish_is_cut() -> None:
    seen, _ = await ask(Reply([sse(gemini({"text": "half"}))]))
    assert seen.failure is not None and seen.failure.kind == "network" and seen.text == "half"


async def test_a_broken_call_is_tried_again() -> None:
    broken = gemini(finish="MALFORMED_FUNCTION_CALL")
    good = gemini({"text": "ok"}, finish="STOP")
    seen, api = await ask(Reply([sse(broken)]), Reply([sse(good)]))
    assert seen.text == "ok" and len(api.asked) == 2


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (
            400,
            {"message": "API key not valid. Please pass one.", "status": "INVALID_ARGUMENT"},
            "auth",
        ),
        (400, {"message": "The input token count (9) exceeds the maximum"}, "context_full"),
        (403, {"message": "no", "status": "PERMISSION_DENIED"}, "auth"),
        (404, {"message": "models/x is not found", "status": "NOT_FOUND"}, "bad_request"),
    ],
)
async def test_errors(status: int, error: dict[str, Any], kind: str) -> None:
    seen, api = await ask(Reply.error(status, [{"error": {"code": status, **error}}]))
    assert seen.failure is not None and seen.failure.kind == kind and len(api.asked) == 1


async def test_the_delay_in_a_rate_limit_is_kept() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.02s"}
    limit = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    good = sse(gemini({"text": "ok"}, finish="STOP"))
    seen, _ = await ask(Reply.error(429, limit), Reply([good]))
    assert seen.text == "ok"
    assert 0.02 <= seen.parts[0].delay < 0.3  # type: ignore[union-attr]


def _body(model: ModelInfo, *messages: Message, **more: Any) -> Any:
    return json.loads(Google().body(request(model, *messages, **more)))


def test_history() -> None:
    picture = Image("image/png", b"PNG")
    messages = (
        Message("user", (Text("look"), picture)),
        Message(
            "assistant",
            (
                Thinking("hm", "google:SIG"),
                ToolCall("a", "read", {"path": "x"}),
                ToolCall("b", "ls", {}),
            ),
        ),
        Message("tool", (ToolResult("a", (Text("T"), picture)), ToolResult("b", (), True))),
        user("go on"),
    )
    first, second, third = _body(PRO, *messages)["contents"]
    assert first["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "UE5H"}}
    assert second["role"] == "model" and second["parts"][0]["thoughtSignature"] == "SIG"
    assert "thoughtSignature" not in second["parts"][1]
    responses = [part for part in third["parts"] if "functionResponse" in part]
    assert responses[0]["functionResponse"] == {"name": "read", "response": {"output": "T"}}
    assert "error" in responses[1]["functionResponse"]["response"]
    assert third["parts"][-1] == {"text": "go on"}


def test_calls_of_other_models_are_marked_for_strict_ones() -> None:
    called = Message("assistant", (Thinking("h", "SIG"), ToolCall("a", "ls", {})))
    part = _body(NEW, user("x"), called)["contents"][1]["parts"][0]
    assert part["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in _body(PRO, user("x"), called)["contents"][1]["parts"][0]


@pytest.mark.parametrize(
    ("model", "level", "config"),
    [
        (PRO, "", {"includeThoughts": True}),
        (PRO, "off", {"includeThoughts": True, "thinkingBudget": 128}),
        (PRO, "max", {"includeThoughts": True, "thinkingBudget": 24_576}),
        (NEW, "low", {"includeThoughts": True, "thinkingLevel": "low"}),
        (NEW, "off", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        (NEWPRO, "medium", {"includeThoughts": True, "thinkingLevel": "high"}),
        (NEW, "xhigh", {"includeThoughts": True, "thinkingLevel": "high"}),
    ],
)
def test_thinking(model: ModelInfo, level: str, config: dict[str, Any]) -> None:
    assert _body(model, reasoning=level)["generationConfig"]["thinkingConfig"] == config
