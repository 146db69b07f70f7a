"""The zot protocol: newline-delimited JSON commands, responses and events."""

from dragoman import TYPE_CHECKING
from dragoman.dialects.descriptor import Dialect, has_type, later

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .desk import Desk, Settings

__all__ = ["DIALECT", "Desk", "Settings"]
__getattr__ = later(__name__, Desk="desk", Settings="desk")


def first_line(message: "Mapping[str, Any]") -> int:
    """Whatever has a `type` and is nobody else's."""
    return 1 if has_type(message) else 0


def refusal(text: str) -> "dict[str, Any]":
    return {"command": "", "error": text, "success": False, "type": "response"}


DIALECT = Dialect(
    "zot",
    "zot RPC, for scripts",
    desk="dragoman.dialects.zot.desk:Desk",
    first_line=first_line,
    refusal=refusal,
    answers=False,
    stdio="dragoman rpc",
    doc="docs/protocols/zot.md",
)
