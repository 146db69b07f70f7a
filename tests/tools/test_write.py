"""`write`: all or nothing."""

import asyncio
import contextlib
import os
import shutil
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import Editor, Env, said, temporary

from dragoman.engine.content import Diff
from dragoman.engine.faults import BadInput, Refused
from dragoman.tools import disk
from dragoman.tools.write import Write


async def test_a_new_file_with_its_directories(use: Any, work: Path) -> None:
    old = os.umask(0o077)
    try:
        outcome = await use("write", path="a/b/c.txt", content="one\ntwo\n")
    finally:
        os.umask(old)
    path = work / "a" / "b" / "c.txt"
    assert path.read_text() == "one\ntwo\n"
    assert said(outcome) == f"Created {path}: 2 lines, 8 bytes."
    assert outcome.detail.diffs == (Diff(str(path), None, "one\ntwo\n"),)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
    assert temporary(path.parent) == []


async def test_an_existing_file_keeps_its_mode(use: Any, work: Path) -> None:
    path = work / "run.sh"
    path.write_text("old")
    path.chmod(0o750)
    await use("read", path="run.sh")
    outcome = await use("write", path="run.sh", content="")
    assert path.read_text() == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert outcome.detail.diffs == (Diff(str(path), "old", ""),)


async def test_a_link_inside_leads_to_its_file(use: Any, work: Path) -> None:
    (work / "a").write_text("old")
    (work / "link").symlink_to("a")
    await use("read", path="link")
    await use("write", path="link", content="new")
    assert (work / "link").is_symlink()
    assert (work / "a").read_text() == "new"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({"content": "x"}, "path is required"),
        ({"path": "x"}, "content is required"),
        ({"path": "dir", "content": "x"}, "is a directory"),
        ({"path": "file/x", "content": "x"}, "not a directory"),
        ({"path": "x", "content": "\ud800"}, "content"),
        ({"path": "x", "content": "x" * 10_485_761}, "limit"),
    ],
)
async def test_what_cannot_be_written(use: Any, work: Path, args: Any, sentence: str) -> None:
    (work / "dir").mkdir()
    (work / "file").write_text("x")
    with pytest.raises(BadInput) as error:
        await use("write", **args)
    assert sentence in str(error.value)
    assert temporary(work) == []


async def test_outside_is_refused(use: Any, work: Path, tmp_path: Path) -> None:
    (work / "out").symlink_to(tmp_path)
    for path in ("../x", "out/x", "/etc/x", "/dev/null", str(tmp_path / "data" / "config.toml")):
        with pytest.raises(Refused):
            await use("write", path=path, content="x")
    assert sorted(os.listdir(tmp_path)) == ["work"]


async def test_a_cancelled_write_leaves_nothing(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_text("old")
    reached, go_on = threading.Event(), threading.Event()
    real = disk.fill

    def slow(*args: Any) -> None:
        real(*args)
        reached.set()
        assert go_on.wait(60)

    monkeypatch.setattr(disk, "fill", slow)
    await use("read", path="a")
    task = asyncio.ensure_future(use("write", path="a", content="new" * 100_000))
    assert await asyncio.to_thread(reached.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (work / "a").read_text() == "old"
    assert os.listdir(work) == ["a"]


async def test_a_full_disk_leaves_the_old_file(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_text("old")

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "fill", full)
    await use("read", path="a")
    with pytest.raises(BadInput, match="no space left on device"):
        await use("write", path="a", content="new")
    assert (work / "a").read_text() == "old"
    assert os.listdir(work) == ["a"]


async def test_no_swapped_directory_is_ever_written_through(
    use: Any, work: Path, tmp_path: Path
) -> None:
    """A thread swaps the directory for a link to another one while files are written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (work / "dir").mkdir()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):  # a write may make the directory anew
                shutil.rmtree(work / "dir")
                os.symlink(outside, work / "dir")
                os.unlink(work / "dir")
                os.mkdir(work / "dir")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # the two take turns all the time
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(300):
            try:
                await use("write", path=f"dir/{number % 7}", content="x")
            except (Refused, BadInput):
                continue
    finally:
        stop.set()
        thread.join(60)
        sys.setswitchinterval(interval)
    assert os.listdir(outside) == []


async def test_an_editor_writes_instead(use: Any, work: Path, env: Env) -> None:
    (work / "a.txt").write_text("on disk")
    env.files = editor = Editor(a="buffer")
    outcome = await use("write", path="a.txt", content="new")
    assert editor.files == {"a": "new"}
    assert (work / "a.txt").read_text() == "on disk"
    assert outcome.detail.diffs[0].old == "buffer"


async def test_one_is_not_many(use: Any, work: Path) -> None:
    assert said(await use("write", path="one.txt", content="x")).endswith("1 line, 1 byte.")
    tool = Write(lambda env: None)  # type: ignore[arg-type, return-value]
    assert tool.summary({"path": "a", "content": "x"}) == "Write a (1 character)"


async def test_what_nobody_read_is_not_replaced(use: Any, work: Path) -> None:
    (work / "a").write_text("theirs")
    with pytest.raises(BadInput, match="was not read"):
        await use("write", path="a", content="mine")
    assert (work / "a").read_text() == "theirs"
    await use("read", path="a")
    (work / "a").write_text("theirs again")
    with pytest.raises(BadInput, match="changed since it was read"):
        await use("write", path="a", content="mine")
    with pytest.raises(BadInput, match="changed since it was read"):
        await use("edit", path="a", edits=[{"oldText": "again", "newText": "x"}])
    await use("read", path="a")
    await use("edit", path="a", edits=[{"oldText": "again", "newText": "x"}])
    await use("write", path="a", content="mine")  # it knows what it wrote
    await use("write", path="a", content="mine too")
    (work / "empty").touch()
    await use("write", path="empty", content="nothing is lost")
    (work / "a").unlink()
    await use("write", path="a", content="anew")


async def test_a_file_that_changes_between_the_look_and_the_write_stays(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.tools import write

    usual = write._stamp

    def quick(path: str) -> Any:
        found = usual(path)
        Path(path).write_text("somebody else's, and longer")
        return found

    (work / "new.txt").write_text("")
    monkeypatch.setattr(write, "_stamp", quick)
    for name in ("new.txt", "none.txt"):
        with pytest.raises(BadInput):
            await use("write", path=name, content="mine")
        assert (work / name).read_text() == "somebody else's, and longer"
