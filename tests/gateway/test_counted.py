"""Every HTTP answer is counted once, whatever the client sends."""

import asyncio
import re
from collections import Counter

import pytest
from tests.gateway.making import Served, serving

from dragoman.gateway import server
from dragoman.settings.host import Limits

HOST = "Host: 127.0.0.1\r\n"
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


async def counted(served: Served) -> Counter[tuple[str, int]]:
    """What the page of figures says, as Prometheus reads it."""
    async with served.client() as client:
        page = (await client.get("/metrics")).text
    row = re.compile(r'dragoman_http_requests_total\{method="(.*?)",status="(\d+)"\} (\d+)')
    return Counter({(method, int(status)): int(n) for method, status, n in row.findall(page)})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (f"GET /nothing HTTP/1.1\r\n{HOST}", ("GET", 404)),
        (f"HEAD /nothing HTTP/1.1\r\n{HOST}", ("HEAD", 404)),
        (f"DELETE /livez HTTP/1.1\r\n{HOST}", ("DELETE", 405)),
        (f"GET /../x HTTP/1.1\r\n{HOST}", ("GET", 400)),
        (f"GET /api/sessions HTTP/1.1\r\n{HOST}", ("GET", 401)),
        (f"POST /api/sessions HTTP/1.1\r\n{HOST}Content-Length: 9\r\n", ("POST", 401)),
        ("GET /livez HTTP/1.1\r\nHost: evil.example\r\n", ("GET", 421)),
        (f"GET /livez HTTP/1.1\r\n{HOST}Origin: http://evil.example\r\n", ("GET", 403)),
        (f"POST /api/sessions HTTP/1.1\r\n{HOST}Content-Length: 999999999\r\n", ("POST", 413)),
        (f"GET /livez HTTP/9.9\r\n{HOST}", ("GET", 505)),
        ("no http at all\r\n", ("none", 400)),
        (f"GET /acp HTTP/1.1\r\n{HOST}", ("GET", 426)),
        (f"GET /acp HTTP/1.1\r\n{HOST}{UPGRADE}", ("GET", 400)),
        (f"POST /rpc HTTP/1.1\r\n{HOST}{UPGRADE}{KEY}", ("POST", 405)),
        (f"GET /acp HTTP/1.1\r\n{HOST}{UPGRADE}{KEY}", ("GET", 401)),
        (f"BREW /livez HTTP/1.1\r\n{HOST}", ("other", 405)),
    ],
)
async def test_an_early_answer_is_counted_once(said: str, expected: tuple[str, int]):
    async with serving() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(f"{said}\r\n".encode())
        writer.write_eof()
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        assert int(answer.split()[1]) == expected[1], answer
        assert len(re.findall(rb"HTTP/1\.1 \d{3} ", answer)) == 1
        assert await counted(served) == {expected: 1}


async def test_a_handshake_that_is_let_in_is_counted_and_so_is_a_stream():
    async with serving() as served:
        token = f"Authorization: Bearer {served.token}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(f"GET /acp HTTP/1.1\r\n{HOST}{token}{UPGRADE}{KEY}\r\n".encode())
        async with asyncio.timeout(60):
            assert b" 101 " in await reader.readline()
        async with served.client() as client, client.stream("GET", "/api/events") as stream:
            assert stream.status_code == 200
            assert await counted(served) == {("GET", 101): 1, ("GET", 200): 1}
        writer.close()


async def test_several_answers_of_one_connection_are_each_counted():
    async with serving() as served:
        good, bad = f"GET /livez HTTP/1.1\r\n{HOST}\r\n", f"HEAD /no HTTP/1.1\r\n{HOST}\r\n"
        said = await served.raw(f"{good}{good}{bad}".encode())
        assert said.count(b"HTTP/1.1 ") == 3
        assert await counted(served) == {("GET", 200): 2, ("HEAD", 404): 1}


async def test_a_request_that_does_not_arrive_is_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.05)
    async with serving() as served:
        assert b" 408 " in await served.raw(b"GET /livez HT", within=60)
        assert await counted(served) == {("none", 408): 1}


async def test_a_head_without_end_is_counted():
    async with serving() as served:
        assert b" 431 " in await served.raw(b"GET /livez HTTP/1.1\r\nX: " + b"y" * 40_000)
        assert await counted(served) == {("none", 431): 1}


async def test_a_connection_too_many_is_counted():
    async with serving(limits=Limits(max_clients=1)) as served:
        first = await asyncio.open_connection("127.0.0.1", served.port)
        first[1].write(f"GET /livez HTTP/1.1\r\n{HOST}\r\n".encode())
        async with asyncio.timeout(60):
            assert b" 200 " in await first[0].readline()
        next(iter(served.gate.connections)).welcome = True  # else it makes room for the second
        assert b" 503 " in await served.raw(b"")
        assert served.gate.meter.requests == {("GET", 200): 1, ("none", 503): 1}
        first[1].close()


async def test_invented_methods_make_no_labels():
    async with serving() as served:
        for number in range(40):
            await served.raw(
                f"M{number} /livez HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n".encode()
            )
        assert await counted(served) == {("other", 405): 40}
