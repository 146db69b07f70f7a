"""Servers that mean harm: every answer ends, soon and within bounds, whatever is in it."""

import asyncio
import gzip
import time
import zlib

import pytest
from tests.http.servers import STREAM, Line, Server, chunked, closing, head
from tests.http.test_answers import PATIENT, QUICK, ask

from dragoman.http.client import Client
from dragoman.http.port import HttpFault, HungUp, NotHttp, TimedOut

RAW = zlib.compressobj(wbits=-15)
DEFLATED = RAW.compress(b"hello") + RAW.flush()


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ([STREAM, b"5"], HungUp),
        ([STREAM, b"5\r"], HungUp),
        ([STREAM, b"5\r\nhello\r\n0\r\nx-trailer: 1\r\n"], HungUp),
        ([STREAM, b"-5\r\nhello\r\n0\r\n\r\n"], NotHttp),
        ([STREAM, b"0x5\r\nhello\r\n0\r\n\r\n"], NotHttp),
        ([STREAM, b"\r\n5\r\nhello\r\n0\r\n\r\n"], NotHttp),
        ([head("content-length: +5"), b"hello"], NotHttp),
        ([head("content-length: 99999999999999999999999"), b"hello"], NotHttp),
        ([head("transfer-encoding: chunked", "content-length: 5"), chunked(b"hello")], NotHttp),
        ([b"HTTP/1.1 200 OK\r\nx: a\rb: c\r\n\r\n"], NotHttp),
        ([b"HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n"], NotHttp),
        ([b"HTTP/1.1 200 OK\r\n: empty\r\ncontent-length: 0\r\n\r\n"], NotHttp),
        ([b"HTTP/1.1 200 OK\r\nx y: z\r\ncontent-length: 0\r\n\r\n"], NotHttp),
        ([b"HTTP/1.1 2000 OK\r\n\r\n"], NotHttp),
        ([b"HTTP/9.1 200 OK\r\ncontent-length: 0\r\n\r\n"], NotHttp),
        ([head("content-encoding: zstd", "content-length: 5"), b"hello"], NotHttp),
        ([head("content-encoding: gzip, gzip", "content-length: 5"), b"hello"], NotHttp),
        ([head("content-encoding: gzip", "content-length: 6"), gzip.compress(b"x")[:6]], HungUp),
    ],
)  # fmt: skip
async def test_what_no_answer_may_be(said: list[bytes], fault: type[HttpFault]) -> None:
    with pytest.raises(fault):
        await ask(*said, timeouts=PATIENT)


@pytest.mark.parametrize(
    ("said", "body"),
    [
        ([STREAM, b'5;a="b;\xff c";d=e\r\nhello\r\n0;last\r\nset-cookie: x\r\n\r\n'], b"hello"),
        ([STREAM, b"0005\r\nhello\r\n000\r\n\r\n"], b"hello"),
        ([STREAM, b"5\r\nhello\r\n0\r\ncontent-encoding: gzip\r\n\r\n"], b"hello"),
        ([head("content-encoding: deflate", f"content-length: {len(DEFLATED)}"), DEFLATED],
         b"hello"),
        ([head("content-encoding: gzip"), gzip.compress(b"hel") + gzip.compress(b"lo")], b"hello"),
        ([head("content-encoding: gzip"), gzip.compress(b"hello") + b"\0\0\0\0"], b"hello"),
        ([head("content-encoding: gzip", status="204 No Content")], b""),
        ([head("content-encoding: gzip", "content-length: 0")], b""),
        ([head("content-encoding: ", "content-length: 5"), b"hello"], b"hello"),
        ([head("content-encoding: identity", "content-length: 5"), b"hello"], b"hello"),
    ],
)  # fmt: skip
async def test_odd_but_right(said: list[bytes], body: bytes) -> None:
    assert (await ask(*said)).body == body
    whole = b"".join(said)
    assert (await ask(*(whole[at : at + 1] for at in range(len(whole))))).body == body


@pytest.mark.parametrize(
    "more",
    [
        b"1;" + b"a" * 1000,  # a chunk that never begins
        b"0" * 1000,
        b"0\r\n" + b"x: y\r\n" * 200,  # and one that never ends
        b"0\r\nx: " + b"y" * 1000,
    ],
)
async def test_framing_without_end_is_cut(more: bytes) -> None:
    async def play(line: Line) -> None:
        await line.asked()
        await line.say(STREAM + chunked(b"hello", end=False), more)
        while True:
            await line.say(more[-1:] * 4000 if more[-1:] != b"\n" else more[3:])

    async with Server(play) as server, closing(Client(env={}, timeouts=PATIENT)) as client:
        with pytest.raises(NotHttp):
            async with asyncio.timeout(60):
                await client.fetch("POST", server.url)


@pytest.mark.parametrize("drip", [b"a", b"x: y\r\n"])
async def test_framing_that_drips_is_silence(drip: bytes) -> None:
    """Bytes that carry nothing do not move the limit."""

    async def play(line: Line) -> None:
        await line.asked()
        await line.say(STREAM + chunked(b"hello", end=False))
        await line.say(b"0\r\n" if drip.endswith(b"\n") else b"1;")
        while True:
            await line.say(drip)
            await asyncio.sleep(0.02)

    async with Server(play) as server, closing(Client(env={}, timeouts=QUICK)) as client:
        with pytest.raises(TimedOut):
            async with asyncio.timeout(60):
                await client.fetch("POST", server.url)


@pytest.mark.parametrize(
    "lines", [b"x: y\r\n" * 30_000, b"a:\r\n" * 60_000, b"x: " + b"y" * 200_000 + b"\r\n"]
)
async def test_a_head_that_is_too_long_is_refused_though_it_comes_at_once(lines: bytes) -> None:
    whole = b"HTTP/1.1 200 OK\r\n" + lines + b"content-length: 0\r\n\r\n"
    began = time.process_time()
    with pytest.raises(NotHttp, match="head"):
        await ask(whole)
    assert time.process_time() - began < 2


async def test_words_before_the_answer_without_end_are_cut() -> None:
    async def play(line: Line) -> None:
        await line.asked()
        while True:
            await line.say(head("link: </a>", status="103 Early Hints") * 50)

    async with Server(play) as server, closing(Client(env={}, timeouts=PATIENT)) as client:
        with pytest.raises(NotHttp):
            async with asyncio.timeout(60):
                await client.fetch("POST", server.url)
