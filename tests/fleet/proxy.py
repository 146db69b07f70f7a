"""A way to the database that can be cut, in one direction or both."""

import asyncio


class Proxy:
    """Carries bytes between a TCP port and a Unix socket."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._pairs: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.passed = asyncio.Event()  # something went to the server while nothing comes back
        self._deaf = False
        self.mute = False  # what clients say is thrown away

    @classmethod
    async def open(cls, target: str) -> "Proxy":
        proxy = cls(target)
        await proxy.reopen()
        return proxy

    @property
    def deaf(self) -> bool:
        """What the server says is thrown away."""
        return self._deaf

    @deaf.setter
    def deaf(self, value: bool) -> None:
        self._deaf = value
        self.passed.clear()

    async def reopen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Take no connections, and cut those there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    def cut(self) -> None:
        """End every connection; those that come now work."""
        self._deaf = self.mute = False
        for writer in tuple(self._pairs):
            writer.transport.abort()

    async def close(self) -> None:
        await self.shut()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            above, below = await asyncio.open_unix_connection(self._target)
            self._pairs |= {writer, below}
            await asyncio.gather(
                self._carry(reader, below, up=True), self._carry(above, writer, up=False)
            )
        except (OSError, asyncio.CancelledError):
            return
        finally:
            self._tasks.discard(task)
            self._pairs -= {writer, below}
            for one in (writer, below):
                one.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool
    ) -> None:
        while data := await reader.read(65536):
            if up and self._deaf:
                self.passed.set()
            if self.mute if up else self._deaf:
                continue
            writer.write(data)
            await writer.drain()
        writer.transport.abort()
