"""What clients may be shown of the process that they talk to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from .ports.schedules import Schedules


class Taps(Protocol):
    """Where the wire lines of all connections may be followed."""

    def follow(
        self, own: Any, told: Callable[[dict[str, Any]], None]
    ) -> Callable[[], None]: ...  # the result ends it


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


class Facts(msgspec.Struct):
    """Filled in while the process starts; what is None or empty this process does not have."""

    version: str = ""
    started_at: int | None = None  # milliseconds
    config_dir: str = ""
    config_file: str = ""
    config_kind: str = "default"
    data_dir: str = ""
    addresses: Mapping[str, str] = {}  # where each dialect listens
    gateway: str | None = None  # its address
    notices: Sequence[str] = ()
    sandbox: Callable[[], str] | None = None
    mcp: Callable[[], Sequence[dict[str, Any]]] = tuple
    budget: Callable[[str], Mapping[str, float]] | None = None
    without_key: Callable[[], Sequence[str]] = tuple  # providers
    built_in: Mapping[str, frozenset[str]] = {}  # names of tools and providers that are taken
    kept_apps: Callable[[], list[dict[str, Any]]] = list  # those that are started here
    restart_app: Callable[[str], Awaitable[bool]] | None = None
    connected_apps: Callable[[], list[dict[str, Any]]] = list
    memory: Callable[[str], Any] | None = None  # of an agent
    logs: object | None = None  # an `observe.feed.Feed`
    taps: Taps | None = None
    explain: Callable[[str], list[Any]] | None = None
    check_config: Callable[[], str] | None = None  # what is wrong with the file
    doctor: Callable[[], Awaitable[list[Any]]] | None = None
    writings: Writings | None = None
    sections: Callable[[], Sequence[tuple[str, str, bool]]] | None = None  # of the configuration
    schedules: Callable[[], Awaitable[Schedules]] | None = None
    pairing: Callable[..., Awaitable[dict[str, Any]]] | None = None
    logged_in: Callable[[], Sequence[str]] | None = None  # providers whose key login kept
    log_out: Callable[[], Awaitable[None]] | None = None
