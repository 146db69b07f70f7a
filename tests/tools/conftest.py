"""Fixtures for the tests of tools."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import Env, tool

from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.tools.registry import Box, Registry


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture
def env(work: Path) -> Env:
    return Env(str(work))


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return tmp_path / "data" / "outputs"


@pytest.fixture
def registry(tmp_path: Path, outputs: Path) -> Registry:
    policy = AutonomyPolicy(
        Rules(), protected=[str(tmp_path / "data")], readable=[str(outputs)], home=str(tmp_path)
    )

    def bounds(env: ToolEnv) -> Any:
        return policy.boundary(env.mode, env.cwd, env.roots)

    return Registry(bounds, outputs=str(outputs))


@pytest.fixture
def box(registry: Registry) -> Box:
    return registry.toolbox()


@pytest.fixture
def use(box: Box, env: Env) -> Callable[..., Any]:
    async def run(name: str, **args: Any) -> Outcome:
        return await tool(box, name).run(args, env)  # type: ignore[arg-type]

    return run
