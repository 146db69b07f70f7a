"""What parts of the host keep with sessions: each in its own shape, under its own name."""

import ast
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.faults import BadInput
from dragoman.engine.opening import OpenSpec
from dragoman.engine.traits import Correspondent, Given, Trait, Waiver, merged, together
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted

SRC = Path(__file__).parents[2] / "src" / "dragoman"


@pytest.mark.parametrize(
    "kept", [None, {}, {"everything": "yes"}, {"until": []}, [1], "text", 5, {"tools": [1]}]
)
def test_what_cannot_be_read_permits_nothing(kept: Any) -> None:
    extra = {} if kept is None else {"waiver": kept}
    assert Waiver.of(extra) == Waiver()
    assert not Waiver.of(extra).covers("bash", 0)


def test_only_what_differs_from_the_defaults_is_kept() -> None:
    assert together(Given(), Waiver(), Correspondent("k")) == {"correspondent": {"key": "k"}}
    assert Given(tools=()).kept() == {"tools": []}  # no tools at all is not "as the agent has"
    assert Given.of({"given": {"tools": []}}).over() == {"tools": ()}
    assert Given(roots=("/a",), max_steps=3).over() == {"max_steps": 3}


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ({}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": None, "z": 3}}, {"a": {"y": 2, "z": 3}}),
        ({"a": {"x": 1}}, {"a": {"x": None}}, {}),
        ({"a": {"x": 1}, "b": {"y": 1}}, {"a": None}, {"b": {"y": 1}}),
        ({"a": 1}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({}, {"a": {"x": None}}, {}),
        ({"a": {"deep": {"p": 1}}}, {"a": {"deep": {"q": 1}}}, {"a": {"deep": {"q": 1}}}),
    ],
)
def test_a_change_touches_the_fields_it_names(before: Any, change: Any, after: Any) -> None:
    kept = deepcopy(before)
    assert merged(before, change) == after
    assert before == kept  # replaced, never changed in place


@pytest.mark.parametrize(
    ("waiver", "now", "tool", "covers"),
    [
        (Waiver(everything=True), 10**15, "bash", True),
        (Waiver(everything=True, until=100), 99, "bash", True),
        (Waiver(everything=True, until=100), 100, "bash", False),
        (Waiver(until=100), 50, "bash", False),
        (Waiver(tools=("write",)), 0, "write", True),
        (Waiver(tools=("write",)), 0, "bash", False),
        (Waiver(everything=True, until=1, tools=("edit",)), 5, "edit", True),
    ],
)
def test_a_waiver_covers_what_it_says(waiver: Waiver, now: int, tool: str, covers: bool) -> None:
    assert waiver.covers(tool, now) is covers


async def test_the_door_keeps_a_trait_and_refuses_what_is_none() -> None:
    door = memory_door(Scripted([]))
    info = await door.open(OpenSpec(cwd="/", traits=(Given(max_steps=3), Correspondent("k"))))
    await door.keep(info.id, Given, roots=("/tmp",), max_steps=None)
    now = await door.info(info.id)
    assert Given.of(now.extra) == Given(roots=("/tmp",)) and "max_steps" not in now.extra["given"]
    found = await door.find(Correspondent, key="k")
    assert found is not None and found.id == info.id
    assert await door.find(Correspondent, key="k", channel="other") is None
    for wrong in ({"root": 1}, {"roots": 5}, {"max_steps": "many"}):
        with pytest.raises(BadInput, match="given"):
            await door.keep(info.id, Given, **wrong)
    assert (await door.info(info.id)).extra == now.extra


async def test_a_trait_of_somebody_else_survives_ours() -> None:
    class Foreign(Trait, frozen=True):
        NAME = "somebody"

        colour: str = ""

    door = memory_door(Scripted([]))
    info = await door.open(OpenSpec(cwd="/", traits=(Foreign("red"),)))
    await door.keep(info.id, Waiver, tools=("write",))
    await door.keep(info.id, Waiver, tools=())
    assert (await door.info(info.id)).extra == {"somebody": {"colour": "red"}}


def test_nobody_reads_what_is_kept_but_traits() -> None:
    """`.extra[…]` and `.extra.get(…)` stand in `Trait`, and where stores look for any field."""
    found = []
    for path in SRC.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "extra" in text else ():
            value: Any = None
            if isinstance(node, ast.Subscript):
                value = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                value = node.func.value if node.func.attr in ("get", "pop", "items") else None
            if isinstance(value, ast.Attribute) and value.attr == "extra":
                found.append(str(path.relative_to(SRC)))
    assert sorted(set(found)) == ["store/rules.py"]
