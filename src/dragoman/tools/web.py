"""The tool `web_fetch`: one page as text. Public addresses only, and no other host than allowed.

The name is looked up once, every address it has must be public, and the connection goes to one of
those very addresses: a name that leads elsewhere a moment later leads nowhere.
"""

import asyncio
import codecs
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput, Refused, in_words
from dragoman.engine.ports import Outcome, ToolEnv

from . import told
from .args import brief, decode
from .documents import extracted

MAX_BYTES = 4 * 1024 * 1024
MAX_TEXT = 51_200
_SECONDS = 30.0
_REDIRECTS = 5
_TRIED = 4  # addresses of a host
_PATIENCE = 8.0  # seconds for one of them
_HEAD = 64 * 1024
_AGENT = "dragoman (web_fetch)"
_TEXTUAL = ("text/", "application/json", "application/xml", "application/javascript")

Resolve = Callable[[str, int], Awaitable[list[str]]]


class FetchArgs(msgspec.Struct):
    url: str


class Page(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool


class WebFetch:
    """Fetches a page with GET."""

    spec = told.WEB_FETCH

    def __init__(
        self, resolve: Resolve | None = None, *, public: Callable[[str], bool] | None = None
    ) -> None:
        self._resolve = resolve or addresses
        self._public = public or is_public

    def summary(self, args: dict[str, Any]) -> str:
        return f"Fetch {brief(args.get('url', '?'))}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(FetchArgs, args, {"uri": "url", "link": "url"})
        notes: list[str] = []
        url = asked.url.strip()
        host = host_of(url)
        try:
            async with asyncio.timeout(_SECONDS):
                for _ in range(_REDIRECTS + 1):
                    page = await self.get(url)
                    target = page.headers.get("location", "")
                    if page.status not in (301, 302, 303, 307, 308) or not target:
                        break
                    before, url = url, _joined(url, target)
                    notes.append(f"[{before} redirects to {url}]")
                    if host_of(url) != host:
                        said = f"{notes[-1]}\n[another host: fetch that address to go on]"
                        return Outcome((Text(said),))
                else:
                    raise BadInput(f"{asked.url}: more than {_REDIRECTS} redirects.")
        except TimeoutError:
            raise BadInput(f"{url}: no whole answer within {_SECONDS:g} s.") from None
        shown = await _shown(page, url)
        head = [*notes, f"[{page.status} {url}]"]
        return Outcome((Text("\n".join([*head, "", shown])),), is_error=page.status >= 400)

    async def get(self, url: str, more: Sequence[tuple[str, str]] = ()) -> Page:
        """One answer, redirects as they are; `more` are further headers."""
        parts = urlsplit(url)
        host = host_of(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        found = await self._resolve(host, port)
        bad = [one for one in found if not self._public(one)]
        if bad or not found:
            raise Refused(
                f"{host} is not on the public internet ({', '.join(bad) or 'no address'}).",
                "web_fetch reaches no private or local address; use bash if that is meant.",
            )
        trust: ssl.SSLContext | None = None
        if parts.scheme == "https":
            trust = await asyncio.to_thread(_context)
        reader, writer = await _connected(host, found[:_TRIED], port, trust)
        from dragoman.sandbox.proxy import leads_here

        try:
            if leads_here(writer) and is_public(writer.get_extra_info("peername")[0]):
                raise Refused(f"{host} is this machine.", "web_fetch reaches nothing of our own.")
            return await _exchange(reader, writer, parts, host, more)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise BadInput(f"{host} broke off: {in_words(error)}.") from error
        finally:
            writer.close()


async def _connected(
    host: str, found: Sequence[str], port: int, trust: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first of the addresses that takes one."""
    problem: OSError | None = None
    for address in found:
        try:
            async with asyncio.timeout(_PATIENCE):
                return await asyncio.open_connection(
                    address, port, ssl=trust, server_hostname=host if trust else None, limit=_HEAD
                )
        except ssl.SSLError as error:
            raise BadInput(f"{host} cannot be reached: {error}.") from error
        except OSError as error:  # a time that is over, too
            problem = error
    raise BadInput(f"{host} cannot be reached: {problem or 'no answer'}.") from problem


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        raise BadInput(f"{url} redirects to what is no address: {brief(target)}") from None


def host_of(url: str) -> str:
    """The host of an address; raises BadInput for what is none that can be fetched."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        _ = parts.port
    except (ValueError, UnicodeError):
        raise BadInput(f"url: {brief(url)} is no address.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadInput("url: it must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise BadInput("url: it must not carry a user or a password")
    if any(char in url for char in "\r\n\0 "):
        raise BadInput("url: it has a character that no address has")
    return host.rstrip(".").lower()


async def addresses(host: str, port: int) -> list[str]:
    """All addresses of a name."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise BadInput(f"{host} is not known: {error.strerror}.") from error
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet, however it is wrapped."""
    import ipaddress

    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo or (None, None))[1]
        if inner is not None:
            return is_public(str(inner))
        if found in ipaddress.ip_network("64:ff9b::/96"):
            return is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)))
        # Only this part was ever given out; what lies beyond wraps others, or is used within nets.
        given_out = found in ipaddress.ip_network("2000::/3")
        if not given_out or found in ipaddress.ip_network("3fff::/20"):
            return False
    elif found in ipaddress.ip_network("192.88.99.0/24"):
        return False  # once led to whoever was near; today to nobody knows whom
    return found.is_global and not found.is_multicast


