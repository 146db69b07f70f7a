"""How many questions wait for a human, in memory or not.

Events are said without waiting for the store, so what waits in sessions that are not in memory (let
go, or another process's) is known from the last look: at a subscription, and again when asked.
"""

import asyncio

from dragoman.engine.door import Door
from dragoman.engine.faults import Fault

from .approvals import kind_of

_LOOK_SECONDS = 1.0


class Waiting:
    """Counts open questions by kind."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._kept: list[tuple[str, str]] = []  # session and kind of what the store had open
        self._looked = -_LOOK_SECONDS

    def count(self, kind: str) -> int:
        """How many of this kind wait at this moment."""
        live = self._door.lives()
        ids = {session.id for session in live}
        if self._due():
            self._door.spawn(self.look())
        here = sum(kind_of(ask) == kind for session in live for ask in session.asks.values())
        return here + sum(of == kind and session not in ids for session, of in self._kept)

    async def look(self) -> None:
        """Read what the store has open, unless that was just done."""
        if not self._due():
            return
        self._looked = asyncio.get_running_loop().time()
        try:
            rows = await self._door.asks(pending=True)
        except Fault:
            return  # the store's trouble is told elsewhere; the next look is in a second
        self._kept = [(row.ask.session, kind_of(row.ask)) for row in rows]

    def _due(self) -> bool:
        return asyncio.get_running_loop().time() - self._looked >= _LOOK_SECONDS
