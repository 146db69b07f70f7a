"""Exit codes of turns."""

import pytest

from dragoman.cli.ends import exit_code


@pytest.mark.parametrize(
    ("outcome", "stop", "code"),
    [
        ("completed", "end_turn", 0),
        ("completed", "refusal", 3),
        ("completed", "length", 3),
        ("failed", "max_steps", 1),
        ("failed", "refusal", 1),
        ("cancelled", "aborted", 130),
        ("interrupted", "aborted", 130),
    ],
)
def test_how_a_turn_ended_is_the_exit_code(outcome: str, stop: str, code: int) -> None:
    assert exit_code(outcome, stop) == code
