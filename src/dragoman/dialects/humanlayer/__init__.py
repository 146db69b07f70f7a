"""The protocol of the HumanLayer daemon: sessions, approvals, subscriptions."""

from dragoman import TYPE_CHECKING
from dragoman.dialects.descriptor import Dialect, RestPlace, later, method_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .desk import Desk, Settings

__all__ = ["DIALECT", "Desk", "Settings"]
__getattr__ = later(__name__, Desk="desk", Settings="desk")
METHODS = frozenset(
    "health launchSession listSessions getConversation getSessionState continueSession "
    "interruptSession fetchApprovals sendDecision Subscribe createApproval getApproval "
    "getSessionLeaves getSessionSnapshots updateSessionSettings updateSessionTitle "
    "getRecentPaths archiveSession bulkArchiveSessions".split()
)


def first_line(message: "Mapping[str, Any]") -> int:
    """One of its own method names."""
    return 3 if method_of(message) in METHODS else 0


DIALECT = Dialect(
    "humanlayer",
    "the HumanLayer daemon's protocol, for approvers",
    desk="dragoman.dialects.humanlayer.desk:Desk",
    socket="humanlayer.sock",
    env=("DRAGOMAN_HUMANLAYER_SOCKET", "HUMANLAYER_DAEMON_SOCKET"),
    native="~/.humanlayer/daemon.sock",
    rest=RestPlace(
        "/api/v1",
        port=7777,
        setting="http_port",
        origins=("tauri://localhost", "http://tauri.localhost", "https://tauri.localhost"),
    ),
    settings="humanlayer",
    first_line=first_line,
    doc="docs/protocols/humanlayer.md",
)
