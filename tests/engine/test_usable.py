"""Which models can be used, whatever providers list and agents are set to."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from dragoman.engine.faults import BadInput, UnknownModel
from dragoman.engine.ports import Agents, ModelInfo, Models
from dragoman.engine.usable import usable


class Given:
    """Agents and models as two tables."""

    def __init__(self, listed: dict[str, list[str]], agents: dict[str, str]) -> None:
        self.listed, self.agents = listed, agents

    def names(self) -> Sequence[str]:
        return list(self.agents)

    def profile(self, alias: str) -> Any:
        return type("Profile", (), {"model": self.agents[alias]})

    def list(self, provider: str | None = None) -> Sequence[ModelInfo]:
        if provider is None:
            return [ModelInfo(p, name) for p, names in self.listed.items() for name in names]
        if provider not in self.listed:
            raise UnknownModel(provider)
        return [ModelInfo(provider, name) for name in self.listed[provider]]

    def resolve(self, ref: str, agent: str = "") -> tuple[Any, ModelInfo]:
        provider, _, name = ref.partition("/")
        if provider == "broken":
            raise BadInput("no key")
        return None, ModelInfo(provider, name)


def refs(given: Given, provider: str | None = None) -> list[str]:
    found = usable(cast(Models, given), cast(Agents, given), provider)
    return [model.ref for model in found]


def test_what_agents_are_set_to_is_added_once() -> None:
    given = Given({"a": ["one", "two"]}, {"x": "a/two", "y": "b/own", "z": "b/own"})
    assert refs(given) == ["a/one", "a/two", "b/own"]
    assert refs(given, "a") == ["a/one", "a/two"]
    assert refs(given, "b") == ["b/own"]  # no list has it, and it can be used all the same


def test_an_agent_that_cannot_be_used_adds_nothing() -> None:
    given = Given({"a": ["one"]}, {"x": "broken/m"})
    assert refs(given) == ["a/one"]
    with pytest.raises(UnknownModel):
        refs(given, "broken")
