"""Which error number and data a fault gets on this wire."""

from typing import Any

from dragoman.engine.faults import Fault
from dragoman.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

CANCELLED = -32800
UNSUPPORTED_VERSION = -32022
AUTH_REQUIRED = -32000

# The protocol document's numbers: an unknown session is -32000, a busy one -32002.
DOCUMENT: dict[str, int] = {
    "unknown_session": -32000,
    "limit": -32001,
    "busy": -32002,
    "goes_on": -32002,
    "bad_input": INVALID_PARAMS,
    "unknown_agent": INVALID_PARAMS,
    "unknown_model": INVALID_PARAMS,
    "wrong_state": INVALID_PARAMS,
    "already_active": INVALID_PARAMS,
    "unknown_approval": INVALID_PARAMS,
    "unknown_rule": INVALID_PARAMS,
    "changed": INVALID_PARAMS,
    "unsupported_version": UNSUPPORTED_VERSION,
    "logged_out": AUTH_REQUIRED,
    "out_of_turn": INVALID_REQUEST,
}
# Today's specification keeps -32000 for "sign in first" and -32002 for "no such thing".
ECOSYSTEM: dict[str, int] = DOCUMENT | {
    "unknown_session": -32002,
    "limit": INTERNAL_ERROR,
    "busy": INVALID_PARAMS,
    "goes_on": INVALID_PARAMS,
}

_NAMES = {
    "unknown_session": "SESSION_NOT_FOUND",
    "limit": "SESSION_LIMIT_REACHED",
    "busy": "SESSION_BUSY",
    "goes_on": "SESSION_GOES_ON",
    "bad_input": "INVALID_PARAMS",
    "in_use": "SESSION_IN_USE",
}


class AlreadyActive(Fault):
    """The session is attached to this connection already."""

    code = "already_active"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Session already active: {session_id}.", "Call session/close first.",
            session=session_id,
        )  # fmt: skip


class UnsupportedVersion(Fault):
    """The client asks for a version that was never spoken."""

    code = "unsupported_version"


class LoggedOut(Fault):
    """Somebody logged out; nothing is begun before somebody logs in."""

    code = "logged_out"


class OutOfTurn(Fault):
    """A request that may not come now, or not in this form."""

    code = "out_of_turn"


class TurnFailed(Fault):
    """The turn ended with an error."""

    code = "turn_failed"


def text_of(fault: Fault) -> str:
    """What a client is told: the protocol's own words where it has some."""
    if fault.code == "busy" and (running := fault.data.get("running")):
        return f"Session already has an active prompt turn: {running}"
    return fault.message


def data_of(fault: Fault) -> dict[str, Any]:
    """What a program may read beside the message."""
    if isinstance(fault, UnsupportedVersion):
        return dict(fault.data)
    data: dict[str, Any] = {"code": _NAMES.get(fault.code, fault.code.upper())}
    if session_id := fault.data.get("session"):
        data["sessionId"] = str(session_id)
    if fault.hint:
        data["hint"] = fault.hint
    return data


def line_of(text: str) -> str:
    """An error's text as one line that is not empty."""
    return " ".join(text.split()) or "Something went wrong."
