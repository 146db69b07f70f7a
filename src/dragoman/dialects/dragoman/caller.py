"""A connection as our own methods need it, whichever dialect carries them."""

from collections.abc import Callable
from typing import Any, Protocol

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.wire.link import Link


class Caller(Protocol):
    """Whose methods these are; `held.watches` are its `dragoman/watch`es by id."""

    door: Door
    link: Link
    who: Who
    desk: Any
    gone: bool
    untap: Callable[[], None] | None

    @property
    def held(self) -> Any: ...

    def is_paused(self) -> bool: ...

    def counter(self) -> int: ...
