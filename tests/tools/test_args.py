"""Arguments of a call: taken generously, refused with the argument's name."""

from typing import Any

import msgspec
import pytest

from dragoman.engine.faults import BadInput
from dragoman.tools.args import brief, decode, schema, text


class Inner(msgspec.Struct):
    name: str


class Asked(msgspec.Struct):
    path: str
    count: int = 1
    all: bool = False
    parts: list[Inner] = []


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ({"path": "a"}, Asked("a")),
        ({"path": "a", "count": "3", "all": "true"}, Asked("a", 3, True)),
        ({"path": "a", "count": None, "more": 1}, Asked("a")),
        ({"file": "a"}, Asked("a")),
        ({"file": "b", "path": "a"}, Asked("a")),
    ],
)
def test_what_models_write_is_understood(args: dict[str, Any], wanted: Asked) -> None:
    assert decode(Asked, args, {"file": "path"}) == wanted


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "path is required"),
        ({"path": None}, "path is required"),
        ({"path": ["a"]}, "path: expected `str`, got `array`"),
        ({"path": "a", "count": "many"}, "count: expected `int`"),
        ({"path": "a", "parts": [{}]}, r"parts\[0\].name is required"),
    ],
)
def test_what_does_not_fit_is_named(args: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        decode(Asked, args)


def test_the_given_arguments_stay_as_they_are() -> None:
    args = {"file": "a"}
    decode(Asked, args, {"file": "path"})
    assert args == {"file": "a"}


def test_schema() -> None:
    made = schema("path", path=text("where"))
    assert made["required"] == ["path"] and made["properties"]["path"]["type"] == "string"


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a\n  b\tc", "a b c"), ("x" * 11, "x" * 9 + "…"), ("x" * 10, "x" * 10), (None, "None")],
)
def test_brief_is_one_short_line(value: object, shown: str) -> None:
    assert brief(value, 10) == shown
