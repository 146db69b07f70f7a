"""TOML as the configuration's files hold it: read, or told in one way why not."""

import tomllib
from typing import Any

# Ours goes four deep, and what servers and programs are given hardly deeper.
_DEEP = 40


class NotToml(ValueError):
    """Why a text is no TOML, or none that we read."""


def parse(text: str) -> dict[str, Any]:
    """What a text holds. Raises NotToml, whatever is wrong with it."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise NotToml("its values are nested too deeply") from None
    except ValueError as problem:  # also of numbers with too many digits, which are no TOML error
        raise NotToml(str(problem)) from None
    if is_deep(found):
        raise NotToml(f"its values are nested more than {_DEEP} deep")
    return found


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
