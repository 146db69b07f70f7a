"""authenticate, logout, auth/status; auth/login and auth/logout of version 2.

A key is never told over the wire: `dragoman login` takes it in a terminal. What clients say here is
only that somebody has done that, or wants it undone.
"""

from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput

from ..faults import LoggedOut
from ..shapes import Authenticate, Nothing

if TYPE_CHECKING:
    from ..hear import AcpHearer


def authenticate(conn: "AcpHearer", params: Authenticate) -> dict[str, Any]:
    """Look whether somebody has logged in."""
    if params.method_id != "login":
        raise BadInput(
            f"Unknown authentication method: {params.method_id}",
            "Use one of authMethods, or none: without them no authentication is needed.",
        )
    if conn.desk.is_logged_out():
        raise LoggedOut("Nobody has logged in", "Run in a terminal: dragoman login")
    return {}


async def logout(conn: "AcpHearer", params: Nothing) -> dict[str, Any]:
    """Forget the key that `dragoman login` kept; sessions that are open go on."""
    forget = conn.door.facts.log_out
    if forget is not None:
        await forget()
    conn.desk.logged_out = True
    return {}


def status(conn: "AcpHearer", params: Nothing) -> dict[str, Any]:
    """Who pays; without side effects."""
    if conn.desk.is_logged_out():
        return {"state": "unauthenticated", "accounts": []}
    found = conn.desk.accounts()
    if not found:
        return {"state": "not_required", "accounts": []}
    return {"state": "authenticated", "accounts": [{"label": name} for name in found]}
