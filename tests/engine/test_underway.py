"""What somebody sees who joins in the middle of a step."""

import asyncio

import pytest

from dragoman.engine import events as ev
from dragoman.engine.work import Draft, Underway


def test_a_draft_repeats_what_was_streamed_in_its_order() -> None:
    draft = Draft(2)
    draft.opened = True
    for thought, text in ((True, "hm"), (True, "m"), (False, "a"), (False, "b"), (True, "!")):
        draft.add(thought, text)
    draft.calls = {"c1": "echo", "c2": "ls"}
    draft.args = {"c1": ['{"a"', ":1}"]}
    draft.ready = {"c1"}
    draft.progress = {"c0": "half"}
    bodies = [event.body for event in draft.events("s", "t", 5)]
    assert bodies == [
        ev.StepBegan("t", 2),
        ev.StreamOpened("t", 2),
        ev.ThoughtDelta("t", "hmm", 2),
        ev.TextDelta("t", "ab", 2),
        ev.ThoughtDelta("t", "!", 2),
        ev.CallDrafted("t", "c1", "echo"),
        ev.CallArgs("t", "c1", '{"a":1}'),
        ev.CallReady("t", "c1"),
        ev.CallDrafted("t", "c2", "ls"),
        ev.CallArgs("t", "c2", ""),
        ev.Progress("t", "c0", "half"),
    ]
    draft.said()
    assert [event.body for event in draft.events("s", "t", 5)] == [ev.Progress("t", "c0", "half")]


async def test_a_closed_turn_keeps_nothing_more() -> None:
    turn = Underway("t")
    assert not turn.stops()
    turn.check_open()
    turn.closed = True
    assert turn.stops()
    with pytest.raises(asyncio.CancelledError):
        turn.check_open()
