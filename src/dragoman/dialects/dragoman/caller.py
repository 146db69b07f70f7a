"""A connection as our own methods need it, whichever dialect carries them."""

from collections.abc import Callable
from typing import Protocol

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.hub import Watch
from dragoman.engine.view import SessionView
from dragoman.wire.link import Link


class Queueing(Protocol):
    """What the carrying dialect is told of prompts that wait."""

    @property
    def queue(self) -> int: ...


class Carrier(Protocol):
    """What that dialect keeps for the whole process."""

    @property
    def settings(self) -> Queueing: ...

    async def state(self, session_id: str) -> SessionView: ...


class Watching(Protocol):
    """What one connection follows."""

    watches: dict[str, Watch]  # by id
    counted: int  # the numbers that were given to them
    untap: Callable[[], None] | None  # ends its `dragoman/tap`


class Caller(Protocol):
    """Whose methods these are."""

    door: Door
    link: Link
    gone: bool

    @property
    def who(self) -> Who: ...

    @who.setter
    def who(self, who: Who) -> None: ...

    @property
    def desk(self) -> Carrier: ...

    @property
    def held(self) -> Watching: ...

    def is_paused(self) -> bool: ...
