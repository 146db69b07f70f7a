"""What a refusal means, whoever wrote it and in whichever form; keys do not come back in it."""

import time
from email.utils import formatdate
from typing import Any

import msgspec
import pytest

from dragoman.providers.failures import ErrorBody, from_event, from_response


def seen(status: int, body: Any = b"", **headers: str) -> Any:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return from_response("acme", status, names, data)


def test_a_body_that_nests_without_end_is_a_refusal_like_another() -> None:
    assert seen(503, b"[" * 100_000).kind == "overloaded"


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, {}, "auth"),
        (402, {}, "auth"),
        (403, {}, "auth"),
        (400, {"message": "API key not valid. Please pass one."}, "auth"),
        (429, {"type": "insufficient_quota"}, "auth"),
        (429, {}, "rate_limit"),
        (529, {}, "overloaded"),
        (503, {}, "overloaded"),
        (500, {"type": "overloaded_error"}, "overloaded"),
        (400, {"message": "prompt is too long: 9 > 8"}, "context_full"),
        (400, {"code": "context_length_exceeded"}, "context_full"),
        (413, {}, "context_full"),
        (500, {"message": "exceed_context_size"}, "context_full"),
        (404, {"message": "context window"}, "bad_request"),
        (500, {}, "server"),
        (408, {}, "server"),
        (502, {}, "server"),
        (400, {}, "bad_request"),
        (418, {}, "bad_request"),
        (400, {"code": "content_policy_violation"}, "refused"),
    ],
)
def test_the_kind_of_a_refusal(status: int, error: dict[str, Any], kind: str) -> None:
    assert seen(status, {"error": error}).kind == kind


@pytest.mark.parametrize(
    "said",
    [
        "input length and `max_tokens` exceed context limit: 190000 + 9000 > 199000",
        "The prompt (length 9) is longer than the maximum model length of 8.",
        "Input prompt (9 tokens) is too long",
        "`inputs` tokens + `max_new_tokens` must be <= 8. Given: 9",
        "This model's maximum prompt length is 8 but the request contains 9 tokens",
        "Your request exceeded model token limit: 8",
        "Range of input length should be [1, 8]",
        "Prompt exceeds max length",
        "prompt token count of 9 exceeds the limit of 8",
        "the number of input tokens 9 cannot exceed the total tokens limit 8",
        "Request payload size exceeds the limit: 8 bytes",
        "Invalid 'messages[1].content': string too long",
        "the request exceeds the available context size",
    ],
)
def test_a_prompt_that_is_too_long_is_known_by_many_sentences(said: str) -> None:
    assert seen(400, {"error": {"message": said}}).kind == "context_full"
    wrapped = ErrorBody(message=said, type="invalid_request_error")
    assert from_event("p", wrapped).kind == "context_full"


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens: 9 > 8, the most output tokens that are allowed",
        "messages: text content blocks must be non-empty",
        "tools.0.name: must match the pattern",
        "temperature must be <= 1",
        "model not found",
        "image exceeds 5 MB maximum",
        "invalid input: messages must alternate",
        "Invalid 'tools[3].function.name': string too long",
        "Invalid 'input[4].call_id': string too long",
    ],
)
def test_other_mistakes_are_no_long_prompt(said: str) -> None:
    assert seen(400, {"error": {"message": said}}).kind == "bad_request"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error":{"message":"why"}}', "why"),
        (b'{"error":"why"}', "why"),
        (b'{"detail":"why"}', "why"),
        (b'[{"error":{"message":"why","code":400}}]', "why"),
        (b'{"message":"why"}', "why"),
        (b"<html>why</html>", "<html>why</html>"),
        (b'{"error":{"message":5}}', '{"error":{"message":5}}'),
        (b"", "no reason given"),
        (b"[]", "[]"),
        (b"\xff", "\ufffd"),
        (b"7", "7"),
    ],
)
def test_the_reason_is_found_whatever_wraps_it(body: bytes, text: str) -> None:
    assert seen(400, body).message == f"acme did not accept the request (400): {text}"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after_ms": "250"}, 0.25),
        ({"retry_after_ms": "250", "retry_after": "7"}, 0.25),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_when_to_come_back(headers: dict[str, str], seconds: float | None) -> None:
    assert seen(429, **headers).retry_after == seconds


def test_when_to_come_back_as_a_date_or_in_the_body() -> None:
    later = seen(429, retry_after=formatdate(time.time() + 100, usegmt=True)).retry_after
    assert 90 < later <= 100
    assert seen(429, retry_after=formatdate(0, usegmt=True)).retry_after == 0.0
    google = {
        "error": {"status": "RESOURCE_EXHAUSTED", "details": [{"x": 1}, {"retryDelay": "31.5s"}]}
    }
    assert (seen(429, google).retry_after, seen(429, google).kind) == (31.5, "rate_limit")
    odd = {"error": {"details": ["31s", {"retryDelay": "soon"}, {"retryDelay": 3}]}}
    assert seen(429, odd).retry_after is None


def test_a_key_in_the_answer_is_hidden_and_long_answers_are_cut() -> None:
    failed = from_response("acme", 401, {}, b"bad key sk-12345 " + b"x" * 900, "sk-12345")
    assert "sk-12345" not in failed.message and "***" in failed.message
    assert len(failed.message) < 600 and failed.message.endswith("…")
    assert failed.hint == "Check the key and the account."
    assert "b" in from_response("acme", 400, {}, b"b", "b").message  # too short to be a secret


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("it broke", "server"),
        (ErrorBody(), "server"),
        (ErrorBody(type="overloaded_error"), "overloaded"),
        (ErrorBody(code=429), "rate_limit"),
        (ErrorBody(code=200), "server"),
        (ErrorBody(message="maximum context", type="invalid_request_error"), "context_full"),
        (ErrorBody(type="invalid_request_error"), "bad_request"),
        (ErrorBody(status="UNAVAILABLE"), "overloaded"),
    ],
)
def test_errors_inside_a_stream(error: ErrorBody | str, kind: str) -> None:
    failed = from_event("acme", error)
    assert failed.kind == kind and failed.message.startswith("acme ")
