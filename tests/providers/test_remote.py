"""What all formats share: retry, time-outs, cancel, cut streams, errors, kept connections."""

import asyncio
import json
import time
from contextlib import aclosing
from typing import Any

import pytest
from tests.providers.fake_http import (
    FakeApi,
    Reply,
    chat_delta,
    claude,
    claude_end,
    claude_start,
    claude_text,
    gemini,
    sse,
)
from tests.providers.parts import QUICK, Seen, read, request, user
from tests.timed import promised

from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import ModelInfo, ModelOpened, ModelPart, ModelRetry, ModelText
from dragoman.providers.anthropic import Anthropic
from dragoman.providers.google import Google
from dragoman.providers.openai_chat import OpenAIChat
from dragoman.providers.openai_responses import OpenAIResponses
from dragoman.providers.remote import Format, Remote, Timeouts

MODEL = ModelInfo("p", "m")
WORDS = "naïve €5 😀 ok"
STREAMS: dict[str, tuple[Format, bytes]] = {
    "anthropic": (
        Anthropic(),
        claude(claude_start(), *claude_text(*WORDS.split(" ")), *claude_end()),
    ),
    "chat": (
        OpenAIChat(),
        sse(*(chat_delta(content=w) for w in WORDS.split(" ")), chat_delta("stop"), "[DONE]"),
    ),
    "responses": (
        OpenAIResponses(),
        sse(
            *({"type": "response.output_text.delta", "delta": w} for w in WORDS.split(" ")),
            {"type": "response.completed", "response": {}},
            name=True,
        ),
    ),
    "google": (
        Google(),
        sse(*(gemini({"text": w}) for w in WORDS.split(" ")), gemini(finish="STOP")),
    ),
}
EACH = pytest.mark.parametrize("name", STREAMS)


def remote(api: FakeApi, format: Format, **more: Any) -> Remote:
    return Remote("p", format, base_url=api.url, key="sk-secret", **({"rules": QUICK} | more))


async def ask(format: Format, *replies: Reply, **more: Any) -> tuple[Seen, FakeApi]:
    async with FakeApi(*replies) as api:
        provider = remote(api, format, **more)
        seen = await read(provider.stream(request(MODEL)))
        await provider.close()
    return seen, api


@EACH
async def test_the_first_part_says_that_the_request_was_taken(name: str) -> None:
    format, stream = STREAMS[name]
    seen, _ = await ask(format, Reply([stream]))
    assert seen.parts[0] == ModelOpened() and seen.kinds().count("ModelOpened") == 1
    assert seen.text == WORDS.replace(" ", "") and seen.stop == "end_turn"


@EACH
async def test_bytes_one_by_one_give_the_same(name: str) -> None:
    format, stream = STREAMS[name]
    seen, _ = await ask(format, Reply([bytes([byte]) for byte in stream]))
    assert seen.failure is None and seen.text == WORDS.replace(" ", "")


@EACH
async def test_a_cut_anywhere_in_a_character_gives_the_same(name: str) -> None:
    format, stream = STREAMS[name]
    start, end = stream.index("ï".encode()), stream.index("😀".encode()) + 5
    async with FakeApi(Reply()) as api:
        provider = remote(api, format)
        for cut in range(start, end):
            api.replies[0] = Reply([stream[:cut], stream[cut:]])
            seen = await read(provider.stream(request(MODEL)))
            assert seen.text == WORDS.replace(" ", ""), cut
        await provider.close()
        assert api.connections == 1


@EACH
async def test_a_stream_that_breaks_keeps_its_words(name: str) -> None:
    format, stream = STREAMS[name]
    half = stream[: stream.index("€5".encode()) + 40]
    seen, api = await ask(format, Reply([half], drop=True))
    assert seen.failure is not None and seen.failure.kind == "network"
    assert seen.text.startswith("naïve") and len(api.asked) == 1


@EACH
async def test_a_stream_that_breaks_before_a_word_is_tried_again(name: str) -> None:
    format, stream = STREAMS[name]
    seen, api = await ask(format, Reply([b": hello\n\n"], drop=True), Reply([stream]))
    assert seen.failure is None and seen.text == WORDS.replace(" ", "")
    assert len(api.asked) == 2


