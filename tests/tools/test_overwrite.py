"""A file that is written stays what it was to everybody else."""

import errno
import os
import stat
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import temporary

from dragoman.engine.faults import BadInput
from dragoman.tools import disk, overwrite


async def write(use: Any) -> None:
    await use("read", path="a")
    await use("write", path="a", content="new text, longer than before\n")


async def edit(use: Any) -> None:
    await use("edit", path="a", oldText="old", newText="new text, longer than before")


async def shorten(use: Any) -> None:
    await use("edit", path="a", oldText="old\n", newText="n")


@pytest.fixture(params=[write, edit, shorten])
def change(request: pytest.FixtureRequest) -> Any:
    return request.param


async def test_other_names_of_a_file_see_the_change(use: Any, work: Path, change: Any) -> None:
    path = work / "a"
    path.write_text("old\n")
    path.chmod(0o640)
    os.link(path, work / "b")
    before = path.stat()
    await change(use)
    assert (work / "b").read_text() == path.read_text() != "old\n"
    assert os.path.samestat(path.stat(), before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert temporary(work) == []


async def test_attributes_and_lists_of_rights_stay(use: Any, work: Path, change: Any) -> None:
    path = work / "a"
    path.write_text("old\n")
    entry = struct.Struct("<HHI")
    nobody, everybody = 65534, 0xFFFFFFFF
    rights = [(1, 6, everybody), (2, 4, nobody), (4, 4, everybody), (16, 4, everybody)]
    rights.append((32, 0, everybody))
    acl = struct.pack("<I", 2) + b"".join(entry.pack(*one) for one in rights)
    try:
        os.setxattr(path, "user.mine", b"kept")
        os.setxattr(path, "system.posix_acl_access", acl)
    except OSError as error:
        pytest.skip(f"not on this file system: {error.strerror}")
    mode = path.stat().st_mode
    await change(use)
    assert path.read_text() != "old\n"
    assert os.getxattr(path, "user.mine") == b"kept"
    assert os.getxattr(path, "system.posix_acl_access") == acl
    assert path.stat().st_mode == mode


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY])
async def test_where_it_cannot_be_replaced_it_is_written(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch, change: Any, number: int
) -> None:
    def refused(*args: Any, **more: Any) -> None:
        raise OSError(number, os.strerror(number))

    (work / "a").write_text("old\n")
    before = (work / "a").stat()
    monkeypatch.setattr("dragoman.tools.disk.os.rename", refused)
    await change(use)
    assert (work / "a").read_text() != "old\n"
    assert os.path.samestat((work / "a").stat(), before)
    assert temporary(work) == []


async def test_in_a_folder_that_takes_no_new_file(use: Any, work: Path, change: Any) -> None:
    (work / "a").write_text("old\n")
    work.chmod(0o555)
    try:
        await change(use)
        if os.geteuid():
            with pytest.raises(BadInput, match=r"(?i)permission denied"):
                await use("write", path="fresh", content="x")
    finally:
        work.chmod(0o755)
    assert (work / "a").read_text() != "old\n"


async def test_the_owner_stays_where_it_cannot_be_given(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    def refused(*args: Any) -> None:
        raise PermissionError(errno.EPERM, "no")

    (work / "a").write_text("old\n")
    before = (work / "a").stat()
    monkeypatch.setattr(disk, "take_after", refused)
    await change(use)
    assert os.path.samestat((work / "a").stat(), before)
    assert temporary(work) == []


async def test_a_full_disk_changes_nothing_of_a_file_with_two_names(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, at: int, size: int) -> None:
        os.ftruncate(fd, at + size // 2)  # as far as it went
        raise OSError(errno.ENOSPC, "No space left on device")

    (work / "a").write_text("old\n")
    os.link(work / "a", work / "b")
    monkeypatch.setattr(overwrite.os, "posix_fallocate", full)
    with pytest.raises(BadInput, match="no space left"):
        await edit(use)
    assert (work / "b").read_text() == "old\n"


async def test_a_file_system_that_keeps_no_room_is_no_trouble(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(fd: int, at: int, size: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    (work / "a").write_text("old\n")
    os.link(work / "a", work / "b")
    monkeypatch.setattr(overwrite.os, "posix_fallocate", unknown)
    await edit(use)
    assert (work / "b").read_text() == "new text, longer than before\n"


async def test_another_file_in_its_place_is_not_written(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_text("old\n")
    os.link(work / "a", work / "b")
    real = disk.replaceable

    def swapped(before: os.stat_result, *more: Any) -> bool:
        (work / "other").write_text("old\n")
        os.utime(work / "other", ns=(before.st_mtime_ns, before.st_mtime_ns))
        os.rename(work / "other", work / "a")
        return real(before, *more)

    monkeypatch.setattr(disk, "replaceable", swapped)
    with pytest.raises(BadInput, match="changed while it was edited"):
        await edit(use)
    assert (work / "a").read_text() == (work / "b").read_text() == "old\n"


@pytest.mark.parametrize("name", [".git/config", ".git/hooks/pre-commit", ".vscode/settings.json"])
async def test_no_link_leads_to_what_other_programs_run(
    use: Any, work: Path, change: Any, name: str
) -> None:
    """`ln .git/config a` by a command, and then an edit of `a`, which nobody asks about."""
    (work / ".git" / "hooks").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (work / ".git" / "objects").mkdir()
    (work / ".git" / "refs").mkdir()
    (work / ".vscode").mkdir()
    (work / name).write_text("old\n")
    os.link(work / name, work / "a")
    await change(use)
    assert (work / "a").read_text() != "old\n"
    assert (work / name).read_text() == "old\n"
