"""The OpenClawOS kernel protocol: apps offer capabilities, hear hooks and bring messages."""

from dragoman import TYPE_CHECKING
from dragoman.dialects.descriptor import Dialect, has_type, later

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .desk import Desk
    from .shapes import Settings

__all__ = ["DIALECT", "Desk", "Settings"]
__getattr__ = later(__name__, Desk="desk", Settings="shapes")
_TYPES = frozenset({"request", "response", "event", "stream"})


def first_line(message: "Mapping[str, Any]") -> int:
    """One of its types, with a method or the id of a request."""
    if not has_type(message) or message["type"] not in _TYPES:
        return 0
    return 3 if "method" in message or "requestId" in message else 0


def refusal(text: str) -> "dict[str, Any]":
    error = {"code": "TOO_MANY_CLIENTS", "message": text}
    return {"type": "response", "success": False, "error": error}


def environment(socket: str, id: str) -> "dict[str, str]":
    """What an app that we start is told of us."""
    names = ("OPENCLAWOS_KERNEL_SOCKET", "OPENCLAW_KERNEL_SOCKET")
    return {**dict.fromkeys(names, socket), "OPENCLAWOS_APP_ID": id}


DIALECT = Dialect(
    "openclawos",
    "the OpenClawOS kernel's protocol, for apps",
    desk="dragoman.dialects.openclawos.desk:Desk",
    socket="kernel.sock",
    env=("DRAGOMAN_KERNEL_SOCKET", "OPENCLAWOS_KERNEL_SOCKET"),
    # The document says the first, its SDK looks at the second only.
    native="$XDG_RUNTIME_DIR/openclawos/kernel.sock:/tmp/openclawos/kernel.sock",
    settings="openclawos",
    first_line=first_line,
    refusal=refusal,
    answers=False,
    programs=environment,
    doc="docs/protocols/openclawos.md",
)
