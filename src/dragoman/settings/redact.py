"""The configuration as plain data, its secrets hidden."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.observe.redact import HIDDEN as HIDDEN
from dragoman.observe.redact import redact as redact_plain

from .model import Settings
from .shape import Key, is_named


def plain(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, as it is: may hold secrets."""
    made = msgspec.to_builtins(settings)
    return {name: value for name, value in made.items() if value != {}}


def redact(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, with keys, tokens, headers and variables hidden."""
    hidden = redact_plain(plain(settings))
    assert isinstance(hidden, dict)
    return hidden


def misplaced(key: Key, value: object) -> object:
    """A value that does not fit its key, for an error about it.

    A secret is known by its name. What has none of ours (a command line in one text, words of a
    list, a table in the place of one) is shown by its shape alone.
    """
    hidden = redact_plain(value, key.path[-1])
    return hidden if is_named(key.kind, value) else _masked(hidden)


def _masked(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _masked(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return HIDDEN if isinstance(value, str) and value else value
