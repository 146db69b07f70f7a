"""Markdown that is still being written, cut into pieces that do not change any more."""

import random

import pytest

from dragoman.tui.chunks import MOST, Chunk, Splitter

PARTS = [
    "one line\n",
    "\n",
    "```python\n",
    "```\n",
    "~~~\n",
    "- a point\n",
    "x" * 700 + "\n",
    "words " * 900,
]


def test_a_blank_line_ends_a_piece_but_not_in_code() -> None:
    one = Splitter()
    assert one.feed("first\n\nsecond") == [Chunk("first\n\n")]
    code = Splitter()
    assert code.feed("```\na\n\nb\n") == []
    assert code.feed("```\n\nafter") == [Chunk("```\na\n\nb\n```\n\n")]
    assert code.last.text == "after"


def test_long_code_is_cut_and_each_piece_knows_its_fence() -> None:
    one = Splitter()
    ready = one.feed("```python\n" + "a = 1\n" * 3_000)
    assert len(ready) > 1 and all(len(piece.text) <= MOST for piece in ready)
    assert ready[0].opener == "" and {piece.opener for piece in ready[1:]} == {"```python"}
    assert one.last.opener == "```python"
    assert all(piece.text.endswith("\n") for piece in ready)  # cut at lines


def test_one_endless_line_of_code_is_cut_at_spaces_and_stays_code() -> None:
    one = Splitter()
    ready = one.feed("```\n" + "word " * 3_000 + "\nafter\n```\n\nprose\n\nmore")
    long = [piece for piece in ready if "word" in piece.text]
    assert len(long) >= 3 and {piece.opener for piece in long} == {"```"}
    assert ready[-1].text.startswith("prose") and ready[-1].opener == ""


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_however_the_text_comes(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choice(PARTS) for _ in range(60))
    one = Splitter()
    ready: list[Chunk] = []
    at = 0
    while at < len(text):
        size = chance.choice([1, 5, 80, 5_000])
        ready += one.feed(text[at : at + size])
        at += size
    whole = "".join(piece.text for piece in ready) + one.tail
    assert whole.split() == text.split()  # only blank lines between pieces are nobody's
    assert all(len(piece.text) <= 2 * MOST for piece in ready)
