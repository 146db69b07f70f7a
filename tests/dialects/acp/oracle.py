"""The official JSON Schema as a judge of every line we send, when it is installed."""

import functools
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "tests/interop/node/node_modules/@agentclientprotocol/sdk/schema/v1/schema.json"
# Members beside the schema's that the protocol document of our family asks for.
EXTRA = {
    "NewSessionResponse": {"workspaceDir"},
    "PromptResponse": {"sessionId", "content"},
}
_ALWAYS = {"_meta"}


@functools.cache
def _schema() -> dict[str, Any] | None:
    return json.loads(SCHEMA.read_text()) if SCHEMA.exists() else None


@functools.cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    schema = _schema()
    assert schema is not None
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


@functools.cache
def _by_method() -> tuple[dict[str, str], dict[str, str]]:
    """What an agent sends: (requests and notifications, results), method -> definition."""
    sent, results = {}, {}
    schema = _schema()
    assert schema is not None
    for name, one in schema["$defs"].items():
        method, side = one.get("x-method"), one.get("x-side")
        if method and side in ("client", "protocol") and not name.endswith("Response"):
            sent[method] = name
        if method and side == "agent" and name.endswith("Response"):
            results[method] = name
    return sent, results


def check(message: dict[str, Any], asked: dict[Any, str]) -> None:
    """Assert that a line of ours is valid. `asked` maps ids of requests to their methods."""
    assert message.get("jsonrpc") == "2.0", message
    if _schema() is None:
        return
    sent, results = _by_method()
    if "method" in message:
        method = message["method"]
        if method.startswith("_"):
            return
        assert method in sent, f"{method} is nothing an agent sends"
        _judge(sent[method], message.get("params"))
        return
    assert ("result" in message) != ("error" in message), message
    if "error" in message:
        error = message["error"]
        assert isinstance(error["code"], int) and error["message"].strip(), message
        assert "\n" not in error["message"], message
        return
    name = results.get(asked.get(message["id"], ""))
    if name is not None:
        _judge(name, message["result"])


def _judge(name: str, value: Any) -> None:
    errors = sorted(_validator(name).iter_errors(value), key=lambda one: len(one.path))
    assert not errors, f"{name}: {errors[0].message[:500]}\nin {json.dumps(value)[:1000]}"
    schema = _schema()
    assert schema is not None
    known = set(schema["$defs"][name].get("properties", {}))
    if known and isinstance(value, dict) and "anyOf" not in schema["$defs"][name]:
        odd = set(value) - known - EXTRA.get(name, set()) - _ALWAYS
        assert not odd, f"{name}: members that are not in the schema: {odd}"
