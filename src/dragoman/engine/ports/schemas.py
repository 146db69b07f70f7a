"""What others say of their tools' arguments, as every model provider takes it.

Providers judge the tools of a request all together: one schema that they do not take costs the
session every turn, not that tool. What is lost here is only what the model is told; whoever has
the tool judges the arguments by its own schema.
"""

from collections.abc import Iterator
from typing import Any

_COMBINED = ("allOf", "anyOf", "oneOf")
# Words that providers refuse where the arguments themselves are described.
_REFUSED = frozenset({*_COMBINED, "$ref", "const", "enum", "if", "then", "else", "not"})
_VALUES = frozenset({"const", "default", "enum", "example", "examples"})  # no schemas
_NAMES = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_DEEPEST = 64
_MOST = 256  # schemas that may describe the arguments together


def accepted(given: Any) -> dict[str, Any]:
    """The schema of an object that says what it can of what is given."""
    schema = given if isinstance(given, dict) else {}
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    for one, needed in _described(schema):
        if isinstance(found := one.get("properties"), dict):
            properties = {**found, **properties}
        if needed and isinstance(names := one.get("required"), list):
            required |= dict.fromkeys(name for name in names if isinstance(name, str))
    made = {word: value for word, value in schema.items() if word not in _REFUSED}
    made |= {"type": "object", "properties": properties}
    made.pop("required", None)
    if names := [name for name in required if name in properties]:
        made["required"] = names
    listed: dict[str, Any] = _listed(made, 0)
    return listed


def _described(schema: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """All that describes the arguments themselves, and whether it must hold: not one of several."""
    waiting, seen = [(schema, True)], 0
    while waiting and seen < _MOST:
        one, needed = waiting.pop(0)
        seen += 1
        yield one, needed
        if isinstance(target := _target(schema, one.get("$ref")), dict):
            waiting.append((target, needed))
        for word in _COMBINED:
            parts = one.get(word)
            parts = parts if isinstance(parts, list) else []
            alone = word == "allOf" or len(parts) == 1
            waiting += [(part, needed and alone) for part in parts if isinstance(part, dict)]


def _target(schema: dict[str, Any], ref: Any) -> Any:
    """What a reference within the schema means."""
    if not isinstance(ref, str) or not ref.startswith("#/"):
        return None
    found: Any = schema
    for part in ref[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _listed(value: Any, depth: int, named: bool = False) -> Any:
    """The same where every list says of what, if only that it may be anything.

    `named`: the keys are names that somebody chose, not words of the schema.
    """
    if depth > _DEEPEST:
        return {} if isinstance(value, dict | list) else value
    if isinstance(value, list):
        return [_listed(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    made = {
        word: one
        if word in _VALUES and not named
        else _listed(one, depth + 1, word in _NAMES and not named)
        for word, one in value.items()
    }
    kind = made.get("type")
    array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    if array and not named and not isinstance(made.get("items"), dict):
        made["items"] = {}
    return made
