"""Connections kept, addresses, headers, proxies and certificates."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from tests.http.servers import (
    STREAM,
    Line,
    Proxy,
    Server,
    chunked,
    closing,
    head,
    make_certificate,
    serving_context,
)

from dragoman.http.client import Client
from dragoman.http.connection import Plain
from dragoman.http.port import BadRequest, HungUp, TimedOut, Timeouts, Unreachable, Untrusted
from dragoman.http.route import route, split
from dragoman.http.trust import trusting

OK = head("content-length: 2") + b"ok"


def always(*said: bytes):  # noqa: ANN201 - a play
    async def play(line: Line) -> None:
        while True:
            await line.asked()
            await line.say(*said)

    return play


async def test_one_connection_serves_one_after_the_other_and_many_at_once() -> None:
    async with Server(always(OK)) as server, closing(Client(env={})) as client:
        for _ in range(5):
            assert (await client.fetch("POST", server.url)).body == b"ok"
        assert server.connections == 1
        await asyncio.gather(*(client.fetch("POST", server.url) for _ in range(20)))
        many = server.connections
        await asyncio.gather(*(client.fetch("POST", server.url) for _ in range(20)))
        assert server.connections == many


@pytest.mark.parametrize(
    "said",
    [
        head("content-length: 2", "connection: close") + b"ok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        head("content-length: 2") + b"ok and more than that",
        OK + OK,
        STREAM + chunked(b"ok") + b"junk",
    ],
)
async def test_a_connection_that_is_over_or_odd_is_not_used_again(said: bytes) -> None:
    async with Server(always(said)) as server, closing(Client(env={})) as client:
        for _ in range(3):
            assert (await client.fetch("POST", server.url)).body == b"ok"
        assert server.connections == 3


async def test_words_between_answers_end_the_connection() -> None:
    said = asyncio.Event()

    async def play(line: Line) -> None:
        await line.asked()
        await line.say(OK)
        await asyncio.sleep(0.02)
        await line.say(OK)
        said.set()
        await line.left()

    async with Server(play) as server, closing(Client(env={})) as client:
        assert (await client.fetch("POST", server.url)).body == b"ok"
        async with asyncio.timeout(60):
            await said.wait()
            await asyncio.sleep(0.02)
            assert (await client.fetch("POST", server.url)).body == b"ok"
        assert server.connections == 2


@pytest.mark.parametrize("secure", [False, True])
async def test_a_kept_connection_that_died_costs_nothing(
    pair: tuple[str, str], secure: bool
) -> None:
    heard: list[object] = []
    over = asyncio.Event()

    async def play(line: Line) -> None:
        heard.append(await line.asked())
        await line.say(OK)
        line.writer.close()
        over.set()

    context = serving_context(*pair) if secure else None
    env = {"SSL_CERT_FILE": pair[0]}
    async with Server(play, context) as server, closing(Client(env=env)) as client:
        for expected in (1, 2, 3):
            assert (await client.fetch("POST", server.url, body=b"{}")).body == b"ok"
            assert server.connections == expected == len(heard)
            await over.wait()
            over.clear()


async def test_the_end_of_a_connection_is_seen_before_the_loop_has_read_it() -> None:
    """The other side's end lies in the socket, and the loop has had no turn to find it there."""
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(lambda: Plain(lambda one: None), sock=ours)
    assert not made.stale
    theirs.close()
    assert made.stale and not made.lost
    made.abort()


@pytest.mark.parametrize(
    ("method", "again"), [("POST", False), ("PATCH", False), ("GET", True), ("PUT", True)]
)
async def test_what_may_have_been_heard_is_repeated_only_if_it_may_be_done_twice(
    method: str, again: bool
) -> None:
    asked: list[str] = []

    async def play(line: Line) -> None:
        asked.append((await line.asked())[0].split()[0])
        await line.say(OK)
        asked.append((await line.asked())[0].split()[0])  # is read whole, and never answered

    async with Server(play) as server, closing(Client(env={})) as client:
        assert (await client.fetch("POST", server.url)).body == b"ok"
        if again:
            assert (await client.fetch(method, server.url)).body == b"ok"
        else:
            with pytest.raises(HungUp, match="before it answered, and may have heard"):
                await client.fetch(method, server.url)
        assert asked == ["POST", method, *([method] if again else [])]


