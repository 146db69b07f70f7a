"""The OpenAPI document, made from the table of routes."""

from typing import TYPE_CHECKING, Any

import msgspec

from .http import EVENTS, JSON, REASONS
from .routes.table import AnyRoute

if TYPE_CHECKING:
    from .gate import Gate

_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._:-]*$"}
_REF = "#/components/schemas/{name}"


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong and what to do."""

    code: str
    message: str
    hint: str = ""
    data: dict[str, Any] = {}


class Failure(msgspec.Struct, frozen=True):
    error: Problem


def document(gate: "Gate") -> dict[str, Any]:
    routes = [route for route in gate.routes if not route.hidden]
    types: list[Any] = [Failure]
    for route in routes:
        types += [one for one in (route.body, route.returns) if one is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    refs = iter(schemas)
    failure = next(refs)
    paths: dict[str, Any] = {}
    for route in routes:
        body = next(refs) if route.body is not None else None
        returns = next(refs) if route.returns is not None else None
        operation = _operation(route, body, returns, failure)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": gate.door.facts.version or "0",
            "description": "Sessions, approvals and configuration of a running Dragoman host.",
        },
        "servers": [{"url": gate.prefix or "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: AnyRoute, body: object, returns: object, failure: object) -> dict[str, Any]:
    name = f"{route.method.lower()}_{route.path.strip('/')}"
    plain = "".join(char if char.isalnum() else "_" for char in name).strip("_")
    operation: dict[str, Any] = {
        "operationId": plain,
        "summary": route.summary,
        "responses": _responses(route, returns, failure),
    }
    if route.tag:
        operation["tags"] = [route.tag]
    parameters = [
        {"name": piece[1:-1], "in": "path", "required": True, "schema": _NAME}
        for piece in route.pattern
        if piece.startswith("{")
    ]
    if route.query is not None:
        parameters += _query(route.query)
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        operation["requestBody"] = {
            "required": not route.optional_body,
            "content": {JSON: {"schema": body}},
        }
    elif route.raw_body:
        operation["requestBody"] = {"required": True, "content": {"*/*": {"schema": {}}}}
    if route.open:
        operation["security"] = []
    elif route.local:
        operation["security"] = [{}, {"bearer": []}]
    return operation


def _query(kind: Any) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(kind)
    fields = schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": field}
        for name, field in fields.items()
    ]


def _responses(route: AnyRoute, returns: object, failure: object) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if returns is not None:
        content[route.media] = {"schema": returns}
    elif route.media != JSON:
        content[route.media] = {"schema": {"type": "string"}}
    for media in route.other_media:
        content[media] = {"schema": {} if media == JSON else {"type": "string"}}
    if route.streams:
        content[EVENTS] = {"schema": {"type": "string"}}
    answer: dict[str, Any] = {"description": REASONS[route.status]}
    if content and route.status != 204:
        answer["content"] = content
    found = {str(route.status): answer}
    wrong = {400, *route.may_fail, *(() if route.open else (401,))}
    if route.body is not None or route.raw_body:
        wrong.add(413)
    if route.body is not None:
        wrong.add(415)
    for status in sorted(wrong):
        shown: dict[str, Any] = {"description": REASONS[status]}
        if status >= 400:
            shown["content"] = {JSON: {"schema": failure}}
        elif returns is not None:
            shown["content"] = {JSON: {"schema": {} if status == 202 else returns}}
        found.setdefault(str(status), shown)
    return found