@EACH
@promised(0.1)
async def test_cancel_closes_the_connection_at_once(name: str, within: float) -> None:
    format, stream = STREAMS[name]
    first = stream[: stream.index("€5".encode())].rpartition(b"\n\n")[0] + b"\n\n"
    async with FakeApi(Reply([first], hold=True)) as api:
        provider = remote(api, format)
        spoken = asyncio.Event()

        async def consume() -> None:
            async for part in provider.stream(request(MODEL)):
                if isinstance(part, ModelText):
                    spoken.set()

        task = asyncio.create_task(consume())
        async with asyncio.timeout(60):
            await spoken.wait()
            await api.holding.wait()
        began = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(60):
            await api.hung_up.wait()
        assert time.perf_counter() - began < within
        await provider.close()


async def test_leaving_the_iteration_closes_the_connection() -> None:
    format, stream = STREAMS["chat"]
    async with FakeApi(Reply([stream[:200]], hold=True)) as api:
        provider = remote(api, format)
        async with aclosing(provider.stream(request(MODEL))) as parts:  # type: ignore[type-var]
            async for part in parts:
                if isinstance(part, ModelText):
                    break
        async with asyncio.timeout(60):
            await api.hung_up.wait()
        await provider.close()


async def test_cancel_while_waiting_for_a_retry() -> None:
    format, _ = STREAMS["chat"]
    async with FakeApi(Reply.error(429, {"error": {"message": "x"}}, retry_after="30")) as api:
        provider = remote(api, format)
        waiting = asyncio.Event()

        async def consume() -> None:
            async for part in provider.stream(request(MODEL)):
                if isinstance(part, ModelRetry):
                    waiting.set()

        task = asyncio.create_task(consume())
        async with asyncio.timeout(60):
            await waiting.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await provider.close()


@EACH
@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, {"retry_after": "0.02"}), (500, {}), (502, {}), (503, {}), (529, {}), (408, {})],
)
async def test_what_passes_is_tried_again(name: str, status: int, headers: dict[str, str]) -> None:
    format, stream = STREAMS[name]
    bad = Reply.error(status, {"error": {"type": "x", "message": "later"}}, **headers)
    seen, api = await ask(format, bad, bad, Reply([stream]))
    assert seen.failure is None and seen.text == WORDS.replace(" ", "")
    retries = [part for part in seen.parts if isinstance(part, ModelRetry)]
    assert [part.attempt for part in retries] == [1, 2] and len(api.asked) == 3
    assert "later" in retries[0].reason
    if status == 429:
        assert all(0.02 <= part.delay < 0.3 for part in retries)


async def test_retry_after_as_milliseconds_and_as_a_date() -> None:
    format, stream = STREAMS["chat"]
    body = {"error": {"message": "later"}}
    soon = Reply.error(429, body, retry_after_ms="30")
    past = Reply.error(429, body, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")
    odd = Reply.error(429, body, retry_after="soon")
    seen, _ = await ask(format, soon, past, odd, Reply([stream]))
    delays = [part.delay for part in seen.parts if isinstance(part, ModelRetry)]
    assert 0.03 <= delays[0] < 0.3 and 0 <= delays[1] < 0.3 and delays[2] < 0.1
    assert seen.text


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "Incorrect API key: sk-secret", "code": "x"}}, "auth"),
        (403, {"error": "forbidden"}, "auth"),
        (402, {"error": {"message": "no credits", "code": 402}}, "auth"),
        (400, {"error": {"code": "context_length_exceeded", "message": "x"}}, "context_full"),
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 9 tokens > 8",
                },
            },
            "context_full",
        ),
        (413, b"<html>too large</html>", "context_full"),
        (400, {"error": {"type": "invalid_request_error", "message": "bad tool"}}, "bad_request"),
        (404, b"404 page not found", "bad_request"),
        (422, {"detail": [{"msg": "field required"}]}, "bad_request"),
        (429, {"error": {"code": "insufficient_quota", "message": "pay"}}, "auth"),
        (400, b"", "bad_request"),
        (418, b"\xff\xfe broken", "bad_request"),
    ],
)
async def test_what_does_not_pass_fails_at_once(status: int, body: Any, kind: str) -> None:
    seen, api = await ask(OpenAIChat(), Reply.error(status, body))
    assert seen.failure is not None and seen.failure.kind == kind
    assert seen.failure.status == status and len(api.asked) == 1
    assert seen.parts == [] and "sk-secret" not in str(seen.failure)


async def test_retries_end() -> None:
    seen, api = await ask(OpenAIChat(), Reply.error(500, {"error": {"message": "broken"}}))
    assert seen.failure is not None and seen.failure.kind == "server"
    assert "broken" in seen.failure.message and len(api.asked) == QUICK.retries + 1


