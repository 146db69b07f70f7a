"""The official JSON Schema as a judge of every line we send, when it is installed."""

import functools
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "tests/interop/node/node_modules/@agentclientprotocol/sdk/schema"
SCHEMA = SCHEMAS / "v1/schema.json"
# Members beside the schema's that the protocol document of our family asks for.
EXTRA = {
    "NewSessionResponse": {"workspaceDir"},
    "PromptResponse": {"sessionId", "content"},
}
# Beside the stable schema, these optional parts of the unstable one are spoken: methods, and
# members that clients which do not know them ignore.
UNSTABLE = {
    "session/fork", "session/set_title", "session/archive", "session/unarchive", "session/status",
    "auth/status", "mcp/message",
}  # fmt: skip
_MORE = {"PromptResponse": {"usage"}}
_ALWAYS = {"_meta"}


@functools.cache
def _schema(version: str) -> dict[str, Any] | None:
    """Of "v1", "v2", or with ".unstable" behind it."""
    name, _, more = version.partition(".")
    path = SCHEMAS / name / (f"schema.{more}.json" if more else "schema.json")
    return json.loads(path.read_text()) if path.exists() else None


@functools.cache
def _validator(version: str, name: str) -> Any:
    from jsonschema_rs import Draft202012Validator

    schema = _schema(version)
    assert schema is not None
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


@functools.cache
def _by_method(version: str) -> tuple[dict[str, str], dict[str, str]]:
    """What an agent sends: (requests and notifications, results), method -> definition."""
    sent, results = {}, {}
    schema = _schema(version)
    assert schema is not None
    for name, one in schema["$defs"].items():
        method, side = one.get("x-method"), one.get("x-side")
        if method and side in ("client", "protocol") and not name.endswith("Response"):
            sent[method] = name
        if method and side == "agent" and name.endswith("Response"):
            results[method] = name
    return sent, results


@functools.cache
def _strict(version: str) -> dict[str, Any]:
    """The definitions, closed: an object may have no members beside those that are named."""
    schema = _schema(version)
    assert schema is not None
    return {name: _opened(one) for name, one in schema["$defs"].items()}


def _opened(node: Any) -> Any:
    """A schema whose members are closed, but which may be part of a larger one itself."""
    if not isinstance(node, dict):
        return node
    found = dict(node)
    for key in ("properties", "patternProperties"):
        if key in found:
            found[key] = {name: _closed(one) for name, one in found[key].items()}
    if "items" in found:
        found["items"] = _closed(found["items"])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in found:
            found[key] = [_opened(one) for one in found[key]]
    return found


def _closed(node: Any) -> Any:
    """The same for a schema that describes a whole value."""
    found = _opened(node)
    parts = {"properties", "anyOf", "oneOf", "allOf", "$ref"}
    if isinstance(found, dict) and parts & set(found) and not found.get("additionalProperties"):
        found.setdefault("unevaluatedProperties", False)
    return found


@functools.cache
def _strict_validator(version: str, name: str) -> Any:
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(
        {"$ref": f"#/$defs/{name}", "unevaluatedProperties": False, "$defs": _strict(version)}
    )


_SEEN: set[tuple[str, str, str]] = set()  # forms of messages that were judged
_TAGS = {"sessionUpdate", "type", "state", "mode", "outcome", "operation", "action"}


def _form(value: Any, key: str = "") -> Any:
    """The members of a value, without what they hold: that is judged by `check`."""
    if isinstance(value, dict):
        return {name: _form(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(_form(one, key), sort_keys=True) for one in value})
    return value if key in _TAGS or not isinstance(value, str) else ""


def check_strictly(message: dict[str, Any], asked: dict[Any, str], version: str = "v1") -> None:
    """The same as `check`, and no member anywhere that the protocol does not name."""
    check(message, asked, version)
    version = f"{version}.unstable"  # has all of the stable one
    if _schema(version) is None:
        return
    sent, results = _by_method(version)
    if "method" in message:
        name, value = sent.get(message["method"]), message.get("params")
    else:
        name, value = results.get(asked.get(message.get("id"), "")), message.get("result")
    if name is None or value is None:
        return
    value = {key: one for key, one in value.items() if key not in EXTRA.get(name, ())}
    form = (version, name, json.dumps(_form(value), sort_keys=True))
    if form in _SEEN:
        return  # its members are those of another that was fine
    _SEEN.add(form)
    found = _strict_validator(version, name).iter_errors(value)
    errors = sorted(found, key=lambda one: len(one.instance_path))
    assert not errors, f"{name}: {errors[0].message[:500]}\nin {json.dumps(value)[:1500]}"


def check(message: dict[str, Any], asked: dict[Any, str], version: str = "v1") -> None:
    """Assert that a line of ours is valid. `asked` maps ids of requests to their methods."""
    assert message.get("jsonrpc") == "2.0", message
    if _schema(version) is None:
        return
    if "method" in message:
        method = message["method"]
        if method.startswith("_"):
            return
        version = f"{version}.unstable" if method in UNSTABLE or _is_new(message) else version
        sent = _by_method(version)[0]
        assert method in sent, f"{method} is nothing an agent sends"
        _judge(version, sent[method], message.get("params"))
        return
    assert ("result" in message) != ("error" in message), message
    if "error" in message:
        error = message["error"]
        assert isinstance(error["code"], int) and error["message"].strip(), message
        assert "\n" not in error["message"], message
        return
    method = asked.get(message["id"], "")
    version = f"{version}.unstable" if method in UNSTABLE else version
    name = _by_method(version)[1].get(method)
    if name is not None:
        _judge(version, name, message["result"])


def _is_new(message: dict[str, Any]) -> bool:
    """Updates that only clients get which asked for them."""
    update = message.get("params", {}).get("update", {})
    return update.get("sessionUpdate") in ("plan_update", "subagent_update", "session_message")


def _judge(version: str, name: str, value: Any) -> None:
    found = _validator(version, name).iter_errors(value)
    errors = sorted(found, key=lambda one: len(one.instance_path))
    assert not errors, f"{name}: {errors[0].message[:500]}\nin {json.dumps(value)[:1000]}"
    schema = _schema(version)
    assert schema is not None
    _check_members(schema, name, value)


def _check_members(schema: dict[str, Any], name: str, value: Any) -> None:
    """No members of our own where the protocol allows none."""
    made = schema["$defs"][name]
    known = set(made.get("properties", {}))
    if known and isinstance(value, dict) and "anyOf" not in made:
        odd = set(value) - known - EXTRA.get(name, set()) - _MORE.get(name, set()) - _ALWAYS
        assert not odd, f"{name}: members that are not in the schema: {odd}"
