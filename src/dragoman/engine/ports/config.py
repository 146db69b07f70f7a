"""The running configuration, as dialects see it."""

from collections.abc import Callable
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

    def set(self, path: str, value: Any) -> None: ...

    def unset(self, path: str) -> None: ...

    def reload(self) -> Any: ...
