"""The Agent Client Protocol, version 1, and the family of clients that speak its older form."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .desk import Desk
    from .shapes import Settings

__all__ = ["Desk", "Settings"]


def __getattr__(name: str) -> Any:
    """Import on first use: `hello` alone must be quick to reach."""
    if name == "Desk":
        from .desk import Desk

        return Desk
    if name == "Settings":
        from .shapes import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
