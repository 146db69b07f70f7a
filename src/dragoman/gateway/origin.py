"""Which hosts and origins a request may name.

A browser lets any page send requests to a loopback address. Two headers that a page cannot forge
tell them apart: `Origin` says which page it is, and `Host` the name that was looked up, so that a
name that was made to point here (DNS rebinding) is not taken for ours.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from .http import Refusal, Request

_OWN_NAMES = ("localhost",)


class Origins:
    """The names we answer to."""

    def __init__(self, host: str, allowed: tuple[str, ...]) -> None:
        self._allowed = {one.rstrip("/").lower() for one in allowed}
        names = {host.lower(), *_OWN_NAMES}
        for one in self._allowed:
            found = urlsplit(one).hostname
            if found:
                names.add(found)
        self._names = names

    def check(self, request: Request) -> None:
        """Raises Refusal when the request names a host that is not ours, or comes from a page that
        is not ours."""
        host = request.header("host")
        if not self._is_ours(host):
            raise Refusal(
                421,
                "bad_host",
                "This host does not answer to that name.",
                "Add its origin to gateway.allowed_origins.",
            )
        origin = request.header("origin")
        if origin and not self.is_welcome(origin, host):
            raise Refusal(
                403,
                "bad_origin",
                "This web page may not talk to this host.",
                "Add its origin to gateway.allowed_origins.",
            )
        site = request.header("sec-fetch-site")
        if not origin and site in ("cross-site", "same-site"):
            if request.header("sec-fetch-mode") != "navigate" or request.mutates:
                raise Refusal(403, "bad_origin", "Another web page asked for this.")

    def is_welcome(self, origin: str, host: str) -> bool:
        if origin.lower() in self._allowed:
            return True
        return is_same(origin, host)

    def is_foreign_but_allowed(self, request: Request) -> bool:
        origin = request.header("origin")
        return bool(origin) and not is_same(origin, request.header("host"))

    def _is_ours(self, host: str) -> bool:
        name = host_name(host)
        if name is None:
            return False
        if name in self._names:
            return True
        # A literal address was not looked up anywhere, so nobody can have bent it.
        return _is_address(name)


def is_same(origin: str, host: str) -> bool:
    """Whether a page of this origin was loaded from this host; the scheme is the proxy's matter."""
    try:
        found = urlsplit(origin)
        port = found.port
    except ValueError:
        return False
    if found.scheme not in ("http", "https") or not found.hostname:
        return False
    usual = 443 if found.scheme == "https" else 80
    theirs = (found.hostname.lower(), port or usual)
    name = host_name(host)
    try:
        ours = urlsplit(f"//{host}").port
    except ValueError:
        return False
    return name is not None and theirs == (name, ours or usual)


def host_name(host: str) -> str | None:
    """The name in a Host header, without its port and brackets."""
    if not host or any(char in host for char in "/@\\ ,"):
        return None
    try:
        found = urlsplit(f"//{host}")
        _ = found.port
    except ValueError:
        return None
    return found.hostname.lower().rstrip(".") if found.hostname else None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens at this address."""
    if host.lower() in _OWN_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
