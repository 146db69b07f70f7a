"""Reading commands: what is plain, and the reason why something else is not."""

import pytest

from dragoman.policy import reading
from dragoman.policy.commands import assess
from dragoman.policy.reading import Redirect, Unknown, read


def test_programs_words_and_redirections() -> None:
    first, second, third = read("ls -l 'a b' > out.txt 2>&1 && cat \"c d\" | wc -l")
    assert first.argv == ("ls", "-l", "a b") and first.joined == ""
    assert first.redirects == (Redirect(">", "out.txt"), Redirect(">&", "1", True))
    assert (second.argv, second.joined) == (("cat", "c d"), "&&")
    assert (third.argv, third.joined) == (("wc", "-l"), "|")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("> out.txt", "redirection"),
        ("a | > out.txt", "redirection"),
        ("> out.txt cat", "redirection"),
        ("a && && b", "missing"),
        ("; a", "missing"),
        ("| a", "missing"),
        ("x*.sh y", "depends on the files"),
        ("./?x", "depends on the files"),
        ("env x*.sh", "depends on the files"),
        ("sh -c x*.sh", "depends on the files"),
        ("echo $(id)", ""),
        ("if true; then a; fi", ""),
        ("x=1 a", ""),
        ("a <<< b", ""),
        ("a &> b", ""),
    ],
)
def test_what_is_not_plain_has_a_reason(command: str, reason: str) -> None:
    found = assess(command)
    assert found.kind == "unknown" and reason in found.reason and found.reason


def test_the_bounds_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unknown, match="longer than"):
        read("a" * (reading.LONGEST + 1))
    with pytest.raises(Unknown, match="more than"):
        read("; ".join(["a"] * (reading.MOST + 1)))
    deep = "nohup " * 40 + "ls"
    assert assess(deep).kind == "unknown" and "too deeply" in assess(deep).reason


def test_readers_that_disagree_know_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_by_grammar", lambda command: [(("rm",), ())])
    with pytest.raises(Unknown, match="more than one way"):
        read("ls")
