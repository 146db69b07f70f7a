"""Slash commands: which one is meant, and what it stands for."""

import pytest

from dragoman.engine.ports.commands import Command, Commands

REVIEW = Command("review", "", "", "Look at $1 and $2; all: $ARGUMENTS.")
PLAIN = Command("plain", "", "", "Do it.\n")


@pytest.mark.parametrize(
    ("command", "words", "filled"),
    [
        (REVIEW, "a b c", "Look at a and b; all: a b c."),
        (REVIEW, "", "Look at  and ; all: ."),
        (PLAIN, "", "Do it.\n"),
        (PLAIN, "now", "Do it.\n\nnow"),
        (Command("own", ""), "x", "\n\nx"),
    ],
)
def test_words_come_into_their_places(command: Command, words: str, filled: str) -> None:
    assert command.filled(words) == filled


def test_the_first_of_two_with_one_name_counts() -> None:
    other = Command("plain", "other")
    found = Commands.of([PLAIN], {"plain": other, "review": REVIEW})
    assert found.found == {"plain": PLAIN, "review": REVIEW}
    assert found.match("/review a b") == (REVIEW, "a b")
    assert found.match("/review\nmore words") == (REVIEW, "more words")
    assert found.match("/nothing") is None and found.match("review") is None
