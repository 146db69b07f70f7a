"""MCP servers that clients lend: the way to each, by a name that only we know.

What a session is given must be plain data; a way through a client's connection is none.
"""

from collections.abc import Callable
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakValueDictionary


class Channel(Protocol):
    """The way to one lent server."""

    async def ask(self, id: str, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        """Exactly one of `result` and `error`. Raises when the client is gone."""
        ...

    def on_told(self, told: Callable[[str, dict[str, Any] | None], None] | None) -> None:
        """Who is told what the server says beside its answers."""
        ...


_channels: WeakValueDictionary[str, Channel] = WeakValueDictionary()


def keep(channel: Channel) -> str:
    """A name for a way; it is forgotten with the way itself."""
    name = uuid4().hex
    _channels[name] = channel
    return name


def find(name: str) -> Channel | None:
    return _channels.get(name)
