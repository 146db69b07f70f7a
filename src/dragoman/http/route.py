"""Where a URL leads: host, port, and the proxy on the way (HTTPS_PROXY, ALL_PROXY, NO_PROXY)."""

import socket
from base64 import b64encode
from collections.abc import Mapping

import msgspec

from .port import BadRequest

_PORTS = {"http": 80, "https": 443}
_MISREAD = frozenset("[]\\")  # before the host: others would find another host
_ODD = frozenset('[]\\%^|<>"`{}@/?#')  # in no name of a host


class Proxy(msgspec.Struct, frozen=True):
    """Somebody who passes requests on."""

    secure: bool
    host: str
    port: int
    credential: str  # of Proxy-Authorization


class Route(msgspec.Struct, frozen=True):
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


class Address(msgspec.Struct, frozen=True):
    """A URL's parts. Split here: `urllib.parse` takes 3 ms to load, and a first answer waits."""

    scheme: str
    host: str
    port: int | None
    target: str  # of a request line
    user: str | None = None
    password: str = ""


def split(url: str) -> Address:
    """Raises BadRequest when it is no http or https URL with a host."""
    if any(letter <= " " or letter == "\x7f" for letter in url):
        raise BadRequest("the address holds a space or a control character")
    scheme, _, rest = url.partition("#")[0].partition("://")
    scheme = scheme.lower()
    end = min(at for at in (rest.find("/"), rest.find("?"), len(rest)) if at >= 0)
    authority, target = rest[:end], rest[end:]
    known, at, place = authority.rpartition("@")
    user, _, password = known.partition(":")
    if place.startswith("["):
        host, closed, port = place[1:].lower().partition("]")
        sound = closed and _is_ipv6(host) and (not port or port.startswith(":"))
        port = port[1:]
    else:
        host, _, port = place.partition(":")
        host = _plain(host)
        sound = host and not _ODD.intersection(host)
    if scheme not in _PORTS or not sound or _MISREAD.intersection(known):
        raise BadRequest("the address is no http or https URL with a host")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536):
        raise BadRequest("the address's port is no number from 1 to 65535")
    if not target.startswith("/"):
        target = f"/{target}"
    if not target.isascii():
        from urllib.parse import quote

        target = quote(target, safe="/?&=%:@!$'()*+,;~-._[]")
    return Address(
        scheme, host, int(port) if port else None, target, user if at else None, password
    )


def route(there: Address, env: Mapping[str, str]) -> Route:
    """The way to a place, as the environment says. Raises BadRequest."""
    port = there.port or _PORTS[there.scheme]
    shown = f"[{there.host}]" if ":" in there.host else there.host
    return Route(
        there.scheme == "https",
        there.host,
        port,
        shown if port == _PORTS[there.scheme] else f"{shown}:{port}",
        _credential(there),
        _proxy(there.scheme, there.host, port, env),
    )


def _plain(host: str) -> str:
    """A name in small ASCII letters, as it is asked for."""
    if host.isascii():
        return host.lower()
    try:
        return host.encode("idna").decode().lower()
    except UnicodeError:
        raise BadRequest(f"{host} is no name of a host") from None


def _is_ipv6(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except OSError:
        return False
    return True


def _credential(there: Address) -> str:
    if there.user is None:
        return ""
    from urllib.parse import unquote

    pair = f"{unquote(there.user)}:{unquote(there.password)}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _proxy(scheme: str, host: str, port: int, env: Mapping[str, str]) -> Proxy | None:
    found = _either(env, f"{scheme}_proxy") or _either(env, "all_proxy")
    if not found or _spared(host, port, _either(env, "no_proxy")):
        return None
    try:
        there = split(found if "://" in found else f"http://{found}")
    except BadRequest:
        if found.lower().startswith("socks"):
            told = "SOCKS proxies are not spoken here; name an http or https proxy"
        else:
            told = f"the environment's proxy for {scheme} is no http or https address"
        raise BadRequest(told) from None
    at = there.port or _PORTS[there.scheme]
    return Proxy(there.scheme == "https", there.host, at, _credential(there))


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
