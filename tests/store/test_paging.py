"""Cursors come back unchanged or are refused; bounds hold; words are found whatever their case."""

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.making import make_info

from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionQuery
from dragoman.store import rules


@given(st.integers(-(2**63), 2**63 - 1), st.text(min_size=1).filter(str.isprintable))
def test_a_cursor_leads_back_to_its_place(at: int, id: str) -> None:
    cursor = urlsafe_b64encode(f"{at},{id}".encode()).decode()
    assert rules.decode_cursor(cursor) == (at, id)


def test_the_cursor_of_a_session() -> None:
    info = make_info("a,b")  # only the first comma divides
    assert rules.decode_cursor(rules.encode_cursor(info)) == (info.updated_at, "a,b")


@pytest.mark.parametrize(
    "cursor",
    ["x", "é", "!!!!", *(urlsafe_b64encode(one).decode() for one in (
        b"nothing", b"x,y", b",y", b"1.5,y", b"9223372036854775808,y", b"-9223372036854775809,y",
        b"1,\xff\xfe"))],
)  # fmt: skip
def test_what_is_no_cursor_of_ours_is_refused(cursor: str) -> None:
    with pytest.raises(BadInput, match="cursor is not valid"):
        rules.decode_cursor(cursor)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (SessionQuery(limit=0), "limit 0 is too small"),
        (SessionQuery(limit=-3), "limit -3"),
        (SessionQuery(offset=-1), "offset -1 is negative"),
        (SessionQuery(text="x" * 1001), "too long"),
        (SessionQuery(extra={str(n): n for n in range(65)}), "too many conditions"),
        (SessionQuery(cursor="x"), "cursor"),
    ],
)
def test_bounds(query: SessionQuery, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        rules.checked(query)


def test_what_is_asked_for_is_kept_below_the_bound() -> None:
    assert rules.checked(SessionQuery(limit=7, offset=3)) == (7, 3, None)
    assert rules.checked(SessionQuery(limit=10**9))[0] == rules.MAX_LIMIT
    assert rules.checked(SessionQuery(text="x" * 1000))


@pytest.mark.parametrize(
    ("text", "found"),
    [("", True), ("one", True), ("ONE Two", True), ("ne wo", True), ("one three", False),
     ("  two  ", True)],
)  # fmt: skip
def test_each_word_is_somewhere(text: str, found: bool) -> None:
    assert rules.has_words(rules.words_of(text), "The One", "and two") is found
