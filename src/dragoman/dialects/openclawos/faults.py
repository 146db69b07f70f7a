"""The fourteen error codes, and which of the engine's faults is which."""

from typing import Any

from dragoman.engine.faults import Fault

CODES = frozenset(
    "UNKNOWN_ERROR INVALID_REQUEST METHOD_NOT_FOUND INVALID_PARAMS INTERNAL_ERROR UNAUTHORIZED "
    "FORBIDDEN NOT_FOUND CONFLICT TIMEOUT APP_NOT_REGISTERED CAPABILITY_DENIED "
    "HOOK_NOT_SUBSCRIBED CONNECTION_CLOSED".split()
)

_OF_FAULTS = {
    "bad_input": "INVALID_PARAMS",
    "unknown_session": "NOT_FOUND",
    "unknown_agent": "NOT_FOUND",
    "unknown_model": "NOT_FOUND",
    "unknown_approval": "NOT_FOUND",
    "already_settled": "CONFLICT",
    "busy": "CONFLICT",
    "goes_on": "CONFLICT",
    "nothing_running": "CONFLICT",
    "limit": "CONFLICT",
    "wrong_state": "CONFLICT",
    "in_use": "CONFLICT",
    "refused": "FORBIDDEN",
}


class Wrong(Fault):
    """A failure that has its code in this protocol already."""

    code = "app_failed"

    def __init__(self, wire: str, message: str, details: object = None) -> None:
        super().__init__(message)
        self.wire = wire
        self.details = details


def error_of(fault: Fault) -> dict[str, Any]:
    """The `error` of a response."""
    if isinstance(fault, Wrong):
        made: dict[str, Any] = {"code": fault.wire, "message": fault.message}
        if fault.details is not None:
            made["details"] = fault.details
        return made
    return {"code": _OF_FAULTS.get(fault.code, "INTERNAL_ERROR"), "message": str(fault)}


def reported(error: object) -> Wrong:
    """What an app says went wrong: `{"message", "code"?, "details"?}` or a text."""
    if not isinstance(error, dict):
        return Wrong("UNKNOWN_ERROR", str(error) if error else "Unknown error")
    code = error.get("code")
    message = error.get("message")
    return Wrong(
        code if isinstance(code, str) and code in CODES else "UNKNOWN_ERROR",
        message if isinstance(message, str) and message else "Unknown error",
        error.get("details"),
    )
