"""The zeroclaw protocol: JSON-RPC for terminals and scripts."""

from dragoman import TYPE_CHECKING
from dragoman.dialects.descriptor import Dialect, later, method_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .desk import Desk, Settings

__all__ = ["DIALECT", "Desk", "Settings"]
__getattr__ = later(__name__, Desk="desk", Settings="desk")
_OWN = frozenset({"protocol_version", "tui_id", "tui_sig", "env"})


def first_line(message: "Mapping[str, Any]") -> int:
    """`initialize` with its own names, or with `protocolVersion` and nothing else."""
    params = message.get("params")
    if method_of(message) != "initialize" or not isinstance(params, dict):
        return 0
    return 3 if params.keys() & _OWN or params.keys() == {"protocolVersion"} else 0


DIALECT = Dialect(
    "zeroclaw",
    "zeroclaw RPC, for terminals and scripts",
    desk="dragoman.dialects.zeroclaw.desk:Desk",
    socket="daemon.sock",
    env=("DRAGOMAN_SOCKET", "ZEROCLAW_SOCKET"),
    native="~/.zeroclaw/data/daemon.sock",
    websocket=("/rpc /", "zeroclaw.rpc.v1"),
    settings="zeroclaw",
    first_line=first_line,
    doc="docs/protocols/zeroclaw.md",
)