async def test_a_new_connection_that_dies_is_told() -> None:
    async def play(line: Line) -> None:
        await line.asked()

    async with Server(play) as server, closing(Client(env={})) as client:
        with pytest.raises(HungUp, match="before it answered"):
            await client.fetch("POST", server.url)
        assert server.connections == 1


async def test_an_answer_that_is_left_keeps_its_connection_if_it_ends_soon() -> None:
    async with closing(Client(env={})) as client:
        for said, connections in ((STREAM + chunked(b"ok"), 1), (STREAM + b"2\r\nok\r\n", 2)):
            async with Server(always(said)) as server:
                for _ in range(2):
                    async with client.open("POST", server.url) as answer:
                        answer.into(lambda data: None)
                        await answer.more()
                        answer.leave()
                    await asyncio.sleep(0.2)
                assert server.connections == connections


async def test_what_is_sent() -> None:
    asked: list[tuple[str, dict[str, str], bytes]] = []

    async def play(line: Line) -> None:
        while True:
            asked.append(await line.asked())
            await line.say(OK)

    async with Server(play) as server, closing(Client(env={})) as client:
        await client.fetch("POST", f"{server.url}/a/b?c=d", headers={"x-a": "1"}, body=b"12")
        await client.fetch("GET", f"http://me:p%40ss@127.0.0.1:{server.port}")
        await client.fetch("GET", f"{server.url}/ü?ö")
    line, headers, body = asked[0]
    assert line == "POST /a/b?c=d HTTP/1.1" and body == b"12"
    assert headers == {"host": f"127.0.0.1:{server.port}", "x-a": "1", "content-length": "2",
                       "accept-encoding": "identity"}  # fmt: skip
    assert asked[1][1]["authorization"] == "Basic bWU6cEBzcw==" and asked[1][0].startswith("GET / ")
    assert asked[2][0] == "GET /%C3%BC?%C3%B6 HTTP/1.1"


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a/", "http://", "http:///x", "//a/b", "http://a:99999/", "http://a:b/", "http://[::1",
     "http://a/ b", "http://a/\r\nx: y", "http://a\0/", "http://a:0/"],
)  # fmt: skip
async def test_addresses_that_are_none(url: str) -> None:
    async with closing(Client(env={})) as client:
        with pytest.raises(BadRequest):
            await client.fetch("GET", url)


@pytest.mark.parametrize(
    "headers",
    [{"a": "b\r\nc: d"}, {"a": "b\nc"}, {"a b": "c"}, {"": "c"}, {"a:": "b"}, {"ä": "b"},
     {"key": "€uro"}, {"key": "sk-1\n\x00"}],
)  # fmt: skip
async def test_headers_that_cannot_be_sent(headers: dict[str, str]) -> None:
    async with closing(Client(env={})) as client:
        with pytest.raises(BadRequest) as told:
            await client.fetch("GET", "http://127.0.0.1:1/", headers=headers)
        assert "sk-1" not in str(told.value)


# --- proxies ---


def way(url: str, **env: str):  # noqa: ANN201
    return route(split(url), env)


