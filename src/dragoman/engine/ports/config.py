"""The running configuration, as dialects see it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class ConfigPort(Protocol):
    """The running configuration, for dialects that show or change it. Secrets are redacted."""

    def get(self, path: str = "") -> Any: ...

    def clear(self, path: tuple[str, ...]) -> Any:
        """The value at a path as it is, secrets included: for the one whose they are."""
        ...

    def watch(
        self, callback: Callable[[str, Any, Any], None], *, clear: bool = False
    ) -> Callable[[], None]:
        """Call back with (path, old, new) on each change; returns how to stop.

        With `clear`, secrets are not hidden, and their changes are told.
        """
        ...

    async def set(self, path: str, value: object) -> None:
        """Write a value and use it at once; None takes it out. Raises BadInput."""
        ...

    async def add_entry(self, table: str, key: str) -> None:
        """Add an empty entry to a table that holds entries by name. Raises BadInput."""
        ...

    async def remove_entry(self, table: str, key: str) -> None: ...

    async def rename_entry(self, table: str, old: str, new: str) -> Sequence[str]:
        """Rename an entry and what refers to it; tells what else was changed."""
        ...

    def reload(self) -> object: ...
