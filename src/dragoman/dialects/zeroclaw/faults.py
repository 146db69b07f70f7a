"""The numbers of errors, and which fault gets which."""

from typing import TypeVar

from dragoman.engine.faults import Fault
from dragoman.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS

T = TypeVar("T")
SESSION_NOT_FOUND = -32000
SESSION_LIMIT = -32001
SESSION_BUSY = -32002
SESSION_NOT_OWNED = -32003
AUTH_REQUIRED = -32010
VERSION_MISMATCH = -32011
FS_NOT_FOUND = 4001
FS_DENIED = 4002
FS_BAD_PATH = 4003

_CODES = {
    "bad_input": INVALID_PARAMS,
    "unknown_session": SESSION_NOT_FOUND,
    "nothing_running": SESSION_NOT_FOUND,
    "unknown_agent": INTERNAL_ERROR,
    "unknown_model": INVALID_PARAMS,
    "unknown_approval": INVALID_PARAMS,
    "already_settled": INVALID_PARAMS,
    "unknown_rule": INVALID_PARAMS,
    "changed": INVALID_PARAMS,
    "busy": SESSION_BUSY,
    "goes_on": SESSION_BUSY,
    "in_use": SESSION_BUSY,
    "limit": SESSION_LIMIT,
    "wrong_state": INVALID_PARAMS,
}


class Refusal(Exception):
    """An error with its own number."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def available(given: T | None, what: str) -> T:
    """What the host was made with. Raises Refusal where it has none."""
    if given is None:
        raise Refusal(INTERNAL_ERROR, f"{what} not available")
    return given


def code_of(fault: Fault) -> int:
    """The number of a fault; what has none of its own is internal."""
    return _CODES.get(fault.code, INTERNAL_ERROR)


def message_of(fault: Fault) -> str:
    """What a client is told of a fault: the protocol's own words where it has some."""
    if fault.code == "unknown_session":
        return "Session not found"
    text = bare_message(fault)
    if text == fault.message or fault.code == "busy" and "gave_up" not in fault.data:
        return str(Fault(text, fault.hint))
    return text


def bare_message(problem: Fault | Refusal) -> str:
    """The same without a hint."""
    if not isinstance(problem, Fault):
        return problem.message
    if problem.code == "nothing_running":
        return "No active turn for this session"
    waiting, gave_up = problem.data.get("waiting"), problem.data.get("gave_up")
    if problem.code == "busy" and waiting:
        return f"Session busy: queue full ({waiting} pending requests)"
    if problem.code == "busy" and gave_up:
        return f"Session busy: Timed out waiting for session {gave_up}"
    return problem.message
