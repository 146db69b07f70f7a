"""The HTTP server against well-behaved, slow, greedy and hostile clients."""

import asyncio

import pytest
from tests.gateway.making import serving

from dragoman.engine.faults import StoreFailed
from dragoman.gateway import server
from dragoman.gateway.http import Answer, Stream, Takeover
from dragoman.testing.host import host_of

HEAD = "Host: 127.0.0.1\r\n"


async def test_keeps_a_connection_for_several_requests():
    async with serving() as served:
        one = f"GET /livez HTTP/1.1\r\n{HEAD}\r\n"
        last = f"GET /livez HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n"
        said = await served.raw((one + one + last).encode())
        assert said.count(b"HTTP/1.1 200 OK") == 3
        assert said.endswith(b"ok\n")


async def test_a_client_that_has_said_everything_is_answered_and_let_go():
    async with serving() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(f"GET /readyz HTTP/1.1\r\n{HEAD}\r\n".encode())
        writer.write_eof()
        async with asyncio.timeout(60):
            assert (await reader.read()).endswith(b"ok\n")
        writer.close()


async def test_what_was_begun_is_done_when_the_client_vanishes():
    async with serving() as served:
        opened = asyncio.Event()
        create = host_of(served.door).store.create

        async def slow(*args):
            opened.set()
            await asyncio.sleep(0.02)
            return await create(*args)

        host_of(served.door).store.create = slow
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = f"POST /api/sessions HTTP/1.1\r\n{HEAD}Authorization: Bearer {served.token}\r\n"
        writer.write(f"{head}Content-Length: 0\r\n\r\n".encode())
        await asyncio.wait_for(opened.wait(), 60)
        writer.transport.abort()
        async with served.client() as client:
            async with asyncio.timeout(60):
                while not (await client.get("/api/sessions")).json()["sessions"]:
                    pass
            (one,) = (await client.get("/api/sessions")).json()["sessions"]
            assert one["id"] in host_of(served.door).live


