"""What the gateway needs of the host that it serves."""

from typing import Any, Protocol

from dragoman.dialects.descriptor import Dialect
from dragoman.engine.door import Door
from dragoman.settings.load import Loaded
from dragoman.settings.model import Settings
from dragoman.settings.places import Places
from dragoman.wire.link import Opener


class Config(Protocol):
    @property
    def loaded(self) -> Loaded: ...


class Descendants(Protocol):
    def refuses(self, pid: int | None) -> bool:
        """Whether this process is one that a tool started."""
        ...


class Composed(Protocol):
    """A host that is put together (`host/compose.py`)."""

    @property
    def door(self) -> Door: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def config(self) -> Config: ...

    @property
    def places(self) -> Places: ...

    @property
    def descendants(self) -> Descendants: ...


class Desks(Protocol):
    """The dialects that are spoken here (`host/desks.py`)."""

    def desk(self, name: str) -> Any: ...

    def opener(self, name: str) -> Opener: ...

    def websockets(self) -> dict[str, Dialect]: ...


class Guests(Protocol):
    """Connections are counted and bounded (`daemon/guests.py`)."""

    def counting(self, open: Opener, dialect: str = "") -> Opener: ...
