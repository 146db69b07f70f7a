"""By which words a command may be remembered."""

import pytest

from dragoman.engine.question import first_words


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        ("git status -s", "git status"),
        ("git -C /x status", ""),
        ("npm run build --fast", "npm run build"),
        ("npm run", ""),
        ("npm run -s build", ""),
        ("make", "make"),
        ("make -j4", "make -j4"),
        ("make -j 4 all", ""),
        ("git", ""),
        ("python tool.py --x", "python tool.py"),
        ("python -m pytest -q", "python -m pytest"),
        ("python -m", ""),
        ("python -c 1", ""),
        ("python", ""),
        ("ls -l", "ls"),
        ("/bin/ls -l", "/bin/ls"),
        ("rm -rf /", ""),
        ("/bin/rm x", ""),
        ("sudo ls", ""),
        ("env ls", ""),
        ("A=1 ls", ""),
        ("", ""),
    ],
)
def test_enough_words_and_not_more(commands: str, words: str) -> None:
    assert first_words([tuple(commands.split())]) == tuple(words.split())


def test_several_commands_only_when_all_begin_the_same() -> None:
    same, other = ("git", "log", "-1"), ("git", "diff")
    assert first_words([same, ("git", "log", "x")]) == ("git", "log")
    assert first_words([same, other]) == ()
    assert first_words([same, ("rm", "x")]) == ()
    assert first_words([]) == ()
