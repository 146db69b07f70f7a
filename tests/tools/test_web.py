"""web_fetch against a real server on loopback: what it shows, and where it does not go."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.tools.making import Env, said

from dragoman.engine.content import ToolCall
from dragoman.engine.faults import BadInput, Refused
from dragoman.engine.question import scopes_of
from dragoman.policy.autonomy import AutonomyPolicy
from dragoman.tools.web import MAX_BYTES, WebFetch, host_of, is_public

PAGES = {
    "/": ("200 OK", "text/html", b"<html><head><title>t</title><script>bad()</script></head>"
          b"<body><h1>Title</h1><p>One <a href='/x'>link</a></p></body></html>"),
    "/plain": ("200 OK", "text/plain; charset=utf-8", "grüße".encode()),
    "/binary": ("200 OK", "image/png", b"\x89PNG"),
    "/gone": ("404 Not Found", "text/plain", b"no such page"),
    "/big": ("200 OK", "text/plain", b"x" * (MAX_BYTES + 1000)),
    "/deep": ("200 OK", "text/html", b"<div>" * 50_000 + b"x"),
    "/latin": ("200 OK", "text/plain; charset=ISO-8859-1", "grüße".encode("latin-1")),
    "/page1251": ("200 OK", 'text/html; charset="windows-1251"',
                  "<meta charset=utf-8><p>привет</p>".encode("cp1251")),
    "/meta": ("200 OK", "text/html", "<meta charset=koi8-r><p>привет</p>".encode("koi8-r")),
    "/nocode": ("200 OK", "text/plain; charset=no-such", b"plain"),
    "/slow-code": ("200 OK", "text/plain; charset=punycode", b"plain-" + b"a" * 3_000_000),
    "/base64": ("200 OK", "text/plain; charset=base64", b"plain"),
    "/gzip": ("200 OK", "text/plain\r\nContent-Encoding: gzip", gzip.compress("grüße".encode())),
    "/raw": ("200 OK", "text/plain\r\nContent-Encoding: deflate",
             zlib.compress(b"packed", wbits=-15)),
    "/bomb": ("200 OK", "text/plain\r\nContent-Encoding: gzip", gzip.compress(b"x" * (64 << 20))),
    "/no-gzip": ("200 OK", "text/plain\r\nContent-Encoding: gzip", b"no gzip"),
    "/brotli": ("200 OK", "text/plain\r\nContent-Encoding: br", b"\x0b\x02"),
    "/empty": ("200 OK", "text/html", b""),
}  # fmt: skip
MOVED = {
    "/bad": "http://[",
    "/here": "/plain",
    "/away": "http://other.example/x",
    "/round": "/round",
}


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:  # it thought better of it
            return writer.close()
        path = head.split()[1]
        if path in MOVED:
            answer = f"HTTP/1.1 302 Found\r\nLocation: {MOVED[path]}\r\n\r\n".encode()
        elif path == "/odd":
            answer = b"this is no HTTP at all\r\n\r\n"
        elif path == "/half":
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
        else:
            status, kind, body = PAGES[path]
            answer = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n\r\n".encode() + body
        writer.write(answer)
        try:
            await writer.drain()
        except ConnectionError:
            pass  # it has seen enough
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://site.example:{server.sockets[0].getsockname()[1]}"


async def here(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


async def fetch(url: str, public: Any = lambda address: True, resolve: Any = here) -> Any:
    return await WebFetch(resolve, public=public).run({"url": url}, Env("/"))  # type: ignore[arg-type]


async def test_pages_as_text(site: str) -> None:
    text = said(await fetch(f"{site}/"))
    assert "# Title" in text and "[link](/x)" in text and "bad()" not in text
    assert "grüße" in said(await fetch(f"{site}/plain"))
    assert "image/png, 4 bytes: not shown" in said(await fetch(f"{site}/binary"))
    gone = await fetch(f"{site}/gone")
    assert gone.is_error and "no such page" in said(gone)
    big = said(await fetch(f"{site}/big"))
    assert "truncated" in big and len(big) < 60_000
    assert "empty" in said(await fetch(f"{site}/empty")) or said(await fetch(f"{site}/empty"))


async def test_redirects_are_shown(site: str) -> None:
    text = said(await fetch(f"{site}/here"))
    assert "redirects to" in text and "grüße" in text
    text = said(await fetch(f"{site}/away"))
    assert "other.example" in text and "another host" in text
    with pytest.raises(BadInput, match="redirects"):
        await fetch(f"{site}/round")


@pytest.mark.parametrize(
    ("path", "told"), [("/odd", "HTTP"), ("/half", "HTTP|broke"), ("/deep", "read")]
)
async def test_hostile_answers_are_told(site: str, path: str, told: str) -> None:
    if path == "/deep":
        try:
            assert said(await fetch(site + path))  # a parser that copes is as good
        except BadInput as fault:
            assert "cannot be read" in str(fault)
        return
    with pytest.raises(BadInput, match=told):
        await fetch(site + path)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "0.0.0.0", "::1",
     "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
     "2002:7f00:1::", "224.0.0.1", "255.255.255.255", "100.64.0.1", "::", "nonsense",
     "::127.0.0.1", "::ffff:0:127.0.0.1", "fec0::1", "64:ff9b:1::7f00:1", "3fff::1", "5f00::1",
     "192.88.99.1"],
)  # fmt: skip
def test_what_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "8.8.8.8"])
def test_what_is_public(address: str) -> None:
    assert is_public(address)


async def test_private_addresses_are_refused_whatever_their_name(site: str) -> None:
    with pytest.raises(Refused, match="public internet"):
        await fetch(f"{site}/plain", public=is_public)

    async def both(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"]  # one bad address is enough

    with pytest.raises(Refused, match=r"127\.0\.0\.1"):
        await fetch(f"{site}/plain", public=is_public, resolve=both)


async def test_a_name_is_looked_up_once_per_connection(site: str) -> None:
    asked = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    good = {"127.0.0.1"}
    await fetch(f"{site}/plain", public=good.__contains__, resolve=rebinding)
    assert asked == ["site.example"]  # what was judged is what was connected to


@pytest.mark.parametrize(
    "url",
    ["", "file:///etc/passwd", "ftp://x.example/", "http://", "http://u:p@x.example/", "x.example",
     "http://x.example:99999/", "http://[::1", "http://x.example/\r\nHost: y", "http://\u2100.x/"],
)  # fmt: skip
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(BadInput, match="url"):
        host_of(url)


def test_it_is_asked_about_by_host() -> None:
    policy = AutonomyPolicy()
    call = ToolCall("c", "web_fetch", {"url": "https://Docs.Example.com:8443/x"})
    judged = policy.judge(call, WebFetch.spec, mode="supervised", cwd="/tmp", roots=())
    assert judged.verdict == "ask" and judged.commands == (("docs.example.com",),)
    first = scopes_of(call, judged)[0]
    assert first.kind == "prefix" and first.words == "all pages of docs.example.com"
    assert policy.judge(call, WebFetch.spec, mode="readonly", cwd="/", roots=()).verdict == "deny"
    assert policy.judge(call, WebFetch.spec, mode="full", cwd="/", roots=()).verdict == "allow"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/latin", "grüße"),
        ("/page1251", "привет"),
        ("/meta", "привет"),
        ("/nocode", "plain"),
        ("/base64", "plain"),
        ("/gzip", "grüße"),
        ("/raw", "packed"),
        ("/brotli", "packed as br, 2 bytes: not shown"),
    ],
)
async def test_pages_are_read_as_they_say_they_are_written(
    site: str, path: str, shown: str
) -> None:
    assert shown in said(await fetch(site + path))


async def test_what_swells_when_unpacked_stays_small(site: str) -> None:
    text = said(await fetch(f"{site}/bomb"))
    assert len(text) < 60_000 and "truncated" in text
    async with asyncio.timeout(60):  # an encoding that takes minutes is none of pages
        assert "plain-" in said(await fetch(f"{site}/slow-code"))
    with pytest.raises(BadInput, match="not packed as it says"):
        await fetch(f"{site}/no-gzip")
    with pytest.raises(BadInput, match="what is no address"):
        await fetch(f"{site}/bad")


async def test_the_next_address_is_tried_when_one_takes_no_connection(site: str) -> None:
    async def two(host: str, port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]

    assert "grüße" in said(await fetch(f"{site}/plain", resolve=two))

    async def dead(host: str, port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.3"]

    with pytest.raises(BadInput, match="cannot be reached"):
        await fetch(f"{site}/plain", resolve=dead)


async def test_a_public_address_of_this_machine_is_none_of_its_pages(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server has its own public address: what listens there would take the model for us."""
    await fetch(f"{site}/plain")
    monkeypatch.setattr("dragoman.tools.web.is_public", lambda address: True)
    with pytest.raises(Refused, match="this machine"):
        await fetch(f"{site}/plain")
