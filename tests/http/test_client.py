"""The bytes of a request, and whose certificates are believed: `client`, `trust`."""

import ssl
from pathlib import Path

import pytest
from tests.http.servers import make_certificate

from dragoman.http.client import Client, _request
from dragoman.http.port import BadRequest, Unreachable
from dragoman.http.route import route, split
from dragoman.http.trust import trusting


def request(method: str, url: str, body: bytes = b"", **headers: str) -> list[str]:
    there = split(url)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = _request(method, route(there, {}), there.target, named, body)
    return data.decode("latin-1").split("\r\n")


def test_client_writes_a_request_with_what_every_server_wants() -> None:
    assert request("GET", "http://h:81/a?b=c") == [
        "GET /a?b=c HTTP/1.1", "host: h:81", "accept-encoding: identity", "", "",
    ]  # fmt: skip
    posted = request("POST", "http://h/", b"{}", x_y=" v ")
    assert "content-length: 2" in posted and "x-y: v" in posted and posted[-1] == "{}"
    assert "content-length: 0" in request("DELETE", "http://h/")


def test_client_sends_the_credential_of_an_address_unless_there_is_another() -> None:
    assert "authorization: Basic dTpw" in request("GET", "http://u:p@h/")
    own = request("GET", "http://u:p@h/", Authorization="Bearer x")
    assert "Authorization: Bearer x" in own and not any("Basic" in line for line in own)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", "a\r\nb: c"),
        ("x", "a\0"),
        ("x", "ł"),
        ("x y", "a"),
        ("", "a"),
        ("x:", "a"),
        ("ä", "a"),
    ],
)
def test_client_refuses_headers_that_could_be_read_otherwise(name: str, value: str) -> None:
    there = split("http://h/")
    with pytest.raises(BadRequest):
        _request("GET", route(there, {}), there.target, {name: value}, b"")


async def test_client_has_a_bound_of_requests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.http.client._MOST", 0)
    client = Client(env={})
    with pytest.raises(Unreachable, match="under way already"):
        await client.fetch("GET", "http://127.0.0.1:1/")
    assert client._asking == 0
    await client.close()


async def test_client_asks_a_proxy_with_the_whole_address() -> None:
    client = Client(env={"http_proxy": "http://proxy:3128"})
    way, target = client._place("http://h/a")
    assert way.proxy is not None and target == "http://h/a"
    assert client._place("http://h/a") is client._place("http://h/a")  # looked up once
    await client.close()


def test_trust_believes_the_file_that_is_named(tmp_path: Path) -> None:
    cert, _ = make_certificate(tmp_path)
    for context in (trusting(str(cert)), trusting("", {"SSL_CERT_FILE": str(cert)})):
        assert context.cert_store_stats()["x509"] == 1
        assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    both = trusting("", {"SSL_CERT_DIR": f"/nowhere:{tmp_path}"})
    assert both.cert_store_stats()["x509"] == 0  # a folder is read when it is needed


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_trust_says_what_is_not_there_or_no_certificate(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=f"{name} names .*nowhere"):
        trusting("", {name: str(tmp_path / "nowhere")})
    (tmp_path / "odd.pem").write_text("nothing")
    with pytest.raises(BadRequest, match="cannot be used"):
        trusting(str(tmp_path / "odd.pem"))


def test_trust_without_a_word_is_the_systems() -> None:
    assert trusting("", {}).verify_mode is ssl.CERT_REQUIRED
