"""Servers on loopback that say exactly the bytes they were told to, and proxies before them."""

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

Play = Callable[["Line"], Awaitable[None]]


class Line:
    """One connection, seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def asked(self) -> tuple[str, dict[str, str], bytes]:
        """The next request: its first line, headers and body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.strip().split("\r\n")
        headers = {k.lower(): v for k, v in (field.split(": ", 1) for field in fields)}
        return line, headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def say(self, *pieces: bytes) -> None:
        """Each piece in a write of its own."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def left(self) -> None:
        """Wait until the client has gone."""
        while await self.reader.read(65_536):
            continue

    def reset(self) -> None:
        """End the connection with a reset, not with an end."""
        import socket
        import struct

        inner = self.writer.get_extra_info("socket")
        inner.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Server:
    """`async with Server(play) as server`: plays for each connection; `gone` counts who left."""

    def __init__(self, play: Play, tls: ssl.SSLContext | None = None) -> None:
        self._play, self._tls = play, tls
        self.connections = 0
        self.trouble: list[BaseException] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        if self.trouble:
            raise self.trouble[0]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._play(Line(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass  # the client has gone, or the test is over
        except BaseException as error:
            self.trouble.append(error)
        finally:
            self._tasks.discard(task)
            writer.close()


def chunked(*pieces: bytes, end: bool = True) -> bytes:
    made = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return made + (b"0\r\n\r\n" if end else b"")


def head(*fields: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *fields, "", "")).encode()


STREAM = head("content-type: text/event-stream", "transfer-encoding: chunked")
LENGTH = "content-length: {}"


class Proxy:
    """A proxy that notes what it was asked; `credential` is what it demands."""

    def __init__(self, credential: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[str] = []
        self.given: list[str] = []
        self._credential = credential
        self._server = Server(self._play, tls)

    @property
    def url(self) -> str:
        return self._server.url

    async def __aenter__(self) -> "Proxy":
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__()

    async def _play(self, line: Line) -> None:
        first, headers, body = await line.asked()
        self.asked.append(first)
        self.given.append(headers.get("proxy-authorization", ""))
        if self._credential and self.given[-1] != self._credential:
            await line.say(head("content-length: 0", status="407 Who are you"))
            return
        method, target, _ = first.split(" ")
        if method != "CONNECT":
            text = f"proxied {target}".encode()
            await line.say(head(f"content-length: {len(text)}") + text)
            return
        host, _, port = target.rpartition(":")
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        await line.say(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pump(line.reader, writer), _pump(reader, line.writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # one side went away, so does the other
    finally:
        writer.close()


def make_certificate(
    folder: Path, name: str = "cert", address: str = "127.0.0.1"
) -> tuple[str, str]:
    """A certificate for this machine that nobody signed, and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
         "-addext", f"subjectAltName=IP:{address},DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return str(cert), str(key)


def serving_context(cert: str, key: str, *alpn: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


@asynccontextmanager
async def closing(client: Any) -> Any:
    """The client, closed at the end."""
    try:
        yield client
    finally:
        await client.close()
