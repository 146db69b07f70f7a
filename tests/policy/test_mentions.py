"""Paths that a command names: in its words, in its text, and wherever a `cd` may have led."""

from pathlib import Path

import pytest

from dragoman.policy import mentions
from dragoman.policy.commands import assess
from dragoman.policy.mentions import Mention, mentioned


def found(command: str, cwd: Path) -> list[Mention]:
    return list(mentioned(assess(command), command, str(cwd), "/home/ann"))


def test_what_configures_a_repository_may_write_its_configuration(tmp_path: Path) -> None:
    config = Mention(str(tmp_path / ".git/config"), may=True)
    for command in ("git config core.pager x", "git remote add a b", "git submodule init"):
        assert config in found(command, tmp_path)
    assert config not in found("git status", tmp_path)
    assert config not in found("git", tmp_path)
    below = Mention(str(tmp_path / "sub/.git/config"), may=True)
    assert below in found("cd sub && git config a.b c", tmp_path)


def test_a_command_that_cannot_be_read_is_searched_for_paths(tmp_path: Path) -> None:
    text = "cd /etc; for f in $(ls); do cat ./$f; done"
    paths = {one.path for one in found(text, tmp_path)}
    assert "/etc" in paths
    assert "/etc/./" in paths and f"{tmp_path}/./" in paths  # nobody knows whether it went there
    assert all(one.may for one in found(text, tmp_path))


def test_only_so_many_places_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mentions, "_PLACES", 2)
    paths = {one.path for one in found("cd /a && cd /b && cat x.txt", tmp_path)}
    assert f"{tmp_path}/x.txt" in paths and "/a/x.txt" in paths and "/b/x.txt" not in paths
    again = [one.path for one in found("cd /a && cd /a && cat x.txt", tmp_path)]
    assert again.count("/a/x.txt") == 1


@pytest.mark.parametrize(
    ("command", "path", "there"),
    [
        ("gcc -I/usr/include a.c", "/usr/include", True),
        ("curl https://host/etc/passwd", "/etc/passwd", False),
        ("cat ~/.ssh/id", "/home/ann/.ssh/id", True),
        ("cat $HOME/x", "/home/ann/x", True),
        ("cat '$HOMELY/x'", "/home/ann/x", False),
        ("echo hi > /dev/null", "/dev/null", False),
        ("echo hi > out.txt", "out.txt", True),
        ("cat < in.txt", "in.txt", True),
        ("tar --file=/x/y.tar -t", "/x/y.tar", True),
    ],
)
def test_words_that_are_paths(command: str, path: str, there: bool, tmp_path: Path) -> None:
    whole = path if path.startswith("/") else f"{tmp_path}/{path}"
    assert (whole in {one.path for one in found(command, tmp_path)}) is there


def test_a_plain_word_is_a_path_when_it_is_there(tmp_path: Path) -> None:
    assert found("cat notes", tmp_path) == []
    (tmp_path / "notes").symlink_to("/etc/passwd")
    assert [one.path for one in found("cat notes", tmp_path)] == [f"{tmp_path}/notes"]
