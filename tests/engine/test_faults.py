"""What a fault says, with its hint."""

import pytest

from dragoman.engine.faults import BadInput


@pytest.mark.parametrize(
    ("message", "hint", "said"),
    [
        ("No such file.", "Look again.", "No such file. Look again."),
        ("There is no a.txt", "Look again.", "There is no a.txt. Look again."),
        ("There is no a.txt", "", "There is no a.txt"),
        ("It changed:\n+mine\n", "Put it away.", "It changed:\n+mine\nPut it away."),
        ("", "Look again.", "Look again."),
    ],
)
def test_the_hint_follows_the_message(message: str, hint: str, said: str) -> None:
    assert str(BadInput(message, hint)) == said
