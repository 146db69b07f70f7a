"""When git, which an agent may run to look, runs nothing but itself."""

import os
from pathlib import Path

import pytest

from dragoman.policy.guarded import locked, repositories
from dragoman.policy.repository import harmless_change, tame

PLAIN = "[core]\n\tbare = false\n# a comment\n\n[user]\n\tname = Me\n"


def made(tmp_path: Path, config: str | None = PLAIN) -> Path:
    (tmp_path / ".git").mkdir()
    if config is not None:
        (tmp_path / ".git" / "config").write_text(config)
    return tmp_path


@pytest.mark.parametrize("config", [None, "", PLAIN, "; only a comment\n"])
def test_an_ordinary_repository_tame(tmp_path: Path, config: str | None) -> None:
    place = made(tmp_path, config)
    deep = place / "a" / "b"
    deep.mkdir(parents=True)
    assert tame(str(place)) and tame(str(deep))


@pytest.mark.parametrize(
    "config",
    [
        "[core]\n\tfsmonitor = ./evil\n",
        "[core]\n\tpager = ./evil\n",
        '[filter "x"]\n\tclean = ./evil\n',
        '[diff "x"]\n\ttextconv = ./evil\n',
        "[alias]\n\tstatus = !./evil\n",
        "[include]\n\tpath = ../evil\n",
        '[includeIf "gitdir:/"]\n\tpath = ../evil\n',
        "[core]\n\tbare = false \\\nfsmonitor = ./evil\n",
        "stray = 1\n",
        '[submodule "x"]\n\tupdate = !./evil\n',
        "[core]\n" + "#" * 2_000_000,
    ],
)
def test_a_configuration_that_runs_something_is_not(tmp_path: Path, config: str) -> None:
    assert not tame(str(made(tmp_path, config)))


def test_what_lies_elsewhere_is_not_looked_at_and_not_tame(tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(tmp_path)
    filed = tmp_path / "filed"
    filed.mkdir()
    (filed / ".git").write_text("gitdir: ../x\n")
    for name in ("commondir", "config.worktree"):
        folder = tmp_path / name
        folder.mkdir()
        (made(folder) / ".git" / name).write_text("x")
        assert not tame(str(folder))
    bare = tmp_path / "bare"
    (bare / "objects").mkdir(parents=True)
    (bare / "HEAD").write_text("ref: x\n")
    folder = tmp_path / "bytes"
    folder.mkdir()
    (made(folder, None) / ".git" / "config").write_bytes(b"\xff\xfe")
    for place in (linked, filed, bare, folder):
        assert not tame(str(place)), place


@pytest.mark.parametrize(
    ("old", "new", "fresh", "harmless"),
    [
        (b"", PLAIN.encode(), True, True),
        (PLAIN.encode(), PLAIN.encode() + b"[core]\n\tfsmonitor = x\n", False, False),
        (
            b"[core]\n\tfsmonitor = x\n",
            b"[core]\n\tfsmonitor = x\n[user]\n\tname = a\n",
            False,
            True,
        ),
        (b"", b'[remote "o"]\n\turl = https://x.test\n', True, True),
        (b"", b'[remote "o"]\n\turl = https://x.test\n', False, False),
        (b"\xff", b"", False, False),
        (b"", b"\xff", False, False),
    ],
)
def test_a_change_may_add_what_runs_nothing(
    old: bytes, new: bytes, fresh: bool, harmless: bool
) -> None:
    assert harmless_change(old, new, fresh=fresh) is harmless


def test_what_is_locked_while_a_command_runs(tmp_path: Path) -> None:
    root = os.path.realpath(made(tmp_path))
    (tmp_path / ".git" / "modules" / "sub").mkdir(parents=True)
    (tmp_path / ".git" / "hooks").mkdir()
    own = f"{root}/.git"
    assert list(repositories(root)) == [own, f"{own}/modules/sub"]
    found = locked([root])
    assert own in found and f"{own}/config" in found and f"{own}/hooks" in found
    assert locked([root, f"{own}/hooks"]) and f"{own}/hooks" not in locked([root, f"{own}/hooks"])
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_text("gitdir: ../.git/modules/sub\n")
    assert list(repositories(str(other))) == []
    assert locked([str(other)]) == (str(other / ".git"),)
    assert locked([str(tmp_path / "none")]) == ()