@pytest.mark.parametrize(
    ("trouble", "status"), [(StoreFailed("The disk is gone."), 503), (OSError("gone"), 500)]
)
async def test_who_cannot_be_looked_up_is_told_so_at_once(
    trouble: Exception, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving() as served, served.client() as client:

        async def broken(space: str, key: str) -> None:
            raise trouble

        with monkeypatch.context() as patched:
            patched.setattr(host_of(served.door).store, "get", broken)
            patched.setattr(server, "BODY_SECONDS", 1.0)  # what it waited for, and then said 408
            assert (await client.get("/api/status")).status_code == status
            assert (await client.post("/api/sessions", json={})).status_code == status
        assert (await client.get("/api/status")).status_code == 200


def _break(*_: object) -> None:
    raise OSError("gone")


@pytest.mark.parametrize(
    "answer",
    [Stream(_break), Takeover(_break, {"upgrade": "x"})],
    ids=["a stream", "a hand-over"],
)
async def test_an_answer_that_cannot_begin_ends_its_connection_and_no_other(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubles: list[BaseException] = []
    async with serving() as served, served.client() as client:

        async def answered(request: object) -> Answer:
            return answer

        def trouble(what: str, error: BaseException, **_: object) -> None:
            troubles.append(error)

        with monkeypatch.context() as patched:
            patched.setattr(type(served.gate), "answer", lambda gate, request: answered(request))
            patched.setattr(served.door, "trouble", trouble)
            said = await served.raw(
                f"GET /livez HTTP/1.1\r\n{HEAD}Upgrade: x\r\nConnection: Upgrade\r\n\r\n".encode()
            )
        assert not said.endswith(b"0\r\n\r\n")  # nothing says that this was all
        assert len(troubles) == 1
        assert (await client.get("/api/status")).status_code == 200


async def test_head_has_the_length_and_no_body():
    async with serving() as served, served.stranger() as client:
        answer = await client.head("/livez")
        assert answer.status_code == 200 and answer.headers["content-length"] == "3"
        assert answer.content == b""


async def test_a_chunked_body_and_expect_continue_are_understood():
    async with serving() as served, served.client() as client:

        async def parts():
            yield b'{"title"'
            yield b':"in parts"}'

        answer = await client.post(
            "/api/sessions", content=parts(), headers={"content-type": "application/json"}
        )
        assert answer.status_code == 201 and answer.json()["title"] == "in parts"
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = (
            f"POST /api/sessions HTTP/1.1\r\n{HEAD}Authorization: Bearer {served.token}\r\n"
            "Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
        )
        writer.write(head.encode())
        async with asyncio.timeout(60):
            assert b"100" in await reader.readuntil(b"\r\n\r\n")
            writer.write(b"{}")
            assert b"201 Created" in await reader.readuntil(b"\r\n\r\n")
        writer.close()


async def test_paths_and_methods_that_do_not_exist():
    async with serving() as served, served.client() as client:
        assert (await client.get("/api/nothing")).status_code == 404
        wrong = await client.put("/api/sessions")
        assert wrong.status_code == 405 and "POST" in wrong.headers["allow"]
        assert (await client.post("/")).status_code == 405
        assert (await client.get("/acp")).status_code == 426


@pytest.mark.parametrize(
    "path",
    [
        "/static/../gate.py",
        "/static/..%2fgate.py",
        "/static/%2e%2e/gate.py",
        "/static/%2e%2e%2fgate.py",
        "/static/..%5cgate.py",
        "/static/app.js%00.css",
        "/static//app.js",
        "//api/sessions",
        "/api//sessions",
        "/api/./sessions",
        "/api/sessions/%2e%2e/status",
        "/static/%c0%ae%c0%ae/gate.py",
        "/%",
        "/static/%252e%252e/gate.py",
    ],
)
async def test_path_tricks_are_refused(path: str):
    async with serving() as served:
        head = f"{HEAD}Authorization: Bearer {served.token}\r\nConnection: close\r\n\r\n"
        said = await served.raw(f"GET {path} HTTP/1.1\r\n{head}".encode())
        status = said.split(b" ")[1]
        assert status in (b"400", b"404"), said[:200]
        assert b"class Gate" not in said


@pytest.mark.parametrize(
    "request_line",
    [
        "GET http://evil.example/ HTTP/1.1",
        "CONNECT evil.example:443 HTTP/1.1",
        "GET * HTTP/1.1",
        "GET /livez HTTP/9.9",
        "GET\x00 / HTTP/1.1",
        "\x16\x03\x01\x02\x00\x01\x00\x01",
    ],
)
async def test_what_is_no_request_of_ours_is_refused(request_line: str):
    async with serving() as served:
        said = await served.raw(f"{request_line}\r\n{HEAD}Connection: close\r\n\r\n".encode())
        assert said[:10] in (b"HTTP/1.1 4", b"HTTP/1.1 5"), said[:100]


async def test_smuggling_is_refused():
    async with serving() as served:
        head = f"POST /pair HTTP/1.1\r\n{HEAD}"
        both = f"{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        two = f"{head}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"
        for text in (two,):
            assert (await served.raw(text.encode())).startswith(b"HTTP/1.1 400")
        said = await served.raw((both + "GET /livez HTTP/1.1\r\n\r\n").encode())
        assert b"200 OK" not in said


async def test_an_oversized_head_is_refused():
    async with serving() as served:
        fat = f"GET /livez HTTP/1.1\r\n{HEAD}X-Fat: {'x' * 100_000}\r\n\r\n"
        said = await served.raw(fat.encode())
        assert said.startswith(b"HTTP/1.1 431")


async def test_an_oversized_body_is_refused_by_its_length_and_by_its_size():
    async with serving() as served, served.client() as client:
        answer = await client.post("/api/sessions", content=b"x" * 400_000)
        assert answer.status_code == 413

        async def endless():
            for _ in range(50):
                yield b"x" * 10_000

        answer = await client.post("/api/sessions", content=endless())
        assert answer.status_code == 413
        assert (await client.get("/livez")).status_code == 200


async def test_a_client_that_sends_its_head_slowly_is_cut_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(server, "LINGER_SECONDS", 60.0)  # a busy client reads it late
    async with serving() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        answer = asyncio.ensure_future(reader.read())
        sent = 0
        async with asyncio.timeout(60):
            for byte in b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 10_000:
                if answer.done():
                    break
                writer.write(bytes((byte,)))
                sent += 1
                await asyncio.wait({answer}, timeout=0.02)
            said = await answer
        assert said.startswith(b"HTTP/1.1 408") and sent < 100
        writer.close()


async def test_a_silent_client_and_a_slow_body_are_cut_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(server, "BODY_SECONDS", 0.2)
    async with serving() as served:
        assert await served.raw(b"") == b""
        head = f"POST /pair HTTP/1.1\r\n{HEAD}Content-Length: 100\r\n\r\nhalf"
        assert (await served.raw(head.encode())).startswith(b"HTTP/1.1 408")


async def test_too_many_connections_are_told_so():
    from dragoman.settings.host import Limits

    async with serving(limits=Limits(max_clients=3)) as served:
        ask = f"GET /livez HTTP/1.1\r\n{HEAD}\r\n".encode()
        known = f"GET /api/tokens HTTP/1.1\r\n{HEAD}Authorization: Bearer {served.token}\r\n\r\n"
        held = []
        async with asyncio.timeout(60):
            for _ in range(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
                writer.write(known.encode())
                assert b"200 OK" in await reader.readuntil(b"]")
                held.append((reader, writer))
            assert (await served.raw(ask)).startswith(b"HTTP/1.1 503")
            for reader, writer in held:
                writer.write_eof()
                await reader.read()
                writer.close()
            assert b"200 OK" in await served.raw(ask, until_closed=False)


async def test_silent_connections_of_one_address_do_not_keep_others_out():
    from dragoman.settings.host import Limits

    async with serving(limits=Limits(max_clients=16)) as served:
        ask = f"GET /livez HTTP/1.1\r\n{HEAD}\r\n".encode()
        held = []
        async with asyncio.timeout(60):
            bearer = f"Authorization: Bearer {served.token}\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(f"GET /api/tokens HTTP/1.1\r\n{HEAD}{bearer}\r\n".encode())
            assert b"200 OK" in await reader.readuntil(b"]")
            for number in range(40):
                held.append(await asyncio.open_connection("127.0.0.1", served.port))
                if number % 2:  # half of a head, and what is answered and then stays
                    held[-1][1].write(b"GET / HTTP/1.1\r\nHost:" if number % 4 == 1 else ask)
            assert b"200 OK" in await served.raw(ask, until_closed=False)
            assert len(served.gate.connections) <= 5
            # Whoever is known stays.
            writer.write(f"GET /livez HTTP/1.1\r\n{HEAD}\r\n".encode())
            assert b"200 OK" in await reader.readuntil(b"ok\n")
            for _, one in [*held, (reader, writer)]:
                one.close()


async def test_a_refusal_says_whether_the_connection_goes_on():
    async with serving() as served:
        bare = f"GET /api/sessions HTTP/1.1\r\n{HEAD}\r\n"
        last = f"GET /livez HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n"
        said = await served.raw((bare + bare + last).encode())
        assert said.count(b"HTTP/1.1 401") == 2 and said.endswith(b"ok\n")
        assert b"connection: close" not in said.split(b"HTTP/1.1 200")[0].lower()
        for body in ("Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
            request = f"POST /api/sessions HTTP/1.1\r\n{HEAD}{body}{last}"
            said = await served.raw(request.encode())
            assert said.startswith(b"HTTP/1.1 401") and said.count(b"HTTP/1.1") == 1
            assert b"connection: close" in said.lower()


async def test_a_body_with_two_ends_is_refused_and_nothing_after_it_is_read():
    async with serving() as served:
        bearer = f"{HEAD}Authorization: Bearer {served.token}\r\nContent-Type: application/json\r\n"
        hidden = f"DELETE /api/tokens/x HTTP/1.1\r\n{bearer}\r\n"
        for both in (
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
            "Content-Length: 4\r\nTransfer-Encoding: identity\r\n",
        ):
            text = f"POST /api/sessions HTTP/1.1\r\n{bearer}{both}\r\n0\r\n\r\n{hidden}"
            said = await served.raw(text.encode())
            assert said.count(b"HTTP/1.1") == 1 and said.split()[1] in (b"400", b"501")
            assert b"connection: close" in said.lower()


async def test_every_answer_has_the_headers_that_protect_it():
    async with serving() as served, served.stranger() as client:
        for path in ("/", "/livez", "/api/sessions", "/static/app.js", "/nothing"):
            headers = (await client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]


async def test_a_taken_port_is_left_to_its_owner(capsys: pytest.CaptureFixture[str]):
    async with serving() as first:
        async with serving(port=first.port) as second:  # nobody chose it in the configuration
            assert second.port != first.port
            assert f"port {first.port} is taken" in capsys.readouterr().err
            async with second.client() as client:
                assert (await client.get("/livez")).status_code == 200


async def test_a_browser_that_is_lost_gets_a_page():
    page = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with serving() as served, served.stranger() as client:
        lost = await client.get("/no/such/page", headers=page)
        assert lost.status_code == 404 and lost.headers["content-type"].startswith("text/html")
        assert '<a href="/">' in lost.text and "default-src 'none'" in str(lost.headers)
        for path, headers in (("/no/such/page", {}), ("/api/none", page), ("/static/none", page)):
            told = await client.get(path, headers=headers)
            assert told.status_code == 404 and told.json()["error"]["code"] == "not_found"
        assert (await client.post("/no/such/page", headers=page)).json()["error"]
    async with serving(path_prefix="/dm") as served, served.stranger() as client:
        for path in ("/", "/sessions", "/dm/nowhere"):
            lost = await client.get(path, headers=page)
            assert lost.status_code == 404 and '<a href="/dm/">' in lost.text
