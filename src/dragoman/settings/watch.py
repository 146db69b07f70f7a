"""Notices that config.toml changed, and says what is different."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from .model import Settings
from .shape import Path

Signature = tuple[int, int, int] | None


class KeyChange(NamedTuple):
    """One key whose value is not the same any more; None where it is not there."""

    path: Path
    old: Any
    new: Any


def diff(old: Settings, new: Settings) -> list[KeyChange]:
    """Every key that differs, in the order of the sections."""
    found: list[KeyChange] = []
    _compare((), old, new, found)
    return found


def _compare(path: Path, old: Any, new: Any, found: list[KeyChange]) -> None:
    if old == new:
        return
    if isinstance(old, msgspec.Struct) and type(old) is type(new):
        for name in old.__struct_fields__:
            _compare((*path, name), getattr(old, name), getattr(new, name), found)
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            _compare((*path, name), old.get(name), new.get(name), found)
    else:
        found.append(KeyChange(path, old, new))


class Watch:
    """Calls `changed` when the file's signature is another one, or when it is poked (SIGHUP)."""

    __slots__ = ("_changed", "_interval", "_path", "_poked", "_seen")

    def __init__(
        self, path: str, changed: Callable[[], Awaitable[None]], interval: float = 1.0
    ) -> None:
        self._path = path
        self._changed = changed
        self._interval = interval
        self._poked = asyncio.Event()
        self._seen = self.signature()

    def signature(self) -> Signature:
        """Enough of the file's state to see a change; None when there is no file."""
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def poke(self) -> None:
        """Look now, and call `changed` even when the file is the same."""
        self._poked.set()

    async def run(self) -> None:
        """Watch until cancelled. What `changed` raises ends the watch."""
        while True:
            poked = await self._wait()
            now = self.signature()
            if poked or now != self._seen:
                self._seen = now
                await self._changed()

    async def _wait(self) -> bool:
        try:
            async with asyncio.timeout(self._interval):
                await self._poked.wait()
        except TimeoutError:
            return False
        self._poked.clear()
        return True
