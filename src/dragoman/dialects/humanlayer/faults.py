"""Failures as this protocol tells them: bad params -32602, everything else -32603."""

from typing import Any

from msgspec import UNSET

from dragoman.engine.faults import Fault
from dragoman.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS


class Wrong(Exception):
    """A params member is missing or not allowed: -32602 with this text."""

    code = INVALID_PARAMS

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class Failed(Wrong):
    """The request was sound and could not be done: -32603 with this text."""

    code = INTERNAL_ERROR


# Faults that say the client asked for something impossible in itself.
_PARAMS = frozenset({"bad_input", "unknown_model", "unknown_agent"})


def told(error: BaseException) -> tuple[int, str, Any]:
    """Code, message and data of the error response."""
    if isinstance(error, Wrong):
        return error.code, error.message, details(error.details)
    if isinstance(error, Fault):
        code = INVALID_PARAMS if error.code in _PARAMS else INTERNAL_ERROR
        return code, error.message, details(error.hint)
    return INTERNAL_ERROR, "Internal error", details(f"{type(error).__name__}: {error}")


def details(text: str) -> Any:
    return {"details": text} if text else UNSET


def required(**members: str | None) -> None:
    """Raise Wrong for the first of these that is missing or empty."""
    for name, value in members.items():
        if not value:
            raise Wrong(f"{name} is required")


def not_found(session_id: str) -> str:
    return f"session not found: {session_id}"
