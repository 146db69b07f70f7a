"""What clients write as text: numbers, and the parts of a path into values."""

from collections.abc import Iterable

_DIGITS = 18  # nothing here counts further


def counted(text: str) -> int | None:
    """The number that stands there in plain digits; None when something else does."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None


def found_at(value: object, parts: Iterable[str]) -> object:
    """What is at a path: names into tables, numbers into lists. None when there is nothing."""
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list | tuple) and (place := counted(part)) is not None:
            value = value[place] if place < len(value) else None
        else:
            return None
    return value
