"""One connection of the asynchronous client: requests out, answers and events in.

What the host tells is read only as fast as it is taken: a reader that is slow makes the host merge
and, in the end, skip what passes (`Lagged`), never what is kept. An impatient connection, which
mostly asks, forgets the oldest of what nobody takes instead, so that answers always get through.
"""

import asyncio
from typing import Any

import msgspec

from .problems import ConnectionGone, fault_of, not_running
from .silence import LOOK_SECONDS, Silence

_LINE_LIMIT = 64 * 1024 * 1024
_AHEAD = 256  # events that are read before somebody takes them


class AnyLine(msgspec.Struct):
    """Any line from the host."""

    id: int | str | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(AnyLine).decode
_encode = msgspec.json.Encoder().encode


class Wire:
    """A connection that has said hello."""

    def __init__(self, path: str, name: str, *, patient: bool = True) -> None:
        self.path = path
        self.name = name
        self._patient = patient
        self._next = 0
        self._calls: dict[int, asyncio.Future[msgspec.Raw]] = {}
        # A notification, the id of an answered call that was marked, or the end.
        self._told: asyncio.Queue[AnyLine | int | None] = asyncio.Queue(_AHEAD)
        self._marked: set[int] = set()
        self._gone: ConnectionGone | None = None
        self._task: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect and greet. Raises NotRunning."""
        if not hasattr(asyncio, "open_unix_connection"):
            raise not_running(self.path, "this system has no Unix sockets")
        try:
            reader, writer = await asyncio.open_unix_connection(self.path, limit=_LINE_LIMIT)
        except (FileNotFoundError, ConnectionRefusedError):
            raise not_running(self.path) from None
        except OSError as problem:
            raise not_running(self.path, problem.strerror or str(problem)) from None
        self._writer = writer
        self._task = asyncio.ensure_future(self._read(reader))
        greeting = self.send("initialize", {"protocolVersion": 1})
        hello = self.send("dragoman/hello", {"name": self.name})
        await self._greeted(asyncio.gather(greeting, hello), writer)

    async def _greeted(self, answers: "asyncio.Future[Any]", writer: asyncio.StreamWriter) -> None:
        """Wait for the answers to a greeting, unless there is no use in it."""
        if (await asyncio.wait([answers], timeout=LOOK_SECONDS))[1]:
            silence = Silence(writer.get_extra_info("socket"), self.path)
            try:
                while (await asyncio.wait([answers], timeout=LOOK_SECONDS))[1]:
                    silence.look(LOOK_SECONDS, greeted=False, reads=True)
            except ConnectionGone:
                answers.cancel()
                await self.close()
                raise
        await answers

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()
            await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
        self._lose()

    def send(
        self, method: str, params: dict[str, Any], *, mark: bool = False
    ) -> asyncio.Future[msgspec.Raw]:
        """Send a request; the future is its result.

        With `mark`, the answer is noted among the events, in its place: `told` gives None there.
        """
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        if self._gone is not None or self._writer is None:
            answer.set_exception(self._gone or ConnectionGone("The connection is not open."))
            return answer
        self._next += 1
        self._calls[self._next] = answer
        if mark:
            self._marked.add(self._next)
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self._writer.write(_encode(message) + b"\n")
        return answer

    async def told(self) -> AnyLine | None:
        """The next notification; None where a marked call was answered.

        Raises ConnectionGone when there will be no more.
        """
        if self._gone is not None and self._told.empty():
            raise self._gone
        found = await self._told.get()
        if isinstance(found, AnyLine):
            return found
        if found is None:
            raise self._gone or ConnectionGone("The connection was closed.")
        return None

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                await self._take(_decode(line))
        except (OSError, ValueError) as problem:  # ValueError: an over-long line
            self._lose(str(problem))
        else:
            self._lose()
        await self._told.put(None)

    async def _take(self, message: AnyLine) -> None:
        if message.method:
            if not self._patient and self._told.full():
                self._told.get_nowait()
            await self._told.put(message)
            return
        answer = self._calls.pop(message.id, None) if isinstance(message.id, int) else None
        if answer is None:
            return
        if not answer.done():
            if message.error is not None:
                answer.set_exception(fault_of(message.error))
            else:
                answer.set_result(message.result)
        assert isinstance(message.id, int)
        if message.id in self._marked:
            self._marked.discard(message.id)
            await self._told.put(message.id)

    def _lose(self, why: str = "") -> None:
        if self._gone is None:
            detail = f": {why}" if why else ""
            self._gone = ConnectionGone(
                f"The connection to the daemon has ended{detail}.", "Connect again."
            )
        calls, self._calls = self._calls, {}
        for answer in calls.values():
            if not answer.done():
                answer.set_exception(self._gone)
                answer.exception()  # whoever waits gets it; nobody needs to
