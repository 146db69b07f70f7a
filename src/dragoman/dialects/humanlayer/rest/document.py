"""The OpenAPI document of `/api/v1`, made from the table of operations."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from .table import Operation

_REF = "#/components/schemas/{name}"


class Detail(msgspec.Struct, frozen=True):
    """What went wrong."""

    code: str
    message: str


class ErrorResponse(msgspec.Struct, frozen=True):
    error: Detail


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    types: list[Any] = [ErrorResponse]
    for one in operations:
        kinds = (one.body, _returned(one.wraps, one.returns))
        types += [kind for kind in kinds if kind is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    found = iter(schemas)
    error = next(found)
    paths: dict[str, Any] = {}
    for one in operations:
        body = next(found) if one.body is not None else None
        returns = next(found) if one.returns is not None else None
        made = _operation(one, body, returns, error)
        paths.setdefault(one.paths[0], {})[one.method.lower()] = made
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "HumanLayer daemon, served by Dragoman",
            "version": "1.0.0",
            "description": "Sessions, drafts, approvals and events.",
        },
        "servers": [{"url": "/api/v1"}],
        "paths": paths,
        "components": {"schemas": _plain(components)},
    }


@cache  # one type for all operations that answer with it
def _returned(name: str, kind: Any) -> Any:
    return msgspec.defstruct(name, [("data", kind)], frozen=True) if name else kind


def _plain(schema: Any) -> Any:
    """Without defaults: generators take a member that has one for one that is always there."""
    if isinstance(schema, dict):
        return {name: _plain(one) for name, one in schema.items() if name != "default"}
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema


def _operation(one: Operation, body: object, returns: object, error: object) -> dict[str, Any]:
    made: dict[str, Any] = {"operationId": one.id, "summary": one.summary}
    parameters = [
        {"name": piece[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for piece in one.paths[0].split("/")
        if piece.startswith("{")
    ]
    if one.query is not None:
        schema = msgspec.json.schema(one.query)
        fields = schema["$defs"][schema["$ref"].rpartition("/")[2]]
        needed = fields.get("required", [])
        parameters += [
            {"name": name, "in": "query", "required": name in needed, "schema": field}
            for name, field in fields["properties"].items()
        ]
    if parameters:
        made["parameters"] = parameters
    if body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    answer: dict[str, Any] = {"description": "Done"}
    if one.streams:
        answer["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    elif returns is not None:
        answer["content"] = {"application/json": {"schema": returns}}
    wrong = {"description": "Not done", "content": {"application/json": {"schema": error}}}
    made["responses"] = {str(one.status): answer, "400": wrong, "404": wrong}
    return made
