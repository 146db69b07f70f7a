"""`ask_user` and `plan`."""

from typing import Any

import pytest
from tests.tools.making import Env, said

from dragoman.engine.content import PlanEntry
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Answer


async def test_a_question_is_answered(use: Any, env: Env) -> None:
    outcome = await use("ask_user", question="Which?", choices=["red", "blue", " "])
    assert said(outcome) == "blue"
    assert env.questions == [("Which?", ["red", "blue"])]


async def test_nobody_answers(use: Any, env: Env) -> None:
    env.answer = Answer("", answered=False)
    outcome = await use("ask_user", question="Which?")
    assert outcome.is_error
    assert "Nobody answered" in said(outcome)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({}, "question is required"),
        ({"question": " "}, "question is required"),
        ({"question": "x", "choices": "a"}, "choices: expected `array`"),
        ({"question": "x", "choices": ["a"] * 21}, "choices: at most 20"),
    ],
)
async def test_bad_questions(use: Any, args: Any, sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        await use("ask_user", **args)
    assert sentence in str(error.value)


async def test_a_plan_is_shown(use: Any, env: Env) -> None:
    entries = [{"content": "look", "status": "completed", "priority": "high"}, "do"]
    outcome = await use("plan", entries=entries)
    assert said(outcome) == "[x] look\n[ ] do"
    assert env.planned == [PlanEntry("look", "high", "completed"), PlanEntry("do")]
    assert said(await use("plan", entries=[])) == "The plan is empty."


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({}, "entries is required"),
        ({"entries": [{"content": ""}]}, "content must not be empty"),
        ({"entries": [{"status": "pending"}]}, "content is required"),
        ({"entries": [{"content": "x", "status": "soon"}]}, "status"),
        ({"entries": ["x"] * 101}, "at most 100"),
    ],
)
async def test_bad_plans(use: Any, args: Any, sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        await use("plan", **args)
    assert sentence in str(error.value)