@pytest.mark.parametrize(
    ("url", "env", "host"),
    [
        ("http://a/", {"http_proxy": "http://p:1"}, "p"),
        ("http://a/", {"HTTP_PROXY": "p:1"}, "p"),
        ("http://a/", {"https_proxy": "http://p:1"}, None),
        ("https://a/", {"HTTPS_PROXY": "http://p:1"}, "p"),
        ("https://a/", {"https_proxy": "http://q:1", "HTTPS_PROXY": "http://p:1"}, "q"),
        ("https://a/", {"ALL_PROXY": "http://p"}, "p"),
        ("https://a/", {"HTTPS_PROXY": ""}, None),
        ("https://a/", {"HTTPS_PROXY": "p", "NO_PROXY": "*"}, None),
        ("https://a/", {"HTTPS_PROXY": "p", "NO_PROXY": "b, a"}, None),
        ("https://api.a.com/", {"HTTPS_PROXY": "p", "NO_PROXY": "a.com"}, None),
        ("https://api.a.com/", {"HTTPS_PROXY": "p", "NO_PROXY": ".a.com"}, None),
        ("https://api.a.com/", {"HTTPS_PROXY": "p", "NO_PROXY": "*.A.com"}, None),
        ("https://ba.com/", {"HTTPS_PROXY": "p", "NO_PROXY": "a.com"}, "p"),
        ("https://a.com/", {"HTTPS_PROXY": "p", "NO_PROXY": "a.com:443"}, None),
        ("https://a.com:8443/", {"HTTPS_PROXY": "p", "NO_PROXY": "a.com:443"}, "p"),
        ("https://10.1.2.3/", {"HTTPS_PROXY": "p", "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://11.1.2.3/", {"HTTPS_PROXY": "p", "NO_PROXY": "10.0.0.0/8"}, "p"),
        ("https://[::1]/", {"HTTPS_PROXY": "p", "NO_PROXY": "::1"}, None),
        ("https://[::1]:9/", {"HTTPS_PROXY": "p", "NO_PROXY": "[::1]:9"}, None),
        ("https://a/", {"HTTPS_PROXY": "p", "no_proxy": "", "NO_PROXY": "a"}, None),
        ("https://a/", {"HTTPS_PROXY": "p", "NO_PROXY": ",,"}, "p"),
    ],
)
def test_which_proxy(url: str, env: dict[str, str], host: str | None) -> None:
    found = way(url, **env).proxy
    assert (found.host if found else None) == host


@pytest.mark.parametrize("proxy", ["socks5://p:1", "ftp://p", "http://", "http://p:x"])
def test_proxies_that_cannot_be_used(proxy: str) -> None:
    with pytest.raises(BadRequest, match="(?i)socks|proxy"):
        way("https://a/", HTTPS_PROXY=proxy)


async def test_a_plain_request_goes_through_the_proxy() -> None:
    async with Proxy() as proxy:
        env = {"HTTP_PROXY": proxy.url.replace("//", "//me:secret@")}
        async with closing(Client(env=env)) as client:
            found = await client.fetch("GET", "http://model.invalid:81/v1")
        assert found.body == b"proxied http://model.invalid:81/v1"
        assert proxy.given == ["Basic bWU6c2VjcmV0"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("secure", [False, True])
async def test_a_secure_request_goes_through_a_tunnel(pair: tuple[str, str], secure: bool) -> None:
    context = serving_context(*pair)
    async with Server(always(OK), context) as server:
        async with Proxy(tls=serving_context(*pair) if secure else None) as proxy:
            env = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": pair[0]}
            async with closing(Client(env=env)) as client:
                for _ in range(3):
                    assert (await client.fetch("POST", server.url)).body == b"ok"
            assert proxy.asked == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"]
            assert server.connections == 1


async def test_a_proxy_that_wants_a_credential(pair: tuple[str, str]) -> None:
    async with Server(always(OK), serving_context(*pair)) as server:
        async with Proxy("Basic bWU6c2VjcmV0") as proxy:
            env = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": pair[0]}
            async with closing(Client(env=env)) as client:
                with pytest.raises(Unreachable, match="refused the way .407"):
                    await client.fetch("POST", server.url)
            env["HTTPS_PROXY"] = proxy.url.replace("//", "//me:secret@")
            async with closing(Client(env=env)) as client:
                assert (await client.fetch("POST", server.url)).body == b"ok"


async def test_proxies_that_misbehave(pair: tuple[str, str]) -> None:
    quick = Timeouts(0.2, 5, 5)
    for said, fault in (
        (b"", TimedOut),
        (b"HTTP/1.1 200 OK\r\n", TimedOut),
        (b"hello\r\n\r\n", Unreachable),
        (b"HTTP/1.1 502 Bad\r\n\r\n", Unreachable),
        (b"x" * 100_000, Unreachable),
        (b"HTTP/1.1 200 OK\r\n\r\nnot tls at all", Unreachable),
    ):

        async def play(line: Line, said: bytes = said) -> None:
            await line.asked()
            await line.say(said)
            await line.left()

        async with Server(play) as proxy:
            env = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": pair[0]}
            async with closing(Client(env=env, timeouts=quick)) as client:
                with pytest.raises(fault):
                    await client.fetch("GET", "https://127.0.0.1:9/")


# --- certificates ---


async def test_only_who_is_vouched_for_is_believed(pair: tuple[str, str], tmp_path: Path) -> None:
    other, _ = make_certificate(tmp_path, "other")
    async with Server(always(OK), serving_context(*pair)) as server:
        for env in ({}, {"SSL_CERT_FILE": other}):
            async with closing(Client(env=env)) as client:
                with pytest.raises(Untrusted, match="certificate"):
                    await client.fetch("GET", server.url)
        async with closing(Client(env={"SSL_CERT_FILE": pair[0]})) as client:
            assert (await client.fetch("GET", server.url)).body == b"ok"
            wrong = server.url.replace("127.0.0.1", "127.0.0.2")
            with pytest.raises(Unreachable):
                await client.fetch("GET", wrong)
        async with closing(Client(env={}, trust=trusting(pair[0]))) as client:
            assert (await client.fetch("GET", server.url.replace("127.0.0.1", "localhost"))).body


async def test_a_folder_of_certificates(pair: tuple[str, str], tmp_path: Path) -> None:
    import subprocess

    made = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", pair[0]],
                          capture_output=True, text=True, check=True)  # fmt: skip
    (tmp_path / f"{made.stdout.strip()}.0").write_bytes(Path(pair[0]).read_bytes())
    async with Server(always(OK), serving_context(*pair)) as server:
        async with closing(Client(env={"SSL_CERT_DIR": str(tmp_path)})) as client:
            assert (await client.fetch("GET", server.url)).body == b"ok"


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_certificates_that_are_not_there_are_named(name: str, tmp_path: Path) -> None:
    async with closing(Client(env={name: str(tmp_path / "gone")})) as client:
        with pytest.raises(BadRequest, match=f"{name}.*gone"):
            await client.fetch("GET", "https://127.0.0.1:1/")


async def test_a_file_that_holds_no_certificates(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("nothing")
    async with closing(Client(env={"SSL_CERT_FILE": str(tmp_path / "none")})) as client:
        with pytest.raises(BadRequest, match="cannot be used"):
            await client.fetch("GET", "https://127.0.0.1:1/")


async def test_the_usual_certificates_are_many() -> None:
    context = trusting(env={})
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname


async def test_http1_is_what_is_offered(pair: tuple[str, str]) -> None:
    chosen: list[str | None] = []

    async def play(line: Line) -> None:
        chosen.append(line.writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await line.asked()
        await line.say(OK)

    async with Server(play, serving_context(*pair, "h2", "http/1.1")) as server:
        async with closing(Client(env={"SSL_CERT_FILE": pair[0]})) as client:
            assert (await client.fetch("GET", server.url)).body == b"ok"
    assert chosen == ["http/1.1"]


async def test_a_plain_server_behind_a_secure_address_and_the_other_way(
    pair: tuple[str, str],
) -> None:
    env = {"SSL_CERT_FILE": pair[0]}
    async with closing(Client(env=env, timeouts=Timeouts(1, 1, 1))) as client:
        async with Server(always(OK)) as server:
            with pytest.raises((Unreachable, TimedOut)):
                await client.fetch("GET", server.url.replace("http:", "https:"))
        async with Server(always(OK), serving_context(*pair)) as server:
            with pytest.raises((HungUp, Unreachable)):
                await client.fetch("GET", server.url.replace("https:", "http:"))


async def test_a_secure_stream_that_is_cut_is_told(pair: tuple[str, str]) -> None:
    async def play(line: Line) -> None:
        await line.asked()
        await line.say(STREAM + chunked(b"hello", end=False))
        line.writer.transport.abort()

    async with Server(play, serving_context(*pair)) as server:
        async with closing(Client(env={"SSL_CERT_FILE": pair[0]})) as client:
            with pytest.raises(HungUp):
                await client.fetch("GET", server.url)


async def test_of_two_addresses_the_one_that_answers_wins() -> None:
    async with Server(always(OK)) as server, closing(Client(env={})) as client:
        loop = asyncio.get_running_loop()
        real = loop.getaddrinfo

        async def both(host: str, port: int, **more: object):  # noqa: ANN202
            dead = await real("192.0.2.1", port, **more)  # an address that nobody has
            return [*dead, *await real("127.0.0.1", port, **more)]

        loop.getaddrinfo = both  # type: ignore[assignment, method-assign]
        try:
            async with asyncio.timeout(60):
                found = await client.fetch("GET", f"http://model.example:{server.port}/")
        finally:
            del loop.getaddrinfo
        assert found.body == b"ok"