async def test_an_error_body_is_bounded() -> None:
    seen, _ = await ask(OpenAIChat(), Reply.error(400, b"x" * 500_000))
    assert seen.failure is not None and len(str(seen.failure)) < 1_000


async def test_nobody_there() -> None:
    async with FakeApi(Reply()) as api:
        url = api.url
    provider = Remote("p", OpenAIChat(), base_url=url, rules=QUICK)
    seen = await read(provider.stream(request(MODEL)))
    await provider.close()
    assert seen.failure is not None and seen.failure.kind == "network"
    assert url in seen.failure.message and seen.kinds() == ["ModelRetry"] * 3


async def test_a_password_in_the_address_is_not_told() -> None:
    """What fails is kept in the history, and everybody who watches sees it."""
    provider = Remote(
        "p", OpenAIChat(), base_url="http://me:hunter22@127.0.0.1:1/v1?code=hunter23", rules=QUICK
    )
    seen = await read(provider.stream(request(MODEL)))
    await provider.close()
    assert seen.failure is not None and "127.0.0.1:1" in seen.failure.message
    assert "hunter" not in seen.failure.message


async def test_silence_is_a_network_failure() -> None:
    format, stream = STREAMS["chat"]
    reply = Reply([stream[:200]], hold=True)
    seen, _ = await ask(format, reply, timeouts=Timeouts(read=0.05))
    assert seen.failure is not None and seen.failure.kind == "network"
    assert "in time" in seen.failure.message


async def test_a_slow_stream_that_moves_is_not_cut() -> None:
    format, stream = STREAMS["chat"]
    size = len(stream) // 24  # more pauses together than it may be silent
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    reply = Reply(chunks, pause=0.1)
    seen, _ = await ask(format, reply, timeouts=Timeouts(read=2))
    assert seen.failure is None and seen.stop == "end_turn"


async def test_parts_come_as_they_are_sent() -> None:
    async with FakeApi(Reply([sse(chat_delta(content="now"))], hold=True)) as api:
        provider = remote(api, OpenAIChat())
        stream = provider.stream(request(MODEL))
        async with asyncio.timeout(60):
            first: list[ModelPart] = [await anext(stream), await anext(stream)]
        assert first == [ModelOpened(), ModelText("now")]
        await stream.aclose()  # type: ignore[attr-defined]
        await provider.close()


async def test_a_page_instead_of_a_stream() -> None:
    page = Reply([b"<html>sign in</html>"], headers={"content-type": "text/html"})
    seen, _ = await ask(OpenAIChat(), page)
    assert seen.failure is not None and seen.failure.kind == "bad_request"
    assert "sign in" in seen.failure.message and "base_url" in seen.failure.hint


async def test_garbage_in_the_stream() -> None:
    text = sse(chat_delta(content="x"))
    for garbage in (b"data: {broken\n\n", b"data: [1]\n\n", b"data: \xff\xfe\n\n"):
        seen, _ = await ask(OpenAIChat(), Reply([text + garbage]))
        assert seen.failure is not None and seen.failure.kind == "network" and seen.text == "x"


async def test_one_connection_for_many_answers() -> None:
    format, stream = STREAMS["anthropic"]
    async with FakeApi(Reply([stream])) as api:
        provider = remote(api, format)
        for _ in range(5):
            assert (await read(provider.stream(request(MODEL)))).failure is None
        assert api.connections == 1 and len(api.asked) == 5
        await provider.close()


async def test_many_at_once_share_a_client() -> None:
    format, stream = STREAMS["chat"]
    async with FakeApi(Reply([stream])) as api:
        provider = remote(api, format)
        streams = [read(provider.stream(request(MODEL))) for _ in range(20)]
        assert all(seen.stop == "end_turn" for seen in await asyncio.gather(*streams))
        await provider.close()


async def test_text_that_is_no_unicode_is_a_clear_failure() -> None:
    provider = Remote("p", OpenAIChat(), base_url="http://127.0.0.1:1")
    with pytest.raises(ProviderFailed, match="not valid Unicode"):
        provider.stream(request(MODEL, user("a\ud800b")))


async def test_own_headers_are_sent() -> None:
    format, stream = STREAMS["chat"]
    _, api = await ask(format, Reply([stream]), headers={"x-team": "blue"})
    assert api.asked[0].headers["x-team"] == "blue"


async def test_a_key_is_in_no_body() -> None:
    for format, stream in STREAMS.values():
        _, api = await ask(format, Reply([stream]))
        assert "sk-secret" not in json.dumps(api.asked[0].body)
