"""The running configuration: read (secrets hidden), explained for forms, changed."""

from typing import Any, TypeVar

import msgspec

from dragoman.engine.faults import BadInput

from ..http import Refusal
from .table import Call, Route

T = TypeVar("T")


class PathQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str = ""


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`value` null takes the key out of the file."""

    key: str
    value: Any


class Value(msgspec.Struct, frozen=True):
    key: str
    value: Any


class Field(msgspec.Struct, frozen=True):
    """One key, as a form shows it."""

    key: str
    doc: str
    allowed: str
    default: Any
    value: Any
    source: str
    env: str
    schema: dict[str, Any]
    secret: bool = False


def _there(config: T | None) -> T:
    if config is None:
        raise Refusal(404, "no_config", "This host runs without a configuration.")
    return config


async def read(call: Call[None, PathQuery]) -> Value:
    path = call.query.path
    value = _there(call.door.config).get(path)
    if value is None and path:
        _check(path)
    return Value(path, value)


async def write(call: Call[Setting, None]) -> Value:
    config, body = _there(call.door.config), call.body
    _check(body.key)
    await config.set(body.key, body.value)
    call.gate.audit("config set", key=body.key, peer=call.request.peer)
    return Value(body.key, config.get(body.key))


async def fields(call: Call[None, PathQuery]) -> list[Field]:
    from dragoman.observe.redact import is_secret
    from dragoman.settings import explain, shape

    loaded = _there(getattr(call.door.config, "loaded", None))
    found = []
    for one in explain.explain(loaded, call.query.path):
        try:
            kind = shape.key(shape.split(one.key.replace("<name>", "x"))).kind
            schema = msgspec.json.schema(kind)
        except (shape.UnknownKey, ValueError, TypeError):
            schema = {}
        found.append(
            Field(
                one.key, one.doc, one.allowed, one.default, one.value, one.source, one.env, schema,
                is_secret(one.key.rpartition(".")[2]),
            )
        )  # fmt: skip
    return found


def _check(path: str) -> None:
    from dragoman.settings import shape

    try:
        shape.key(shape.split(path))
    except shape.UnknownKey as unknown:
        raise BadInput(f"{unknown}") from None
    except ValueError as problem:
        raise BadInput(f"{problem}.") from None


ROUTES = [
    Route("GET", "/api/config", read, "The configuration, secrets hidden", "config",
          query=PathQuery, returns=Value, may_fail=(400, 404)),
    Route("PUT", "/api/config", write, "Change a key; the running host uses it at once", "config",
          body=Setting, returns=Value, may_fail=(400, 404, 409, 503)),
    Route("GET", "/api/config/fields", fields, "Keys with their meaning, for forms", "config",
          query=PathQuery, returns=list[Field], may_fail=(400, 404)),
]  # fmt: skip
