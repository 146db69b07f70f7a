"""Getting a connection: names looked up, addresses raced, proxies asked, TLS begun."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from .connection import Connection
from .port import HttpFault, Unreachable, Untrusted
from .route import Proxy, Route

if TYPE_CHECKING:
    import ssl

_STAGGER = 0.25  # seconds before the next address of a name is tried beside the last
_HEAD = 16 * 1024

Make = Callable[[], Connection]


async def connect(way: Route, trust: "ssl.SSLContext | None", make: Make) -> Connection:
    """A connection that is ready for a request. Raises HttpFault; the caller bounds the time."""
    proxy = way.proxy
    try:
        if proxy is not None and way.secure:
            protocol = await _through(proxy, way, trust, make)
        else:
            _, protocol = await _dial(proxy or way, make, trust)
    except OSError as error:
        raise _unreachable(error, proxy) from error
    assert isinstance(protocol, Connection)
    return protocol


async def _dial(
    there: Route | Proxy, make: Callable[[], asyncio.BaseProtocol], trust: "ssl.SSLContext | None"
) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
    """Connect to the first address that answers, the others tried beside it after a while."""
    loop = asyncio.get_running_loop()
    context, name = (trust, there.host) if there.secure else (None, None)

    async def attempt(address: str) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        return await loop.create_connection(
            make, address, there.port, ssl=context, server_hostname=name
        )

    found = await _addresses(loop, there.host, there.port)
    if len(found) == 1:
        return await attempt(found[0])
    tries: set[asyncio.Task[tuple[asyncio.Transport, asyncio.BaseProtocol]]] = set()
    trouble: BaseException | None = None
    try:
        while found or tries:
            if found:
                tries.add(loop.create_task(attempt(found.pop(0))))
            done, tries = await asyncio.wait(
                tries, timeout=_STAGGER if found else None,
                return_when=asyncio.FIRST_COMPLETED,
            )  # fmt: skip
            for one in done:
                if one.exception() is None:
                    tries |= done - {one}
                    return one.result()
                trouble = trouble or one.exception()
    finally:
        for one in tries:
            one.add_done_callback(_close)
            one.cancel()
    assert trouble is not None
    raise trouble


def _close(task: "asyncio.Task[tuple[asyncio.Transport, asyncio.BaseProtocol]]") -> None:
    """An attempt that came second."""
    if not task.cancelled() and task.exception() is None:
        task.result()[0].abort()


async def _addresses(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[str]:
    """The addresses of a host, the two families in turn."""
    if host.replace(".", "").isdigit() or ":" in host:
        return [host]
    infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    families: dict[int, list[str]] = {}
    for family, _, _, _, place in infos:
        families.setdefault(family, []).append(str(place[0]))
    found: list[str] = []
    while any(families.values()):
        found += [addresses.pop(0) for addresses in families.values() if addresses]
    if not found:
        raise OSError(f"{host} has no address")
    return list(dict.fromkeys(found))


async def _through(
    proxy: Proxy, way: Route, trust: "ssl.SSLContext | None", make: Make
) -> asyncio.BaseProtocol:
    """A tunnel through the proxy, and TLS inside it."""
    loop = asyncio.get_running_loop()
    transport, tunnel = await _dial(proxy, _Tunnel, trust)
    assert isinstance(tunnel, _Tunnel) and trust is not None
    try:
        place = f"[{way.host}]:{way.port}" if ":" in way.host else f"{way.host}:{way.port}"
        ask = f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n"
        if proxy.credential:
            ask += f"proxy-authorization: {proxy.credential}\r\n"
        transport.write(f"{ask}\r\n".encode("latin-1"))
        status = await tunnel.opened
        if status != "200":
            raise Unreachable(f"the proxy {proxy.host}:{proxy.port} refused the way ({status})")
        protocol = make()
        inner = await loop.start_tls(transport, protocol, trust, server_hostname=way.host)
        if inner is None:
            raise Unreachable("it closed the connection at once")
        protocol.connection_made(inner)
        return protocol
    except BaseException:
        transport.abort()
        raise


class _Tunnel(asyncio.Protocol):
    """Reads the proxy's answer to CONNECT."""

    def __init__(self) -> None:
        self.opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while not self.opened.done():
            head, end, rest = self._data.partition(b"\r\n\r\n")
            if not end:
                if len(self._data) > _HEAD:
                    self._fail("its answer is too long")
                return
            words = head.split(b"\r\n", 1)[0].split()
            status = words[1].decode("latin-1") if len(words) > 1 else "?"
            if not head.startswith(b"HTTP/1."):
                self._fail("it speaks no HTTP")
            elif status.startswith("1"):
                self._data = rest
            elif rest and status == "200":
                self._fail("it speaks inside the tunnel")
            else:
                self.opened.set_result(status)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("it closed the connection")

    def _fail(self, why: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(Unreachable(f"the proxy cannot be used: {why}"))
            self.opened.exception()  # looked at: nobody may be waiting any more


def _unreachable(error: OSError, proxy: Proxy | None) -> HttpFault:
    on_the_way = f" (through the proxy {proxy.host}:{proxy.port})" if proxy else ""
    said = error.strerror or str(error) or type(error).__name__
    if error.errno and said.startswith("Connect call failed"):  # asyncio's; the address is known
        said = os.strerror(error.errno)
    if type(error).__name__ == "SSLCertVerificationError":
        said = getattr(error, "verify_message", "") or said
        return Untrusted(f"its certificate is not trusted{on_the_way}: {said}")
    return Unreachable(f"{said}{on_the_way}")
