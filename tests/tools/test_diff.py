"""Changes shown by lines: what is shown, read back, is the old and the new text."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.diff import render, trim

OLD = [str(n) for n in range(12)]


def test_context_and_what_is_left_out() -> None:
    assert render(OLD, [(5, 6, ["five"])]) == "...\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n..."


def test_at_both_ends_nothing_is_left_out() -> None:
    assert render(["a", "b"], [(0, 1, ["x"])]) == "-a\n+x\n b"
    assert render(["a", "b", ""], [(2, 2, ["c"])]) == " a\n b\n+c"


def test_two_changes_that_are_near_share_their_context() -> None:
    shown = render(OLD, [(2, 3, ["two"]), (5, 6, ["five"])], 2)
    assert shown == " 0\n 1\n-2\n+two\n 3\n 4\n-5\n+five\n 6\n 7\n..."


def test_a_huge_change_is_not_compared_line_by_line() -> None:
    old, new = [f"o{n}" for n in range(500)], [f"n{n}" for n in range(500)]
    shown = render(old, [(0, 500, new)]).split("\n")
    assert shown == ["-" + line for line in old] + ["+" + line for line in new]


def test_trim_keeps_only_what_differs() -> None:
    assert trim(10, ["a", "b", "c"], ["a", "x", "c"]) == (11, 12, ["x"])
    assert trim(0, ["a"], ["a", "a"]) == (1, 1, ["a"])
    assert trim(0, ["a", "b"], ["a", "b"]) == (2, 2, [])
    assert trim(3, [], ["n"]) == (3, 3, ["n"])


lines = st.lists(st.sampled_from("abc"), max_size=8)


@given(lines, lines, lines, lines)
def test_a_change_shown_reads_back_as_both_texts(
    before: list[str], old: list[str], new: list[str], after: list[str]
) -> None:
    start, end, put = trim(len(before), old, new)
    whole = [*before, *old, *after]
    assert [*whole[:start], *put, *whole[end:]] == [*before, *new, *after]
    shown = render(whole, [(start, end, put)], 100)
    rows = shown.split("\n") if shown else []
    assert [row[1:] for row in rows if row[0] != "+"] == whole
    assert [row[1:] for row in rows if row[0] != "-"] == [*before, *new, *after]
