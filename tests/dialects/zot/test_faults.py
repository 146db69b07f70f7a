"""What a client of zot is told of whatever went wrong."""

import pytest

from dragoman.dialects.zot.faults import explained, told
from dragoman.engine.faults import BadInput, Busy
from dragoman.wire.verbs import BadParams, Cancelled, Crowded, UnknownMethod


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (BadInput("No text.", "Give some."), "No text. Give some."),
        (Busy("Wait."), "agent is busy: Wait."),
        (UnknownMethod("x"), "unknown command"),
        (BadParams("expected str"), "invalid prompt: expected str"),
        (Crowded(), "agent is busy: too many commands wait"),
        (Cancelled(), "the host stopped"),
        (KeyError("k"), "internal error: KeyError: 'k'"),
    ],
)
def test_every_failure_has_its_words(problem: BaseException, said: str) -> None:
    assert explained("prompt", problem) == said


def test_a_busy_agent_is_recognised_by_its_first_words() -> None:
    assert told(Busy("A turn runs.")).startswith("agent is busy:")
