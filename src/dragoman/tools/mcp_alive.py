"""Whether an MCP server is still there: the answer to a `ping` decides.

Nothing binds one over HTTP to us while it is idle: where it offers a stream of events, the end of
that stream is the first sign; where it does not, it is asked now and then. Every one is asked when
a call had no answer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

PING_SECONDS = 10.0  # between two looks; one costs the host about a millisecond
PATIENCE_SECONDS = 30.0  # for which a busy server may be silent
_CLOSED = -32000  # the library's word for "there will be no answer"


class Alive:
    """Looks after one connection."""

    def __init__(self, stream: type = object) -> None:
        """`stream` is the HTTP library's class of a body that comes piece by piece.

        Without it the connection itself tells its end: the server is asked in doubt only.
        """
        self._stream = stream
        self._look = asyncio.Event()  # a stream of events has ended, a call had no answer
        self._answers = False  # it has answered a ping as it should
        self.calls = 0  # under way: a server that works for us is not asked
        self.over = False  # it does not know our session any more

    async def heard(self, response: Any) -> None:
        """What the HTTP client is to tell."""
        request = response.request
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            self.over = True
        kind = response.headers.get("content-type", "")
        if request.method == "GET" and kind.startswith("text/event-stream"):
            response.stream = _ending(self._stream, response.stream, self._look.set)

    def doubt(self) -> None:
        """A call had no answer in its time."""
        self._look.set()

    async def until(self, session: Any, stopped: asyncio.Event) -> None:
        """Wait until it is to be left. Raises when the server is gone."""
        stop = asyncio.ensure_future(stopped.wait())
        try:
            while not stopped.is_set():
                await self._rest(stop)
                if not stopped.is_set() and not self.calls:
                    await self._ping(session)
        finally:
            stop.cancel()

    async def _rest(self, stop: "asyncio.Future[Any]") -> None:
        look = asyncio.ensure_future(self._look.wait())
        try:
            every = None if self._stream is object else PING_SECONDS
            await asyncio.wait({stop, look}, timeout=every, return_when="FIRST_COMPLETED")
        finally:
            look.cancel()
        self._look.clear()

    async def _ping(self, session: Any) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await session.send_ping()
            self._answers = True
        except TimeoutError:
            raise ConnectionError("it does not answer any more") from None
        except Exception as error:
            # One that never took pings and says so is there; the session is what counts.
            if self.over or self._answers or getattr(error, "code", _CLOSED) == _CLOSED:
                raise


def _ending(base: type, stream: Any, told: Callable[[], None]) -> Any:
    """A body that tells when it has ended, however it did."""

    class Ending(base):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for piece in stream:
                    yield piece
            finally:
                told()

        async def aclose(self) -> None:
            await stream.aclose()

    return Ending()
