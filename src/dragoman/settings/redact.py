"""The configuration as plain data, its secrets hidden."""

from typing import Any

import msgspec

from dragoman.observe.redact import HIDDEN as HIDDEN
from dragoman.observe.redact import redact as redact_plain

from .model import Settings


def plain(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, as it is: may hold secrets."""
    made = msgspec.to_builtins(settings)
    return {name: value for name, value in made.items() if value != {}}


def redact(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, with keys, tokens, headers and variables hidden."""
    hidden = redact_plain(plain(settings))
    assert isinstance(hidden, dict)
    return hidden
