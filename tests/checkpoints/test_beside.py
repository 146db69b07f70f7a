"""What a command did, told apart from what others did meanwhile."""

import pytest

from dragoman.checkpoints.beside import told_apart
from dragoman.checkpoints.database import FileChange

Changes = list[FileChange]


def change(before: str, after: str) -> FileChange:
    return FileChange("f", before, after)


@pytest.mark.parametrize(
    ("found", "theirs", "doubtful", "known", "own", "others"),
    [
        ([change("a", "b")], [], (), (), [change("a", "b")], []),
        ([change("a", "b")], [], ("f",), (), [change("a", "b")], [change("a", "b")]),
        ([change("a", "c")], [change("a", "b"), change("b", "c")], (), (), [], []),
        ([change("a", "c")], [change("a", "b")], (), (), [change("b", "c")], []),  # theirs first
        ([change("a", "c")], [change("b", "c")], (), (), [change("a", "b")], []),  # ours first
        ([change("a", "c")], [change("b", "x")], (), (), [change("a", "c")], [change("b", "x")]),
        (
            [change("a", "c")], [change("a", "b"), change("x", "c")], (), (),
            [change("a", "c")], [change("a", "c")],
        ),  # something was between theirs
    ],
)  # fmt: skip
def test_what_is_whose(
    found: Changes, theirs: Changes, doubtful: tuple[str, ...], known: tuple[str, ...],
    own: Changes, others: Changes,
) -> None:  # fmt: skip
    told = told_apart(found, theirs, doubtful, known)
    assert (told.own, told.others) == (own, others)
