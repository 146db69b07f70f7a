"""The configuration as plain data, its secrets hidden."""

from typing import Any

import msgspec

from dragoman.observe.redact import HIDDEN
from dragoman.observe.redact import redact as redact_plain

from .model import Settings


def plain(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, as it is: may hold secrets."""
    made = msgspec.to_builtins(settings)
    return {name: value for name, value in made.items() if value != {}}


def redact(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, with keys, tokens, headers and variables hidden."""
    hidden = _without_variables(redact_plain(plain(settings)))
    assert isinstance(hidden, dict)
    return hidden


def _without_variables(value: Any) -> Any:
    """What programs get by their environment is often a secret, whatever it is called."""
    if isinstance(value, dict):
        return {
            name: dict.fromkeys(below, HIDDEN)
            if name == "env" and isinstance(below, dict)
            else _without_variables(below)
            for name, below in value.items()
        }
    return [_without_variables(one) for one in value] if isinstance(value, list) else value