def _context() -> ssl.SSLContext:
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    parts: Any,
    host: str,
    more: Sequence[tuple[str, str]],
) -> Page:
    import h11

    wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    shown = f"[{host}]" if ":" in host else host
    named = shown if parts.port is None else f"{shown}:{parts.port}"
    headers = [
        ("Host", named),
        ("User-Agent", _AGENT),
        ("Accept", "text/html,text/plain,application/json;q=0.9,*/*;q=0.5"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
        *more,
    ]
    try:
        request = h11.Request(method="GET", target=_escaped(target), headers=headers)
        writer.write(wire.send(request) or b"")
        writer.write(wire.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        status, given = 0, {}
        body = bytearray()
        while True:
            event = wire.next_event()
            if event is h11.NEED_DATA:
                wire.receive_data(await reader.read(1 << 16))
            elif isinstance(event, h11.Response):
                status = event.status_code
                given = {k.decode("latin-1"): v.decode("latin-1") for k, v in event.headers}
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_BYTES:
                    return Page(status, given, bytes(body[:MAX_BYTES]), True)
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return Page(status, given, bytes(body), False)
    except h11.ProtocolError as error:
        raise BadInput(f"{host} does not speak HTTP properly: {error}.") from error


def _escaped(target: str) -> str:
    from urllib.parse import quote

    return quote(target, safe="/?&=%:;,+@!$'()*~#[]-._")


async def _shown(page: Page, url: str) -> str:
    kind, _, more = page.headers.get("content-type", "text/plain").partition(";")
    kind = kind.strip().lower()
    packed = page.headers.get("content-encoding", "identity").strip().lower()
    body, cut = page.body, page.cut
    if packed in ("gzip", "x-gzip", "deflate"):  # nobody asked for it
        body, cut = _unpacked(body, url, cut)
    elif packed not in ("", "identity"):
        return f"[{kind} packed as {brief(packed)}, {len(body)} bytes: not shown]"
    if kind in ("text/html", "application/xhtml+xml"):
        # Without a header the page says itself what it is written in; a mark says it before that.
        if _CHARSET.search(more):
            body = b"\xef\xbb\xbf" + _decoded(body, more).encode("utf-8", "replace")
        made = await extracted("html", body, MAX_TEXT, url)
    elif kind == "application/pdf":
        made = await extracted("pdf", body, MAX_TEXT, url)
    elif kind.startswith(_TEXTUAL) or kind.endswith(("+json", "+xml")):
        made = _decoded(body, more)
    else:
        return f"[{kind}, {len(body)} bytes: not shown]"
    if len(made.encode()) > MAX_TEXT or cut:
        made = made.encode()[:MAX_TEXT].decode("utf-8", "ignore")
        made += f"\n... [truncated at {len(made.encode())} bytes]"
    return made or "[the page is empty]"


def _unpacked(data: bytes, url: str, cut: bool) -> tuple[bytes, bool]:
    """Packed bytes, as many as may be, and whether there are more."""
    import zlib

    raw = zlib.decompressobj(-zlib.MAX_WBITS)
    either = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        try:
            made = either.decompress(data, MAX_BYTES)
        except zlib.error:  # what some servers call deflate has no head
            either, made = raw, raw.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise BadInput(f"{url} is not packed as it says: {error}.") from error
    return made, cut or bool(either.unconsumed_tail)


_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_ENCODINGS = (
    *("utf-8", "utf-16", "utf-32", "ascii", "iso8859", "iso2022", "cp", "mac", "koi8", "big5"),
    *("gb", "hz", "euc", "shift_jis", "johab", "tis"),
)


def _decoded(data: bytes, said: str) -> str:
    """Text by the encoding that a header names, or UTF-8: others than of pages are not taken."""
    found = _CHARSET.search(said)
    try:
        name = codecs.lookup(found[1]).name if found else "utf-8"
    except LookupError:
        name = "utf-8"
    named = name if name.startswith(_ENCODINGS) else "utf-8"
    return data.decode(named, "replace").removeprefix("\ufeff")
