"""Events of one session, or of all, as an asynchronous iterator."""

from functools import cache
from typing import Any, Self

import msgspec

from dragoman.engine.events import Event

from .answers import Told, Watching
from .problems import ConnectionGone
from .wire import AnyLine, Wire


@cache
def _decoder() -> msgspec.json.Decoder[Told]:
    return msgspec.json.Decoder(Told)


def event_of(message: AnyLine) -> Event:
    """The event that a notification carries."""
    return _decoder().decode(message.params).plain()


class Stream:
    """What happens from now on (or from `since` on), over a connection of its own.

    `place` is where the newest kept event stands; a client that comes back gives it as `since` and
    misses nothing.
    """

    def __init__(self, wire: Wire, params: dict[str, Any]) -> None:
        self._wire = wire
        self._params = params
        self._by_gseq = "session_id" not in params
        self._open = False
        self.place: int = params.get("since") or 0
        self.last = 0  # the newest kept event when the watch began

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def open(self) -> None:
        """Begin; everything after this is seen."""
        if self._open:
            return
        self._open = True
        await self._wire.open()
        raw = await self._wire.send("dragoman/watch", self._params)
        told = msgspec.json.decode(raw, type=Watching)
        self.place, self.last = told.last, told.newest

    async def aclose(self) -> None:
        await self._wire.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """The next event. The iteration ends when the host ends the connection."""
        await self.open()
        while True:
            try:
                message = await self._wire.told()
            except ConnectionGone:
                raise StopAsyncIteration from None
            if message is not None and message.method == "dragoman/event":
                event = event_of(message)
                if event.seq:
                    self.place = event.gseq if self._by_gseq else event.seq
                return event
