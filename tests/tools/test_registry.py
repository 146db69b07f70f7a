"""The registry: names, aliases, further tools."""

from typing import Any

import jsonschema
import pytest

from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec
from dragoman.tools.registry import NAMES, Box, Registry

KINDS = {
    "ask_user": ("other", True),
    "bash": ("execute", False),
    "bash_kill": ("other", False),
    "bash_output": ("read", True),
    "edit": ("edit", False),
    "glob": ("search", True),
    "grep": ("search", True),
    "ls": ("read", True),
    "plan": ("think", True),
    "propose_plan": ("think", True),
    "read": ("read", True),
    "web_fetch": ("fetch", True),
    "write": ("edit", False),
}


class Other:
    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(name, "Something else.", {"type": "object"})

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        return Outcome(())

    def summary(self, args: dict[str, Any]) -> str:
        return self.spec.name


def names(box: Box) -> list[str]:
    return [spec.name for spec in box.specs()]


def test_all_tools_are_there_and_described(box: Box) -> None:
    assert names(box) == list(NAMES) == sorted(NAMES)
    for spec in box.specs():
        assert (spec.kind, spec.repeatable) == KINDS[spec.name]
        assert spec.description
        jsonschema.Draft202012Validator.check_schema(spec.schema)
        for name in spec.schema["required"]:
            assert name in spec.schema["properties"]


@pytest.mark.parametrize("args", [{}, {"path": 5, "command": None, "entries": 3}])
def test_a_summary_is_one_line_whatever_the_arguments(box: Box, args: Any) -> None:
    for name in NAMES:
        found = box.find(name)
        assert found is not None
        assert "\n" not in found.summary(args) and found.summary(args)


def test_an_allow_list(registry: Registry) -> None:
    box = registry.toolbox(["read", "shell", "nope", "read"])
    assert names(box) == ["bash", "bash_kill", "bash_output", "read"]
    assert box.notes == ["Unknown tool in the list of tools: nope."]
    assert box.find("shell") is box.find("bash")
    assert box.find("write") is None
    assert names(registry.toolbox([])) == []


async def test_further_tools(registry: Registry) -> None:
    box = registry.toolbox(["read", "theirs"], extra=[Other("theirs"), Other("read")])
    assert names(box) == ["read", "theirs"]
    assert box.notes == ["The tool read was left out: there is another of this name."]
    assert box.add(Other("late")) and not box.add(Other("late"))
    assert not registry.toolbox().add(Other("shell"))
    assert box.remove("late") and not box.remove("late")
    closed: list[str] = []

    async def close() -> None:
        closed.append("x")

    box.on_close(close)
    await box.close()
    await box.close()
    assert closed == ["x"]
