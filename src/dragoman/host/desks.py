"""The one place where dialects are registered.

A desk is what a dialect keeps for the whole process; it makes a hearer for each connection.
"""

from importlib import import_module
from typing import Any

from dragoman.engine.door import Door
from dragoman.settings.model import Settings
from dragoman.wire.link import Opener

# name -> (package, section of the settings that it is given)
DIALECTS: dict[str, tuple[str, str]] = {
    "zeroclaw": ("dragoman.dialects.zeroclaw", "zeroclaw"),
    "humanlayer": ("dragoman.dialects.humanlayer", "humanlayer"),
    "openclawos": ("dragoman.dialects.openclawos", "openclawos"),
    "acp": ("dragoman.dialects.acp", "acp"),
    "zot": ("dragoman.dialects.zot", ""),
}


class Desks:
    """The desks of one process, made when they are first needed."""

    def __init__(self, door: Door, settings: Settings) -> None:
        self._door = door
        self._settings = settings
        self._made: dict[str, Any] = {}

    def desk(self, name: str) -> Any:
        found = self._made.get(name)
        if found is None:
            package, section = DIALECTS[name]
            given = getattr(self._settings, section) if section else None
            found = self._made[name] = import_module(package).Desk(self._door, given)
        return found

    def opener(self, name: str) -> Opener:
        """What a listener calls for each new connection."""
        made = self._made
        return lambda link: (made.get(name) or self.desk(name)).hearer(link)

    def openers(self) -> dict[str, Opener]:
        return {name: self.opener(name) for name in DIALECTS}

    def apply(self, old: Settings, new: Settings) -> None:
        """Tell desks that are in use about a changed configuration."""
        self._settings = new
        for name, desk in self._made.items():
            section = DIALECTS[name][1]
            if section and getattr(old, section) != getattr(new, section):
                desk.settings = getattr(new, section)

    async def close(self) -> None:
        for desk in self._made.values():
            close = getattr(desk, "close", None)
            if close is not None and (ending := close()) is not None:
                await ending
