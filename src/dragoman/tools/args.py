"""Arguments of a call: decoded into a struct, or a sentence about what is wrong with them."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from dragoman.engine.faults import BadInput

T = TypeVar("T")
_MISSING = r"missing required field `([^`]+)`(?: - at `\$\.?(.*)`)?"
_WRONG = r"(.*?) - at `\$\.?(.*)`$"


def decode(kind: type[T], args: Mapping[str, Any], aliases: Mapping[str, str] | None = None) -> T:
    """The arguments as `kind`; raises BadInput that names the argument.

    `aliases` are other names that models use for an argument; the proper name wins.
    """
    given = dict(args)
    for other, proper in (aliases or {}).items():
        if other in given:
            given.setdefault(proper, given.pop(other))
    # Models write null for what they leave out.
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(_sentence(str(error))) from error


def _sentence(message: str) -> str:
    if match := re.search(_MISSING, message):
        name, where = match.groups()
        return f"{where}.{name} is required" if where else f"{name} is required"
    if match := re.fullmatch(_WRONG, message):
        reason, where = match.groups()
        return f"{where}: {reason[0].lower()}{reason[1:]}"
    return message


def text(description: str) -> dict[str, Any]:
    """JSON Schema of a string argument."""
    return {"type": "string", "description": description}


def whole(description: str, minimum: int = 1) -> dict[str, Any]:
    """JSON Schema of a whole number."""
    return {"type": "integer", "minimum": minimum, "description": description}


def flag(description: str) -> dict[str, Any]:
    """JSON Schema of a yes or no."""
    return {"type": "boolean", "description": description}


def schema(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of a tool's arguments."""
    return {"type": "object", "properties": properties, "required": list(required)}


def brief(value: object, limit: int = 200) -> str:
    """A value on one short line, for a human."""
    line = " ".join(str(value).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
