"""The running configuration, as dialects see it."""

from collections.abc import Callable
from typing import Any, Protocol


class ConfigPort(Protocol):
    """The running configuration, for dialects that show or change it. Secrets are redacted."""

    def get(self, path: str = "") -> Any: ...

    def watch(self, callback: Callable[[str, Any, Any], None]) -> Callable[[], None]:
        """Call back with (path, old, new) on each change; returns how to stop."""
        ...

    def set(self, path: str, value: Any) -> None: ...

    def unset(self, path: str) -> None: ...

    def reload(self) -> Any: ...
