"""The Agent Client Protocol, version 1, and the family of clients that speak its older form."""

from dragoman import TYPE_CHECKING
from dragoman.dialects.descriptor import Dialect, Streams, later, method_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .desk import Desk
    from .shapes import Settings

__all__ = ["DIALECT", "Desk", "Settings"]
__getattr__ = later(__name__, Desk="desk", Settings="shapes")
_METHODS = frozenset({"authenticate", "logout", "$/cancel_request"})
_OF_SESSIONS = [
    f"session/{name}"
    for name in "cancel close delete fork load prompt resume set_config_option set_mode".split()
]


def first_line(message: "Mapping[str, Any]") -> int:
    """`initialize` unless it is surely another's, and the methods of sessions and extensions."""
    method = method_of(message)
    if method == "initialize" or method in _METHODS or method.startswith(("session/", "_")):
        return 2
    return 0


DIALECT = Dialect(
    "acp",
    "the Agent Client Protocol, for editors",
    desk="dragoman.dialects.acp.desk:Desk",
    socket="acp.sock",
    env=("DRAGOMAN_ACP_SOCKET",),
    websocket=("/acp", "zeroclaw.acp.v1"),
    streams=Streams(
        "Acp",
        of_sessions=_OF_SESSIONS,
        replays=("session/load",),
        child="subagent_update",
    ),
    settings="acp",
    first_line=first_line,
    answers=False,  # those that show forms are looked at one by one
    stdio="dragoman acp",
    remembers=False,  # coding sessions
    doc="docs/protocols/acp.md",
)
