"""Opening a path exactly: with the kernel's help, and step by step, a link is a link."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.policy import interpreters, opening, shells
from dragoman.policy.opening import open_exact, walk_directory, walk_open

WAYS = [open_exact, walk_open]


@pytest.mark.parametrize("way", WAYS)
def test_a_link_anywhere_on_the_way_is_refused(way: Callable[..., int], tmp_path: Path) -> None:
    real = tmp_path.resolve()
    (real / "folder").mkdir()
    (real / "folder/file").write_text("x")
    (real / "link").symlink_to(real / "folder")
    (real / "other").symlink_to(real / "folder/file")
    fd = way(f"{real}/folder/file", os.O_RDONLY)
    assert os.read(fd, 9) == b"x"
    os.close(fd)
    for path in ("link/file", "other"):
        with pytest.raises(OSError) as caught:
            way(f"{real}/{path}", os.O_RDONLY)
        assert caught.value.errno == errno.ELOOP
    with pytest.raises(NotADirectoryError):
        way(f"{real}/folder/file/x", os.O_RDONLY)
    with pytest.raises(NotADirectoryError):
        way(f"{real}/folder/file", os.O_RDONLY | os.O_DIRECTORY)
    with pytest.raises(OSError) as caught:
        way(f"{real}/other", os.O_RDONLY | os.O_DIRECTORY)
    assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)
    root = way("/", os.O_RDONLY | os.O_DIRECTORY)
    assert os.fstat(root).st_ino == os.stat("/").st_ino
    os.close(root)


def test_where_the_kernel_does_not_help_the_walk_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path.resolve() / "f"
    file.write_text("x")

    def denied(*given: object) -> int:
        raise OSError(errno.EPERM, "a filter")

    monkeypatch.setattr(opening, "_opener", denied)
    os.close(open_exact(str(file), os.O_RDONLY))

    def broken(*given: object) -> int:
        raise OSError(errno.EIO, "a disk")

    monkeypatch.setattr(opening, "_opener", broken)
    with pytest.raises(OSError, match="a disk"):
        open_exact(str(file), os.O_RDONLY)
    monkeypatch.setattr(opening, "_opener", False)
    os.close(open_exact(str(file), os.O_RDONLY))


def test_other_systems_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    named = type("Named", (), {"sysname": "Darwin"})
    monkeypatch.setattr(os, "uname", lambda: named)
    assert opening._probe() is None


def test_folders_are_made_with_their_own_mode(tmp_path: Path) -> None:
    real = tmp_path.resolve()
    before = os.umask(0o077)
    try:
        os.close(walk_directory(f"{real}/a/b", create=0o755))
    finally:
        os.umask(before)
    assert (real / "a/b").stat().st_mode & 0o777 == 0o755
    with pytest.raises(FileNotFoundError):
        walk_directory(f"{real}/none/b")
    (real / "file").touch()
    with pytest.raises(NotADirectoryError):
        walk_directory(f"{real}/file/b", create=0o755)


def test_an_environment_that_names_no_installation_stands_for_none(tmp_path: Path) -> None:
    assert interpreters.installation(str(tmp_path)) == ""
    for said in ("", "home = relative/bin\n", f"home = {tmp_path}/bin\n", "home = /proc/bin\n"):
        (tmp_path / "pyvenv.cfg").write_text(said)
        assert interpreters.installation(str(tmp_path)) == ""


def test_without_bash_it_is_the_shell_that_every_system_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shells, "_BASH", ("/nowhere/bash",))
    shells.shell.cache_clear()
    try:
        assert shells.shell() == ("/bin/sh", "-c")
    finally:
        shells.shell.cache_clear()
