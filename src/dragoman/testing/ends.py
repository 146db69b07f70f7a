"""The client's end of a connection, over each transport, for tests."""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from dragoman.transports import memory, stdio
from dragoman.wire.link import Opener

LINE_LIMIT = 64 * 1024 * 1024


class End(Protocol):
    """The client's end of a connection."""

    async def send(self, data: bytes) -> None: ...

    async def receive(self, within: float) -> bytes:
        """The next line. Raises TimeoutError and EOFError."""
        ...

    async def end(self) -> None: ...

    async def close(self) -> None: ...


class MemoryEnd:
    """The client's end of an in-process connection."""

    def __init__(self, client: memory.Client) -> None:
        self._client = client

    async def send(self, data: bytes) -> None:
        self._client.feed(data)

    async def receive(self, within: float) -> bytes:
        return await self._client.receive(within)

    async def end(self) -> None:
        self._client.end()

    async def close(self) -> None:
        self._client.drop()
        await asyncio.sleep(0)


@dataclass(slots=True, eq=False)
class StreamEnd:
    """The client's end of a socket or a pair of pipes."""

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _gone: asyncio.Event | None = None
    _source: asyncio.BaseTransport | None = None

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        with suppress(ConnectionError):  # the server closed meanwhile: the next line will tell
            await self._writer.drain()

    async def receive(self, within: float) -> bytes:
        async with asyncio.timeout(within):
            line = await self._reader.readline()
        if not line:
            raise EOFError("the server ended the connection")
        return line.rstrip(b"\n")

    async def end(self) -> None:
        if self._writer.can_write_eof():
            self._writer.write_eof()
        else:
            self._writer.close()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()
        if self._source is not None:
            self._source.close()
        if self._gone is not None:  # both sides hold descriptors: wait until they are let go
            with suppress(TimeoutError):
                async with asyncio.timeout(5.0):
                    await self._gone.wait()


async def pipes(open: Opener) -> End:
    """The server's standard input and output as two pipes."""
    inward, outward = os.pipe(), os.pipe()
    server = stdio.Stdio(open)
    await server.connect(inward[0], outward[1])
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    source, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(outward[0], "rb", 0)
    )
    sink, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(inward[1], "wb", 0)
    )
    writer = asyncio.StreamWriter(sink, protocol, None, loop)
    return StreamEnd(reader, writer, server.gone, source)
