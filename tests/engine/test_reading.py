"""Numbers and paths as clients write them: what is none is told apart, never a broken request."""

import pytest

from dragoman.engine.reading import counted, found_at


@pytest.mark.parametrize("text", ["", "-1", "1.0", " 1", "1e3", "²", "١", "9" * 19, "9" * 5_000])
def test_counted_takes_plain_digits_only(text: str) -> None:
    assert counted(text) is None


def test_counted_gives_the_number() -> None:
    assert [counted(text) for text in ("0", "007", "9" * 18)] == [0, 7, 10**18 - 1]


def test_found_at_goes_into_tables_and_lists() -> None:
    value = {"a": [{"b": 1}, (2, 3)], "1": "one"}
    assert found_at(value, []) is value
    assert found_at(value, ["a", "0", "b"]) == 1
    assert found_at(value, ["a", "1", "1"]) == 3
    assert found_at(value, ["1"]) == "one"
    for path in (["a", "2"], ["a", "²"], ["a", "-1"], ["a", "0", "b", "c"], ["x", "y"]):
        assert found_at(value, path) is None
