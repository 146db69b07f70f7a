"""A URL is split as Python's own library splits it, or refused."""

from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some
from tests.lane import share

from dragoman.http.port import BadRequest
from dragoman.http.route import route, split

_PIECES = some.sampled_from(
    ["http", "https", "ftp", "HTTP", ":", "//", "/", "?", "#", "@", "[", "]", "::1", "a.b", "h_st"]
    + ["é", "ß.de", "℀", "xn--", "%41", "80", "0", "65536", "8a", "\\", "..", "q=1", "u:p", "\t"]
    + [" ", "fe80::1%eth0", "1.2.3.4", "-", "½", "。"]
)  # fmt: skip
_URLS = some.one_of(
    some.lists(_PIECES, max_size=9).map("".join),
    some.lists(_PIECES, max_size=9).map(lambda pieces: "http://" + "".join(pieces)),
)


@example("http://[@a.b")
@example("http://]@a.b")
@example("http://u[::1]@h")
@settings(max_examples=share(3_000, 500))
@given(_URLS)
def test_it_leads_nowhere_else_than_python_says(url: str) -> None:
    try:
        found = split(url)
    except BadRequest:
        return
    try:
        there = urlsplit(url)
    except ValueError as odd:  # it minds odd letters of a user, too
        assert "NFKC" in str(odd)
        return
    assert there.scheme == found.scheme
    host = there.hostname or ""
    assert (host if host.isascii() else host.encode("idna").decode().lower()) == found.host
    assert there.port == found.port
    assert (there.username, there.password or "") == (found.user, found.password)
    if found.target.isascii() and there.path.isascii() and there.query.isascii():
        query = f"?{there.query}" if "?" in found.target else ""
        assert found.target == (there.path or "/") + query


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://h", ("h", None, "/")),
        ("HTTPS://H.Example:8443/a?b=c#d", ("h.example", 8443, "/a?b=c")),
        ("http://h?x=1", ("h", None, "/?x=1")),
        ("http://h:/x", ("h", None, "/x")),
        ("http://u:p@[::1]:9/v1", ("::1", 9, "/v1")),
        ("http://[FE80::1]/", ("fe80::1", None, "/")),
        ("http://u@v@h/", ("h", None, "/")),
        ("http://my_host.local:1/", ("my_host.local", 1, "/")),
        ("http://bücher.example/ä", ("xn--bcher-kva.example", None, "/%C3%A4")),
    ],
)
def test_parts(url: str, parts: tuple[str, int | None, str]) -> None:
    found = split(url)
    assert (found.host, found.port, found.target) == parts


@pytest.mark.parametrize(
    "url",
    ["", "h", "http:", "http://", "http:///x", "ftp://h/", "//h/x", "http:/h", "http://:80/", "http://u@/"]
    + ["http://h:0/", "http://h:65536/", "http://h:-1/", "http://h:8a/", "http://h:٣/", "http://h:1:2/"]
    + ["http://[::1/", "http://::1]/", "http://[::1]x/", "http://[v1.a]/", "http://[1.2.3.4]/", "http://[]/"]
    + ["http://a b/", "http://a\tb/", "http://h/\r\nx: y", "http://a\\@b/", "http://a%2fb/", "http://℀/"]
    + ["http://[@h/", "http://u]@h/"],
)  # fmt: skip
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(BadRequest):
        split(url)


def test_a_long_number_is_no_port() -> None:
    with pytest.raises(BadRequest, match="port"):
        split(f"http://h:{'9' * share(100_000, 1_000)}/")


def test_what_the_host_header_says() -> None:
    assert route(split("http://h:80/"), {}).authority == "h"
    assert route(split("https://[::1]:80/"), {}).authority == "[::1]:80"
    assert route(split("http://u%40:p%3a@h/"), {}).credential == "Basic dUA6cDo="
