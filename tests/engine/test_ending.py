"""How a turn ends, for everything that its agent can come back with."""

import asyncio
from typing import Any

import pytest

from dragoman.engine import events as ev
from dragoman.engine.content import Message, Text
from dragoman.engine.ending import last_text, rest, rests, verdict
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import TurnResult
from dragoman.engine.state import State
from dragoman.engine.work import Underway


@pytest.mark.parametrize(
    ("result", "marks", "expected"),
    [
        (TurnResult("end_turn"), {}, ("completed", "end_turn", "")),
        (TurnResult("error", "no"), {}, ("failed", "error", "no")),
        (
            asyncio.CancelledError(),
            {},
            ("failed", "error", "The turn was broken off from inside."),
        ),
        (asyncio.CancelledError(), {"cancelled": True}, ("cancelled", "aborted", "")),
        (
            asyncio.CancelledError(),
            {"cancelled": True, "interrupted": True},
            ("interrupted", "aborted", ""),
        ),
        (
            asyncio.CancelledError(),
            {"cancelled": True, "cause": "shutdown"},
            ("interrupted", "aborted", ""),
        ),
        (BadInput("Wrong.", "Mend it."), {}, ("failed", "error", "Wrong. Mend it.")),
        (KeyError("x"), {}, ("failed", "error", "KeyError: 'x'")),
    ],
)
def test_what_a_turn_came_to(result: Any, marks: dict[str, Any], expected: Any) -> None:
    turn = Underway("t")
    for name, value in marks.items():
        setattr(turn, name, value)
    assert verdict(turn, result) == expected


@pytest.mark.parametrize(
    ("outcome", "kind", "interactive", "status"),
    [
        ("completed", "prompt", True, "idle"),
        ("failed", "prompt", True, "idle"),
        ("interrupted", "prompt", True, "interrupted"),
        ("cancelled", "prompt", True, "idle"),
        ("completed", "prompt", False, "completed"),
        ("failed", "prompt", False, "failed"),
        ("cancelled", "prompt", False, "interrupted"),
        ("completed", "compact", False, "idle"),
    ],
)
def test_how_the_session_rests(outcome: Any, kind: str, interactive: bool, status: str) -> None:
    state = State("s")
    state.interactive = interactive
    assert rest(state, outcome, kind) == status


def test_a_session_with_prompts_in_the_store_is_about_to_start() -> None:
    state = State("s")
    state.status = "running"
    assert rests(state, "idle", "why") == [ev.StatusChanged("running", "idle", "why")]
    state.queued = {"q": ev.Queued("q", (Text("x"),))}
    assert rests(state, "idle", "")[-1] == ev.StatusChanged("idle", "starting")
    assert rests(state, "running", "") == []
    state.queued = {"q": ev.Queued("q", (Text("x"),), steers=True)}
    assert len(rests(state, "idle", "")) == 1


def test_the_last_text_is_of_this_turn() -> None:
    state = State("s")
    assert last_text(state) == ""
    state.messages = [
        Message("assistant", (Text("old"),), 0),
        Message("user", (Text("q"),), 0),
    ]
    assert last_text(state) == ""
    state.messages += [
        Message("assistant", (Text("new"),), 0),
        Message("assistant", (), 0),
    ]
    assert last_text(state) == "new"
    tail = (ev.Spoke("t", 1, (Text("tail"),), "end_turn"), ev.Noted("info", "x"))
    assert last_text(state, tail) == "tail"
