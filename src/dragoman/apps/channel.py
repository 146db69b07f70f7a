"""Channels: the two directions between the kernel and some place where people write."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from .app import App


class Message(msgspec.Struct, frozen=True):
    """A message to send out. `metadata` is what came in with the conversation."""

    channel: str
    target: str
    text: str
    metadata: dict[str, Any] = {}
    session: str = ""


Deliver = Callable[[Message], Awaitable[None]]


class Channel:
    """One channel of an app."""

    def __init__(self, app: "App", name: str) -> None:
        self.name = name
        self.delivers: Deliver | None = None
        self._app = app

    def deliver(self, function: Deliver) -> Deliver:
        """Decorate the function that sends a message out."""
        self.delivers = function
        return function

    async def received(
        self, conversation: str, text: str, sender: str = "", **metadata: Any
    ) -> str:
        """Hand in what somebody wrote; returns the id of the run it began."""
        given = {"channelId": self.name, "from": sender or conversation, **metadata}
        return await self._app.queue(f"{self.name}:{conversation}", text, given)
