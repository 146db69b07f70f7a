"""What clients may be shown of the process that they talk to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from .faults import BadInput
from .ports.rows import DoctorRow, Explained, MemoryEntry, NodeRow
from .ports.schedules import Schedules


class Taps(Protocol):
    """Where the wire lines of all connections may be followed."""

    def follow(self, own: object, told: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Be told every line but those of `own`, a connection; the result ends it."""
        ...


class Pairing(Protocol):
    """Lets somebody in: a code, or a link that works once."""

    async def __call__(self, *, link: bool = False) -> dict[str, Any]: ...


class Writings(Protocol):
    """Files that people write for agents. Its methods block; they raise BadInput."""

    def about(self, alias: str) -> list[tuple[str, int | None]]: ...

    def read_about(self, alias: str, filename: str) -> str | None: ...

    def write_about(self, alias: str, filename: str, content: str) -> None: ...

    def templates(self) -> list[tuple[str, str]]: ...

    def skills(self) -> Sequence[str]: ...

    def read_skill(self, name: str) -> tuple[dict[str, str], str]: ...

    def write_skill(self, name: str, facts: dict[str, str], body: str) -> None: ...

    def delete_skill(self, name: str) -> None: ...


class Remembering(Protocol):
    """What one agent remembers. Its methods block."""

    def all(self, category: str = "", limit: int = 1_000) -> Sequence[MemoryEntry]: ...

    def recall(self, query: str, limit: int = 5) -> Sequence[MemoryEntry]: ...

    def get(self, key: str) -> MemoryEntry | None: ...

    def store(
        self, key: str, content: str, category: str = "note", session: str = ""
    ) -> MemoryEntry: ...

    def forget(self, key: str) -> bool: ...


class Facts(msgspec.Struct):
    """Filled in while the process starts; what is None or empty this process does not have."""

    version: str = ""
    started_at: int | None = None  # milliseconds
    began: float | None = None  # the same by a clock that nobody sets
    config_dir: str = ""
    config_file: str = ""
    config_kind: str = "default"
    data_dir: str = ""
    store_file: str = ""  # that sessions are kept in, if they are in a file
    flags: Sequence[str] = ()  # of the command line that hold, however they were asked for
    addresses: Mapping[str, str] = {}  # where each dialect listens
    gateway: str | None = None  # its address
    notices: Callable[[], Sequence[str]] = tuple  # that hold now
    sandbox: Callable[[], str] | None = None
    mcp: Callable[[], Sequence[dict[str, Any]]] = tuple
    budget: Callable[[str], Mapping[str, float]] | None = None
    without_key: Callable[[], Mapping[str, Sequence[str]]] = dict  # providers, and variables
    built_in: Mapping[str, frozenset[str]] = {}  # names of tools and providers that are taken
    kept_apps: Callable[[], list[dict[str, Any]]] = list  # those that are started here
    restart_app: Callable[[str], Awaitable[bool]] | None = None
    connected_apps: Callable[[], list[dict[str, Any]]] = list
    memory: Callable[[str], Remembering] | None = None  # of an agent
    logs: object | None = None  # an `observe.feed.Feed`
    taps: Taps | None = None
    explain: Callable[[str], Sequence[Explained]] | None = None
    check_config: Callable[[], str] | None = None  # what is wrong with the file
    doctor: Callable[[], Awaitable[Sequence[DoctorRow]]] | None = None
    writings: Writings | None = None
    sections: Callable[[], Sequence[tuple[str, str, bool]]] | None = None  # of the configuration
    schedules: Callable[[], Awaitable[Schedules]] | None = None
    fleet: Callable[[], Awaitable[Sequence[NodeRow]]] | None = None  # the nodes, where there is one
    pairing: Pairing | None = None
    logged_in: Callable[[], Sequence[str]] | None = None  # providers whose key login kept
    log_out: Callable[[], Awaitable[None]] | None = None

    async def timetable(self) -> Schedules:
        """The host's schedules. Raises BadInput where it does not live long enough for them."""
        if self.schedules is None:
            raise BadInput(
                "This host keeps no schedules.", "Use the daemon: dragoman daemon --background."
            )
        return await self.schedules()
