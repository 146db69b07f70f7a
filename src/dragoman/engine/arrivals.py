"""Who comes first goes first, by key, also when what they wait for ends between two of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Arrivals:
    """One line of waiters per key; a key that nobody waits at costs nothing."""

    def __init__(self) -> None:
        self.lines: dict[str, tuple[asyncio.Lock, list[None]]] = {}

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait behind all who came before."""
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = asyncio.Lock(), []
        lock, inside = line
        inside.append(None)
        try:
            async with lock:  # asyncio's is fair: who asks while others wait is the last
                yield
        finally:
            inside.pop()
            if not inside:
                del self.lines[key]

    async def passed(self, key: str) -> None:
        """Wait until all who came before had their turn."""
        if key in self.lines:
            async with self.turn(key):
                return
