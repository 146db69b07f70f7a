"""One tool of a stranger's must not cost a session its turns: its schema is said otherwise."""

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.dialects.openclawos.invoke import AppTool
from dragoman.engine.ports.schemas import accepted
from dragoman.tools.mcp import McpTool

TEXT = {"type": "string"}


@pytest.mark.parametrize("given", [None, [], "x", True, {}, {"type": "object"}, {"type": "string"}])
def test_what_says_nothing_of_arguments_takes_any_object(given: Any) -> None:
    assert accepted(given) == {"type": "object", "properties": {}}


def test_what_every_provider_takes_stays_as_it_is() -> None:
    given = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "description": "d",
        "properties": {
            "a": {"anyOf": [TEXT, {"type": "null"}], "default": {"type": "array"}},
            "b": {"type": "array", "items": {"enum": [1, 2]}},
            "c": {"$ref": "#/$defs/C"},
        },
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"C": {"oneOf": [TEXT]}},
    }
    before = repr(given)
    assert accepted(given) == given and repr(given) == before


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
def test_what_is_combined_at_the_top_becomes_one_object(word: str) -> None:
    given = {
        "type": "object",
        "properties": {"kind": TEXT},
        "required": ["kind"],
        word: [
            {"properties": {"id": TEXT}, "required": ["id"]},
            {"required": ["from", "nowhere"], "properties": {"from": TEXT}},
            "odd",
        ],
    }
    made = accepted(given)
    assert word not in made and set(made["properties"]) == {"kind", "id", "from"}
    assert made["required"] == (["kind", "id", "from"] if word == "allOf" else ["kind"])


def test_references_and_conditions_at_the_top() -> None:
    base = {"properties": {"y": TEXT}, "required": ["y"]}
    given = {
        "$ref": "#/definitions/a~1b",
        "definitions": {
            "a/b": {"allOf": [{"$ref": "#/definitions/base"}], "properties": {"x": TEXT}},
            "base": base,
        },
        **dict.fromkeys(("if", "then", "else", "not", "enum", "const"), {}),
    }
    made = accepted(given)
    assert set(made) == {"type", "properties", "required", "definitions"}
    assert set(made["properties"]) == {"x", "y"} and made["required"] == ["y"]
    loop = {
        "$ref": "#/$defs/me",
        "$defs": {"me": {"$ref": "#/$defs/me", "properties": {"x": TEXT}}},
    }
    assert set(accepted(loop)["properties"]) == {"x"}
    for odd in ("#/nowhere", "https://example.org/x", "#", 5, "#/$defs/me/0"):
        assert accepted({"$ref": odd, "$defs": {"me": [1]}})["properties"] == {}


def test_every_list_says_of_what() -> None:
    given = {
        "properties": {
            "a": {"type": "array"},
            "b": {"type": ["array", "null"], "items": True},
            "c": {"type": "object", "properties": {"type": {"type": "array", "items": [TEXT]}}},
            "default": {"type": "array"},  # the name of an argument
            "d": {"default": {"type": "array"}, "enum": [{"type": "array"}]},  # values
            "properties": {"type": "array"},
        },
    }
    made = accepted(given)["properties"]
    assert made["a"]["items"] == made["b"]["items"] == made["default"]["items"] == {}
    assert made["c"]["properties"]["type"]["items"] == made["properties"]["items"] == {}
    assert made["d"] == given["properties"]["d"]


def test_a_hostile_one_comes_to_an_end() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"properties": {"x": deep}}
    assert accepted(deep)["type"] == "object" and len(repr(accepted(deep))) < 5_000
    wide = {"$defs": {"w": {"anyOf": [{"$ref": "#/$defs/w"}] * 50, "properties": {"x": TEXT}}}}
    assert set(accepted({"$ref": "#/$defs/w", **wide})["properties"]) == {"x"}
    odd = {"properties": [1], "required": "x", "anyOf": {"a": 1}, "type": 5}
    assert accepted(odd) == {"type": "object", "properties": {}}


def test_tools_of_servers_and_apps_are_said_so() -> None:
    given = {"type": "object", "oneOf": [{"properties": {"x": {"type": "array"}}}]}
    wanted = {"type": "object", "properties": {"x": {"type": "array", "items": {}}}}
    server: Any = SimpleNamespace(server=SimpleNamespace(name="s"))
    assert McpTool(server, "t", "", given).spec.schema == wanted
    grant: Any = SimpleNamespace(
        name="t", config={"parameters": given}, seat=SimpleNamespace(name="app")
    )
    assert AppTool(grant).spec.schema == wanted
