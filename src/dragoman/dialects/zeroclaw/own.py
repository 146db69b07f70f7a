"""What this protocol keeps with a session."""

from typing import Any

from dragoman.engine.traits import Trait


class Own(Trait, frozen=True):
    NAME = "zeroclaw"

    chat_mode: str = "chat"
    closed: bool = False  # `session/close` ended it
    killed_at: int = 0
    overrides: dict[str, Any] = {}
