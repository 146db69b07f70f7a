"""Where a URL leads: host, port, and the proxy on the way (HTTPS_PROXY, ALL_PROXY, NO_PROXY)."""

from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from .port import BadRequest

_PORTS = {"http": 80, "https": 443}


class Proxy(NamedTuple):
    """Somebody who passes requests on."""

    secure: bool
    host: str
    port: int
    credential: str  # of Proxy-Authorization


class Route(NamedTuple):
    """One place to ask, and the way there: what connections are kept by."""

    secure: bool
    host: str
    port: int
    authority: str  # as the Host header says it
    credential: str  # of Authorization, when the URL holds one
    proxy: Proxy | None

    @property
    def tunnels(self) -> bool:
        """Whether the proxy only passes bytes on."""
        return self.secure and self.proxy is not None


def split(url: str) -> tuple[SplitResult, str]:
    """The URL's parts and the target of a request line. Raises BadRequest."""
    if any(letter <= " " or letter == "\x7f" for letter in url):
        raise BadRequest("the address holds a space or a control character")
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in _PORTS or not parts.hostname or parts.port == 0
    except ValueError as error:
        raise BadRequest(f"the address is no URL: {error}") from None
    if wrong:
        raise BadRequest("the address is no http or https URL with a host")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.isascii():
        from urllib.parse import quote

        target = quote(target, safe="/?&=%:@!$'()*+,;~-._[]")
    return parts, target


def route(parts: SplitResult, env: Mapping[str, str]) -> Route:
    """The way to a place, as the environment says. Raises BadRequest."""
    host, port = _host(parts), parts.port or _PORTS[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    return Route(
        parts.scheme == "https",
        host,
        port,
        shown if port == _PORTS[parts.scheme] else f"{shown}:{port}",
        _credential(parts),
        _proxy(parts.scheme, host, port, env),
    )


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        raise BadRequest(f"{host} is no name of a host") from None


def _credential(parts: SplitResult) -> str:
    if parts.username is None:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _proxy(scheme: str, host: str, port: int, env: Mapping[str, str]) -> Proxy | None:
    found = _either(env, f"{scheme}_proxy") or _either(env, "all_proxy")
    if not found or _spared(host, port, _either(env, "no_proxy")):
        return None
    try:
        parts = urlsplit(found if "://" in found else f"http://{found}")
        if parts.scheme in _PORTS and parts.hostname:
            secure = parts.scheme == "https"
            there = parts.port or _PORTS[parts.scheme]
            return Proxy(secure, _host(parts), there, _credential(parts))
    except ValueError:
        parts = None
    if parts is not None and parts.scheme.startswith("socks"):
        raise BadRequest("SOCKS proxies are not spoken here; name an http or https proxy")
    raise BadRequest(f"the environment's proxy for {scheme} is no http or https address")


def _either(env: Mapping[str, str], name: str) -> str:
    return (env.get(name) or env.get(name.upper()) or "").strip()


def _spared(host: str, port: int, names: str) -> bool:
    """Whether NO_PROXY names this host: itself, its domain, host:port, an address or a network."""
    host = host.lower().rstrip(".")
    for word in names.replace(" ", ",").lower().split(","):
        if word == "*":
            return True
        if "/" in word and _within(host, word):
            return True
        name, colon, only = word.rpartition(":")
        if colon and only.isdigit() and (":" not in name or name.endswith("]")):
            if int(only) != port:
                continue
            word = name
        word = word.strip("[]").removeprefix("*").strip(".")
        if word and (host == word or host.endswith(f".{word}")):
            return True
    return False


def _within(host: str, network: str) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(host) in ip_network(network.strip("[]"), strict=False)
    except ValueError:
        return False
