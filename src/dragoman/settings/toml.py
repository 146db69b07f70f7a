"""TOML as the configuration's files hold it: read, or told in one way why not."""

import tomllib
from typing import Any

# Ours goes four deep, and what servers and programs are given hardly deeper.
_DEEP = 40


_PLAIN = (
    ("Invalid value (at end of document)", "The file ends in the middle of a value"),
    ("Invalid value", "This is no value; a text stands in quotes"),
    ("Cannot overwrite a value", "This key stands twice; leave one out"),
    ("Invalid statement", "Neither a [table] nor a key with = begins like this"),
)


class NotToml(ValueError):
    """Why a text is no TOML, or none that we read."""


def parse(text: str) -> dict[str, Any]:
    """What a text holds. Raises NotToml, whatever is wrong with it."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise NotToml("its values are nested too deeply") from None
    except ValueError as problem:  # also of numbers with too many digits, which are no TOML error
        raise NotToml(_plainly(str(problem))) from None
    if is_deep(found):
        raise NotToml(f"its values are nested more than {_DEEP} deep")
    return found


def _plainly(said: str) -> str:
    """What the reader says of the commonest slips, in words that say what to do."""
    for theirs, ours in _PLAIN:
        if theirs in said:
            return said.replace(theirs, ours)
    twice = said.partition("Cannot declare (")[2].partition(") twice")
    if twice[1]:
        name = ".".join(part.strip().strip("'\"") for part in twice[0].split(",") if part.strip())
        return f"[{name}] stands twice; put both together{twice[2]}"
    return said


def is_deep(found: Any) -> bool:
    """Whether values are nested deeper than we read; keys with many dots nest as they like."""
    level = [found] if isinstance(found, dict | list) else []
    for _ in range(_DEEP):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
