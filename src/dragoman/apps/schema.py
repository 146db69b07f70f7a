"""The JSON Schema of a tool's parameters, from the function that does its work."""

import inspect
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def parameters_of(function: Callable[..., Any], skip: frozenset[str]) -> dict[str, Any]:
    """An object schema with a property for each parameter; those without default are required."""
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in skip or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        made = _schema(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            made["default"] = parameter.default
        properties[name] = made
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def _schema(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (list, tuple, set) or hint in (list, tuple, set):
        return {"type": "array", "items": _schema(inner[0])} if inner else {"type": "array"}
    if origin is dict or hint is dict:
        return {"type": "object"}
    if origin in (Union, types.UnionType):
        kinds = [_schema(one) for one in inner if one is not type(None)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {}
