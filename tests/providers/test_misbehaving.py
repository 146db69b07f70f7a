"""Model servers that do wrong what can be done wrong: what is shown, asked again, and said."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.http.servers import (
    STREAM,
    Line,
    Server,
    chunked,
    head,
    make_certificate,
    serving_context,
)
from tests.providers.fake_http import (
    chat_delta,
    claude,
    claude_call,
    claude_end,
    claude_start,
    claude_text,
    sse,
)
from tests.providers.parts import QUICK, Seen, read, request

from dragoman.engine.ports import ModelCallArgs, ModelInfo, ModelRetry, ModelText
from dragoman.http.client import Client
from dragoman.http.port import Timeouts as Limits
from dragoman.http.trust import trusting
from dragoman.providers.anthropic import Anthropic
from dragoman.providers.openai_chat import OpenAIChat
from dragoman.providers.remote import Format, Remote, Timeouts

MODEL = ModelInfo("p", "m")
SAID = "naïve €5 😀 ok"
STREAMS: dict[str, tuple[Callable[[], Format], bytes]] = {
    "anthropic": (
        Anthropic,
        claude(claude_start(), *claude_text(*SAID.split(" ")), *claude_end()),
    ),
    "chat": (
        OpenAIChat,
        sse(*(chat_delta(content=w) for w in SAID.split(" ")), chat_delta("stop"), "[DONE]"),
    ),
}
WHOLE = SAID.replace(" ", "")
BRIEF = Timeouts(connect=0.3, read=0.3, first=0.3, silence=0.3)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest, pair: tuple[str, str]) -> tuple[str, str] | None:
    return pair if request.param == "tls" else None


@pytest.fixture(params=STREAMS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


class Played:
    """Answers in turn, the last for ever; each is bytes to write one after the other."""

    def __init__(self, *answers: tuple[list[bytes], str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.left = asyncio.Event()
        self.held = asyncio.Event()

    async def __call__(self, line: Line) -> None:
        while True:
            first, _, _ = await line.asked()
            self.asked.append(first)
            said, then = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            await line.say(*said)
            if then == "reset":
                line.reset()
            if then == "hold":
                self.held.set()
                await line.left()
                self.left.set()
            if then != "next":
                return


@asynccontextmanager
async def provider(
    played: Played, tls: tuple[str, str] | None, format: Format, **more: Any
) -> AsyncIterator[Remote]:
    context = serving_context(*tls) if tls else None
    timeouts = more.get("timeouts", Timeouts())
    limits = Limits(timeouts.connect, timeouts.first or timeouts.read, timeouts.read)
    client = Client(timeouts=limits, trust=trusting(tls[0]) if tls else None, env={})
    async with Server(played, context) as server:
        made = Remote(
            "p", format, base_url=server.url, key="sk-secret", client=client,
            **({"rules": QUICK} | more),
        )  # fmt: skip
        yield made
        await made.close()


async def ask(played: Played, tls: tuple[str, str] | None, format: Format, **more: Any) -> Seen:
    async with provider(played, tls, format, **more) as made, asyncio.timeout(60):
        return await read(made.stream(request(MODEL)))


def cut(stream: bytes, place: str) -> bytes:
    """The stream up to the middle of a character, or of an event."""
    at = stream.index("😀".encode())
    return stream[: at + 2] if place == "character" else stream[: at - 20]


async def test_a_drip_is_read(kind: str, tls: tuple[str, str] | None) -> None:
    format, stream = STREAMS[kind]
    said = [STREAM, *(chunked(bytes([byte]), end=False) for byte in stream), chunked()]
    seen = await ask(Played((said, "next")), tls, format())
    assert seen.failure is None and seen.text == WHOLE and seen.stop == "end_turn"


@pytest.mark.parametrize("said", [[], [b"HTTP/1.1 200 OK\r\nx: "], [head(status="100 Continue")]])
async def test_a_stall_before_the_head_is_tried_again(
    kind: str, tls: tuple[str, str] | None, said: list[bytes]
) -> None:
    format, stream = STREAMS[kind]
    played = Played((said, "hold"), ([STREAM, chunked(stream)], "next"))
    seen = await ask(played, tls, format(), timeouts=BRIEF)
    assert seen.failure is None and seen.text == WHOLE
    assert seen.kinds().count("ModelRetry") == 1 and len(played.asked) == 2
    assert "in time" in next(p.reason for p in seen.parts if isinstance(p, ModelRetry))


async def test_a_stall_after_the_head_is_tried_again(
    kind: str, tls: tuple[str, str] | None
) -> None:
    format, stream = STREAMS[kind]
    played = Played(([STREAM], "hold"), ([STREAM, chunked(stream)], "next"))
    seen = await ask(played, tls, format(), timeouts=BRIEF)
    assert seen.failure is None and seen.text == WHOLE and len(played.asked) == 2


@pytest.mark.parametrize("place", ["character", "event"])
@pytest.mark.parametrize("then", ["hold", "close", "reset"])
async def test_an_answer_that_stops_keeps_its_words_and_is_not_tried_again(
    kind: str, tls: tuple[str, str] | None, place: str, then: str
) -> None:
    format, stream = STREAMS[kind]
    played = Played(([STREAM, chunked(cut(stream, place), end=False)], then))
    seen = await ask(played, tls, format(), timeouts=BRIEF)
    assert seen.failure is not None and seen.failure.kind == "network"
    assert len(played.asked) == 1 and "ModelRetry" not in seen.kinds()
    # A reset may overtake what was sent before it; a stall or an end may not.
    assert WHOLE.startswith(seen.text) and (then == "reset" or seen.text == "naïve€5")
    assert ("in time" if then == "hold" else "hung up") in seen.failure.message


def oddly(stream: bytes, how: str) -> bytes:
    """The same events, written as nobody writes them."""
    if how == "cr":
        return stream.replace(b"\n", b"\r")
    if how == "crlf":
        return stream.replace(b"\n", b"\r\n")
    if how == "bare":
        return stream.replace(b"data: ", b"data:")
    noise = b": ping\n:\nretry: 5\nid: 7\nodd line\nx:y\n"
    return b"\xef\xbb\xbf" + noise + b"\n\n" + stream.replace(b"data: ", noise + b"data: ")


@pytest.mark.parametrize("how", ["cr", "crlf", "bare", "noise"])
@pytest.mark.parametrize("size", [1, 10_000])
async def test_streams_that_are_oddly_written_say_the_same(kind: str, how: str, size: int) -> None:
    made, stream = STREAMS[kind]
    stream = oddly(stream, how)
    cuts = [stream[at : at + size] for at in range(0, len(stream), size)]
    body = b"".join(b"%x;a=b\r\n%s\r\n" % (len(one), one) for one in cuts)
    ending = b"0;last\r\nx-trailer: 1\r\nset-cookie: 2\r\n\r\n"
    found = await ask(Played(([STREAM, body + ending], "next")), None, made())
    assert found.text == WHOLE and found.failure is None


@pytest.mark.parametrize("name", ["text/html; charset=utf-8", "application/json", ""])
async def test_a_page_that_is_said_to_be_an_answer_is_none(kind: str, name: str) -> None:
    page = b"<!doctype html><html><body>Sign in to the network</body></html>"
    top = head(*([f"content-type: {name}"] if name else []), f"content-length: {len(page)}")
    found = await ask(Played(([top, page], "next")), None, STREAMS[kind][0]())
    assert found.failure is not None and found.text == ""


async def test_signs_of_life_without_words_end(kind: str, tls: tuple[str, str] | None) -> None:
    format, _ = STREAMS[kind]
    alive = sse({"type": "ping"}) if kind == "anthropic" else b": still here\n\n"

    class Alive(Played):
        async def __call__(self, line: Line) -> None:
            self.asked.append((await line.asked())[0])
            await line.say(STREAM)
            while True:
                await line.say(chunked(alive, end=False))
                await asyncio.sleep(0.02)

    began = time.monotonic()
    played = Alive(([], ""))
    rules = type(QUICK)(retries=1, base=0.01, cap=0.02)
    seen = await ask(played, tls, format(), timeouts=BRIEF, rules=rules)
    assert seen.failure is not None and "signs of life" in seen.failure.message
    assert seen.failure.kind == "network" and len(played.asked) == 2
    assert 0.5 < time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("length", "whole"), [(+50, False), (0, True), (-3, None)], ids=["long", "right", "short"]
)
async def test_a_length_that_is_wrong(kind: str, length: int, whole: bool | None) -> None:
    format, stream = STREAMS[kind]
    top = head("content-type: text/event-stream", f"content-length: {len(stream) + length}")
    seen = await ask(Played(([top, stream], "close")), None, format())
    assert seen.text == WHOLE  # the words are whole in each case; their end may not be
    if whole:
        assert seen.failure is None and seen.stop == "end_turn"


async def test_a_length_that_is_wrong_before_the_end_is_told() -> None:
    format, stream = STREAMS["anthropic"]
    half = cut(stream, "event")
    top = head("content-type: text/event-stream", f"content-length: {len(stream)}")
    seen = await ask(Played(([top, half], "close")), None, format())
    assert seen.failure is not None and seen.failure.kind == "network" and seen.text == "naïve€5"


async def test_packed_though_nobody_asked(kind: str, tls: tuple[str, str] | None) -> None:
    format, stream = STREAMS[kind]
    top = head("content-type: text/event-stream", "content-encoding: gzip",
               "transfer-encoding: chunked")  # fmt: skip
    packed = gzip.compress(stream)
    said = [top, *(chunked(packed[at : at + 40], end=False) for at in range(0, len(packed), 40))]
    seen = await ask(Played(([*said, chunked()], "next")), tls, format())
    assert seen.failure is None and seen.text == WHOLE


async def test_what_cannot_be_unpacked_is_told(kind: str) -> None:
    format, stream = STREAMS[kind]
    for name in ("gzip", "br", "zstd"):
        top = head("content-type: text/event-stream", f"content-encoding: {name}")
        seen = await ask(Played(([top, stream], "close")), None, format())
        assert seen.failure is not None and seen.text == "" and "packed" in seen.failure.message


async def test_a_refusal_that_is_packed_is_read() -> None:
    body = gzip.compress(b'{"error":{"message":"no such model","type":"invalid_request_error"}}')
    top = head("content-type: application/json", "content-encoding: gzip",
               f"content-length: {len(body)}", status="404 Not Found")  # fmt: skip
    seen = await ask(Played(([top, body], "next")), None, OpenAIChat())
    assert seen.failure is not None and "no such model" in seen.failure.message


async def test_a_refusal_whose_text_breaks_off_is_still_that_refusal() -> None:
    top = head("content-type: application/json", "content-length: 500", status="401 Who")
    for then in ("close", "hold", "reset"):
        played = Played(([top + b'{"error":'], then))
        seen = await ask(played, None, OpenAIChat(), timeouts=BRIEF)
        assert seen.failure is not None and seen.failure.kind == "auth" and len(played.asked) == 1


async def test_words_before_the_answer_are_passed_over(
    kind: str, tls: tuple[str, str] | None
) -> None:
    format, stream = STREAMS[kind]
    early = head(status="100 Continue") + head("link: <x>", status="103 Early Hints")
    seen = await ask(Played(([early, STREAM, chunked(stream)], "next")), tls, format())
    assert seen.failure is None and seen.text == WHOLE


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_key_is_not_sent_on(status: int, tls: tuple[str, str] | None) -> None:
    other = Played(([STREAM, chunked(STREAMS["chat"][1])], "next"))
    async with Server(other) as elsewhere:
        top = head(f"location: {elsewhere.url}/v1", "content-length: 0", status=f"{status} On")
        played = Played(([top], "next"))
        seen = await ask(played, tls, OpenAIChat())
        assert seen.failure is not None and seen.failure.kind == "bad_request"
        assert elsewhere.url in seen.failure.message and "base_url" in seen.failure.hint
        assert len(played.asked) == 1 and other.asked == []


async def test_frames_of_http2_are_named(tls: tuple[str, str] | None) -> None:
    settings = b"\0\0\x12\x04\0\0\0\0\0" + bytes(18)
    goaway = b"\0\0\x08\x07\0\0\0\0\0" + bytes(8)
    seen = await ask(Played(([settings + goaway], "close")), tls, OpenAIChat())
    assert seen.failure is not None and "HTTP/2" in seen.failure.message


async def test_a_certificate_that_nobody_knows_is_not_asked_again(pair: tuple[str, str]) -> None:
    async with Server(Played(([STREAM], "close")), serving_context(*pair)) as server:
        made = Remote("p", OpenAIChat(), base_url=server.url, key="sk-secret", rules=QUICK)
        seen = await read(made.stream(request(MODEL)))
        await made.close()
    assert seen.failure is not None and seen.failure.kind == "bad_request" and not seen.parts
    assert "certificate" in seen.failure.message and "SSL_CERT_FILE" in seen.failure.hint


async def test_cancel_at_any_time_is_quick(kind: str, tls: tuple[str, str] | None) -> None:
    format, stream = STREAMS[kind]
    for said in ([], [STREAM], [STREAM, chunked(cut(stream, "character"), end=False)]):
        played = Played((said, "hold"))
        async with provider(played, tls, format()) as made, asyncio.timeout(60):
            task = asyncio.create_task(read(made.stream(request(MODEL))))
            await played.held.wait()
            await asyncio.sleep(0.05)  # what was said is read by now
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await played.left.wait()  # by no limit of the provider's, which is longer


async def test_deltas_of_one_read_are_one_part(tls: tuple[str, str] | None) -> None:
    events = [
        claude_start(),
        *claude_text(*(f"w{n} " for n in range(200))),
        *claude_call("c1", "read", '{"path"', ":", '"x"', "}", index=1),
        *claude_end("tool_use"),
    ]
    said = STREAM + b"".join(chunked(claude(event), end=False) for event in events) + chunked()
    seen = await ask(Played(([said], "next")), tls, Anthropic())
    texts = [part for part in seen.parts if isinstance(part, ModelText)]
    args = [part for part in seen.parts if isinstance(part, ModelCallArgs)]
    assert seen.text == "".join(f"w{n} " for n in range(200)) and seen.stop == "tool_use"
    assert "".join(part.fragment for part in args) == '{"path":"x"}'
    assert len(texts) <= 4 and len(args) <= 2  # a read or two, not two hundred


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ((rb"a \ud83d", rb"\ude00 b"), "a 😀 b"),  # cut between the halves of one character
        ((rb"\ud83d", rb"\ude00\ud83d", rb"\ude00"), "😀😀"),
        ((rb"\uD83D", rb"b"), "b"),
        ((rb"a \ud83d b", rb"\ude00 c"), "a \ufffd b\ufffd c"),
        ((rb"\\ud83d \ud83d\ude00 \ud83d", rb"\udE00"), "\\ud83d 😀 😀"),
        (("€".encode()[:2], b"x"), "\ufffdx"),
        ((b"caf\xe9",), "caf\ufffd"),
    ],
)
async def test_half_a_character_does_not_cost_the_answer(
    kind: str, pieces: tuple[bytes, ...], said: str
) -> None:
    made, stream = STREAMS[kind]
    shape = next(one for one in stream.split(b"\n\n") if "naïve".encode() in one)
    texts = [shape.replace("naïve".encode(), piece) for piece in pieces]
    before, after = stream.split(shape)[0], stream.split(b'"ok"')[1].split(b"\n\n", 1)[1]
    whole = before + b"\n\n".join(texts) + b"\n\n" + after
    seen = await ask(Played(([STREAM, chunked(whole)], "next")), None, made())
    assert seen.failure is None and seen.text == said and seen.stop == "end_turn"


async def test_what_is_no_json_at_all_still_costs_it() -> None:
    text = sse(chat_delta(content="a")) + b'data: {"choices": "\\ud83d" oops\n\n'
    seen = await ask(Played(([STREAM, chunked(text)], "next")), None, OpenAIChat())
    assert seen.failure is not None and "cannot be read" in seen.failure.message
    assert seen.text == "a"
