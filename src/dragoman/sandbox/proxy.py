"""A proxy that leads to listed hosts only: for commands that have no other way to the network.

It speaks CONNECT and plain HTTP, one request for each connection. Names are resolved here, once,
and the address that was looked at is the one that is used; a name that is not itself a name of this
machine may not lead to this machine.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

_HEAD = 16_384  # bytes of a request's head
_PATIENCE = 30.0  # seconds for a head, and for a connection to the outside
_CONNECTIONS = 64
_PIECE = 65_536
_PORTS = (80, 443)  # of an entry that names none
_HOP = (b"proxy-", b"connection:", b"keep-alive:", b"te:", b"upgrade:")


class ProxyRefusal(Exception):
    """An answer that is no page: the status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class AllowedHost(NamedTuple):
    """One of the hosts that may be reached: `name`, `*.name`, each with `:port` or without."""

    name: str
    below: bool
    ports: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> "AllowedHost":
        """Raises ValueError when the text is no such entry."""
        name, _, port = text.strip().lower().rstrip(".").rpartition(":")
        if not name or not port.isdigit():
            name, port = text.strip().lower().rstrip("."), ""
        below = name.startswith("*.")
        name = (name[2:] if below else name).strip("[]")
        if not name or any(char in name for char in "*/@ \t") or (port and int(port) > 65535):
            raise ValueError(f"{text!r} is no host: use name, *.name or name:port")
        return cls(name, below, (int(port),) if port else _PORTS)

    def allows(self, host: str, port: int) -> bool:
        named = host.endswith(f".{self.name}") if self.below else host == self.name
        return named and port in self.ports


class Proxy:
    """Serves the commands of one sandbox."""

    def __init__(self, domains: Sequence[str]) -> None:
        self.entries = [AllowedHost.of(text) for text in domains]
        self._free = asyncio.Semaphore(_CONNECTIONS)

    async def serve(self, listener: socket.socket, alive: socket.socket) -> None:
        """Serve until the other end of `alive` is closed: nothing of the command is left then."""
        loop = asyncio.get_running_loop()
        alive.setblocking(False)
        listener.setblocking(False)
        server = await asyncio.start_server(self._connection, sock=listener, limit=_HEAD)
        try:
            said = b"."
            while said:  # whatever it is
                said = await loop.sock_recv(alive, 512)
        except OSError:
            return  # as good as its end
        finally:
            server.close()
            alive.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._free:
                await self._request(reader, writer)
        except ProxyRefusal as refusal:
            body = f"{refusal}\n".encode()
            head = f"HTTP/1.1 {refusal.status} Refused\r\nContent-Length: {len(body)}\r\n"
            rest = b"Content-Type: text/plain\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + rest + body)
            with contextlib.suppress(OSError):  # it did not wait for an answer
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return  # the command went away
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
        except (TimeoutError, asyncio.LimitOverrunError) as error:
            raise ProxyRefusal(400, "The head of the request is too long or too slow.") from error
        first, *lines = head[:-4].split(b"\r\n")
        try:
            method, target, version = first.decode("ascii").split(" ")
        except ValueError as error:
            raise ProxyRefusal(400, "This is no request.") from error
        if method == "CONNECT":
            host, port = _authority(target, 443)
            theirs, ours = await self._open(host, port)
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            parts = urlsplit(target)
            if parts.scheme != "http" or not parts.netloc or "@" in parts.netloc:
                raise ProxyRefusal(400, "Only http: addresses and CONNECT are served.")
            host, port = _authority(parts.netloc, 80)
            theirs, ours = await self._open(host, port)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            kept = [line for line in lines if not line.lower().startswith((*_HOP, b"host:"))]
            said = [f"{method} {path} {version}".encode(), b"Host: " + parts.netloc.encode(), *kept]
            ours.write(b"\r\n".join([*said, b"Connection: close", b"", b""]))
        try:
            await asyncio.gather(_pour(reader, ours), _pour(theirs, writer))
        finally:
            ours.close()

    async def _open(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if not any(entry.allows(host, port) for entry in self.entries):
            raise ProxyRefusal(403, f"{host}:{port} is not among the domains of this agent.")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                for family, _, _, _, address in found:
                    if _leads_home(host, str(address[0])):
                        raise ProxyRefusal(403, f"{host} leads to this machine or its neighbours.")
                    try:
                        reader, writer = await asyncio.open_connection(
                            str(address[0]), port, family=family, limit=_PIECE
                        )
                    except OSError:
                        continue
                    if not _names_itself(host) and leads_here(writer):
                        writer.close()
                        raise ProxyRefusal(403, f"{host} leads to this machine.")
                    return reader, writer
        except (OSError, TimeoutError, UnicodeError) as error:
            from dragoman.engine.faults import in_words

            raise ProxyRefusal(502, f"{host} cannot be found: {in_words(error)}.") from error
        raise ProxyRefusal(502, f"{host}:{port} cannot be reached.")


def _authority(text: str, usual: int) -> tuple[str, int]:
    name, _, port = text.rpartition(":")
    if not name or not port.isdigit():
        name, port = text, str(usual)
    host = name.strip("[]").lower().rstrip(".")
    if not host or not 0 < int(port) < 65536:
        raise ProxyRefusal(400, f"{text} is no host.")
    return host, int(port)


def _names_itself(host: str) -> bool:
    """Whether an entry says that it is this machine, or is an address that is listed as such."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _leads_home(host: str, address: str) -> bool:
    """Whether a name that says nothing of it leads to this machine, or to a link's neighbours."""
    if _names_itself(host):
        return False
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None) or found
    near = mapped.is_loopback or mapped.is_link_local
    return bool(near or mapped.is_unspecified or mapped.is_multicast)


def leads_here(writer: asyncio.StreamWriter) -> bool:
    """Whether a connection of ours ends on this machine: both of its ends have one address.

    What it leads to would take whoever had us connect for us.
    """
    ends = (writer.get_extra_info("sockname"), writer.get_extra_info("peername"))
    return all(ends) and ends[0][0] == ends[1][0]


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(_PIECE):
            target.write(piece)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
    except OSError:
        target.close()
