"""What the dialect keeps for the whole process: its settings, and the way to the engine."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from dragoman.engine.traits import Given
from dragoman.wire.link import Link

from .hear import ZotHearer

if TYPE_CHECKING:
    from dragoman.engine.door import Door

Provide = Callable[[], Awaitable["Door"]]


class Settings(msgspec.Struct, frozen=True):
    """What sessions of this dialect are made of when the client does not say."""

    token: str = ""  # "": no hello is needed
    agent: str = ""
    cwd: str = ""
    cwd_shown: str = ""  # how the client wrote it
    model: str = ""
    mode: str = ""
    reasoning: str = ""
    session: str = ""  # the session to begin with: an id, or "" for a new one when it is needed
    sole: bool = False  # nobody else can answer: questions after the end of input are denied
    keeps: bool = True  # sessions can be found again: clients are told their ids
    given: Given = Given()


class Desk:
    """Makes hearers. The engine may come later (`provide`): a ping needs none."""

    def __init__(
        self,
        door: "Door | None",
        settings: Settings | None = None,
        *,
        provide: Provide | None = None,
    ) -> None:
        self.door = door
        self.settings = settings or Settings()
        self.failure = ""  # why the process should end, and not well
        self._provide = provide

    def hearer(self, link: Link) -> ZotHearer:
        return ZotHearer(self, link)

    async def ready(self) -> "Door":
        """The door, made when it is first needed. Raises Fault."""
        if self.door is None:
            assert self._provide is not None
            self.door = await self._provide()
        return self.door
