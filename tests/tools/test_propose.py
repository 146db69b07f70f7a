"""The tool `propose_plan`: what the human is shown, and what the model is told."""

from pathlib import Path
from typing import Any

from tests.tools.making import Env

from dragoman.engine.info import plan_file
from dragoman.engine.ports import Answer
from dragoman.policy.paths import Boundary
from dragoman.tools.plan import ProposePlan


class Planning(Env):
    mode = "plan"

    async def leave_plan(self, question: str) -> Answer:
        self.questions.append((question, []))
        return self.answer


def tool() -> ProposePlan:
    return ProposePlan(lambda env: Boundary(env.cwd))


async def said(env: Planning) -> str:
    block: Any = (await tool().run({}, env)).content[0]
    return str(block.text)


async def test_the_whole_plan_is_shown(tmp_path: Path) -> None:
    env = Planning(str(tmp_path))
    plan = Path(plan_file(env.cwd, env.session))
    plan.parent.mkdir(parents=True)
    plan.write_text("1. this\n2. that\n")
    assert "does not agree yet: blue" in await said(env)
    assert "1. this\n2. that" in env.questions[0][0] and str(plan) in env.questions[0][0]


async def test_a_long_one_says_how_much_is_missing(tmp_path: Path) -> None:
    env = Planning(str(tmp_path))
    plan = Path(plan_file(env.cwd, env.session))
    plan.parent.mkdir(parents=True)
    plan.write_text("x" * 61_000)
    await said(env)
    assert "[1,000 more characters in" in env.questions[0][0]


async def test_without_a_file_or_behind_a_link_there_is_none(tmp_path: Path) -> None:
    env = Planning(str(tmp_path))
    env.answer = Answer("", answered=False)
    assert "Not agreed" in await said(env)
    plan = Path(plan_file(env.cwd, env.session))
    plan.parent.mkdir(parents=True)
    secret = tmp_path / "other.md"
    secret.write_text("another file")
    plan.symlink_to(secret)
    await said(env)
    assert "another file" not in env.questions[1][0]
