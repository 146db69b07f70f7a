"""Two spellings of every name on the wire: camelCase and snake_case.

Requests are taken in both. A connection is answered in the one that its `initialize` used.
"""

import re
from collections.abc import Iterable
from typing import Any

_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")
_QUOTED = re.compile(r"`(\$?\.?)([a-z0-9_.\[\]]+)`")
_LIMIT = 4_096  # names that are remembered; clients choose them, so there is a bound
_snakes: dict[str, str] = {}
_camels: dict[str, str] = {}


def snake(name: str) -> str:
    """`sessionId` as `session_id`; other names stay as they are."""
    found = _snakes.get(name)
    if found is None:
        found = _UPPER.sub(r"_\1", name).lower() if name[:1].islower() else name
        if len(_snakes) < _LIMIT and len(name) < 100:
            _snakes[name] = found
    return found


def camel(name: str) -> str:
    """`session_id` as `sessionId`."""
    found = _camels.get(name)
    if found is None:
        head, *rest = name.split("_")
        found = head + "".join(part[:1].upper() + part[1:] for part in rest) if head else name
        if len(_camels) < _LIMIT and len(name) < 100:
            _camels[name] = found
    return found


def heard(params: dict[str, Any], nested: Iterable[str] = ()) -> dict[str, Any]:
    """Params as a client wrote them, top-level names (and those of `nested` parts) in snake_case.

    A name that is there in both spellings counts as written in snake_case.
    """
    found: dict[str, Any] = {}
    for name, value in params.items():
        plain = snake(name)
        if plain == name or plain not in params:
            found[plain] = value
    for name in nested:
        value = found.get(name)
        if isinstance(value, dict):
            found[name] = heard(value)
        elif isinstance(value, list):
            found[name] = [heard(one) if isinstance(one, dict) else one for one in value]
    return found


def spoken(value: Any) -> Any:
    """A result with all names of its tables in camelCase. What is `Raw` or a struct is left."""
    if isinstance(value, dict):
        return {camel(name): spoken(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [spoken(one) for one in value]
    return value


def spoken_text(text: str) -> str:
    """A message in which names between backticks are in camelCase."""
    return _QUOTED.sub(lambda found: f"`{found[1]}{camel(found[2])}`", text)
