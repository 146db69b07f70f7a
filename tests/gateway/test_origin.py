"""Which names we answer to and which pages may talk to us; a bent name is not ours."""

from typing import Any

import pytest

from dragoman.gateway.http import Refusal, Request
from dragoman.gateway.origin import Origins, host_name, is_same


class Asked:
    """A request's head, as much as is looked at."""

    def __init__(self, mutates: bool = False, **headers: str) -> None:
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.mutates = mutates

    def header(self, name: str) -> str:
        return self._headers.get(name, "")


def verdict(origins: Origins, **headers: Any) -> int:
    request: Request = Asked(**headers)  # type: ignore[assignment]
    try:
        origins.check(request)
    except Refusal as refusal:
        return refusal.status
    return 200


OURS = Origins("gate.lan", ("https://Good.example/", "http://localhost:5173"))


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:42", 200), ("gate.lan", 200), ("GATE.lan.:80", 200), ("127.0.0.1:42", 200),
     ("[::1]:42", 200), ("192.168.1.5", 200), ("good.example", 200), ("evil.example", 421),
     ("localhost.evil.example", 421), ("", 421), ("a b", 421), ("x@localhost", 421),
     ("localhost:99999999", 421), ("localhost,evil", 421), ("[::1", 421)],
)  # fmt: skip
def test_hosts(host: str, status: int) -> None:
    assert verdict(OURS, host=host) == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost:42", 200), ("https://good.example", 200), ("http://localhost:5173", 200),
     ("http://localhost:43", 403), ("null", 403), ("https://good.example.evil", 403),
     ("http://127.0.0.1:42", 403), ("file://", 403), ("chrome-extension://abc", 403),
     ("http://localhost:x", 403)],
)  # fmt: skip
def test_origins(origin: str, status: int) -> None:
    assert verdict(OURS, host="localhost:42", origin=origin) == status


@pytest.mark.parametrize(
    ("site", "mode", "mutates", "status"),
    [("cross-site", "navigate", False, 200), ("cross-site", "navigate", True, 403),
     ("cross-site", "no-cors", False, 403), ("same-site", "cors", False, 403),
     ("same-origin", "cors", True, 200), ("none", "navigate", False, 200)],
)  # fmt: skip
def test_pages_without_an_origin(site: str, mode: str, mutates: bool, status: int) -> None:
    headers = {"sec_fetch_site": site, "sec_fetch_mode": mode}
    assert verdict(OURS, host="localhost", mutates=mutates, **headers) == status


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [("http://a", "a", True), ("http://a", "a:80", True), ("https://a", "a:443", True),
     ("https://a", "a:80", False), ("http://A:5", "a:5", True), ("http://a:5", "a", False),
     ("http://[::1]:5", "[::1]:5", True), ("http://a", "", False), ("http://a", "a:x", False)],
)  # fmt: skip
def test_the_same_page(origin: str, host: str, same: bool) -> None:
    assert is_same(origin, host) is same


def test_foreign_but_allowed_is_told_apart() -> None:
    for origin, foreign in (
        ("https://good.example", True),
        ("http://localhost", False),
        ("", False),
    ):
        request: Request = Asked(host="localhost", origin=origin)  # type: ignore[assignment]
        assert OURS.is_foreign_but_allowed(request) is foreign


def test_the_name_in_a_host() -> None:
    assert (host_name("A.b.:5"), host_name("[::1]:5"), host_name(":5")) == ("a.b", "::1", None)
