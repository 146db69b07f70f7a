"""Short words for scripts: `Scripted([say("hello"), call("read", path="a.txt"), "done"])`."""

from typing import Any

from dragoman.engine.content import Usage
from dragoman.providers.scripted import (
    Call,
    Fail,
    Hang,
    Part,
    Retry,
    Say,
    Scripted,
    StopReason,
    Think,
    Turn,
    Wait,
    load,
)

__all__ = [
    "Scripted",
    "Turn",
    "broken_call",
    "call",
    "call_with",
    "fail",
    "hang",
    "load",
    "retry",
    "say",
    "think",
    "turn",
    "wait",
]


def turn(*parts: Part | str, usage: Usage | None = None, stop: StopReason | None = None) -> Turn:
    """One answer of the model made of several parts."""
    return Turn(tuple(Say(part) if isinstance(part, str) else part for part in parts), usage, stop)


def say(text: str, deltas: int = 0, delay: float = 0.0) -> Say:
    return Say(text, deltas, delay)


def think(text: str, signature: str = "", deltas: int = 0, delay: float = 0.0) -> Think:
    return Think(text, signature, deltas, delay)


def call(name: str, /, **args: Any) -> Call:
    return Call(name, args)


def call_with(
    name: str, args: dict[str, Any], *, id: str = "", fragments: int = 1, delay: float = 0.0
) -> Call:
    """A call with its own id, or with arguments that come in fragments."""
    return Call(name, args, id, fragments, delay)


def broken_call(name: str, raw: str, *, id: str = "") -> Call:
    """A call whose arguments are this text, parsable or not."""
    return Call(name, {}, id, 1, 0.0, raw)


def wait(seconds: float) -> Wait:
    return Wait(seconds)


def retry(attempt: int = 1, delay: float = 0.0, reason: str = "scripted") -> Retry:
    return Retry(attempt, delay, reason)


def fail(
    kind: str = "server",
    message: str = "scripted failure",
    *,
    status: int | None = None,
    retry_after: float | None = None,
) -> Fail:
    return Fail(kind, message, status, retry_after)


def hang() -> Hang:
    return Hang()
