"""Disks and files that fail: what the user is told, and what survives."""

import errno
import os
import sqlite3
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.mounts import mounted
from tests.store.making import ROOT, make_batch, make_info

from dragoman.engine.faults import StoreFailed
from dragoman.store import file
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore, open_store


@pytest.mark.parametrize(
    ("number", "said"), [(errno.EMFILE, "ulimit -n"), (errno.EACCES, "directory writable")]
)
def test_the_advice_fits_what_the_system_said(number: int, said: str) -> None:
    told = str(file.explain(OSError(number, os.strerror(number)), "s.db"))
    assert os.strerror(number) in told and said in told
    assert ("writable" in told) is (number == errno.EACCES)


async def build(path: Path, entries: int = 200) -> None:
    """A sound database of some size, properly closed."""
    store = SqliteStore(path)
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, 1, entries, text="x" * 500))
    await store.close()


async def usable(store: SqliteStore | MemoryStore) -> None:
    epoch = await store.create(make_info("new"), "me")
    await store.append(make_batch("new", epoch))
    assert len(await store.entries("new")) == 1
    await store.close()


async def test_memory_that_was_wished_for_needs_no_words(tmp_path: Path) -> None:
    store, notices = open_store(tmp_path / "s.db", want_file=False)
    assert isinstance(store, MemoryStore)
    assert (store.durable, store.problem, tuple(notices)) == (False, "", ())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["file/in/s.db", "file/s.db", "."])
async def test_where_no_file_can_be_made_sessions_stay_in_memory(
    tmp_path: Path, where: str
) -> None:
    (tmp_path / "file").write_text("not a directory")
    store, notices = open_store(tmp_path / where)
    assert isinstance(store, MemoryStore)
    assert store.durable is False and str(tmp_path) in store.problem
    assert len(notices) == 1
    assert "will not survive" in notices[0] and "choose another" in notices[0]
    await usable(store)


async def test_a_read_only_directory_is_said_and_lived_with(tmp_path: Path) -> None:
    path = tmp_path / "disk" / "s.db"
    path.parent.mkdir()
    await build(path)
    with ExitStack() as after:
        if os.geteuid() == 0:
            after.enter_context(mounted(path.parent, "-o", "bind", str(path.parent)))
            subprocess.run(["mount", "-o", "remount,bind,ro", path.parent], check=True)
        else:
            after.callback(path.parent.chmod, 0o700)
            path.parent.chmod(0o500)
            path.chmod(0o400)
        store, notices = open_store(path)
        assert isinstance(store, MemoryStore) and store.problem
        assert "will not survive" in notices[0]
        await usable(store)


async def test_a_disk_without_room_for_the_mark_is_said_and_lived_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    await build(path)

    def full(*given: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        store, notices = open_store(path)
    assert isinstance(store, MemoryStore) and "No space left" in notices[0]
    whole, notices = open_store(path)
    assert isinstance(whole, SqliteStore) and not notices
    await whole.close()
    assert os.listdir(tmp_path) == ["s.db"]


# --- damage -----------------------------------------------------------------------------------


def zero_start(data: bytes) -> bytes:
    return bytes(100) + data[100:]


def text_instead(data: bytes) -> bytes:
    return b"this is no database at all\n" * 200


def cut_short(data: bytes) -> bytes:
    return data[: len(data) // 2]


def scribble(data: bytes) -> bytes:
    half = len(data) // 2
    return data[: 4096 * 2] + b"\xa5" * (half - 4096 * 2) + data[half:]


@pytest.mark.parametrize("damage", [zero_start, text_instead, cut_short, scribble])
async def test_a_damaged_file_is_moved_aside(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "s.db"
    await build(path)
    (tmp_path / "s.db.lock").write_bytes(file.OPEN)  # as after a crash
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    bad = path.read_bytes()
    store, notices = open_store(path)
    assert isinstance(store, SqliteStore) and store.durable
    (aside,) = tmp_path.glob("s.db.corrupt-*")
    assert aside.read_bytes() == bad
    assert len(notices) == 1 and str(aside) in notices[0] and "damaged" in notices[0]
    assert await store.info("s1") is None
    await usable(store)
    store, notices = open_store(path)
    assert not notices
    assert await store.info("new") is not None
    await store.close()


async def test_two_damaged_files_in_one_second_are_both_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for number in range(3):
        path.write_bytes(b"nonsense %d" % number * 100)
        store, _ = open_store(path)
        await store.close()
    assert len(list(tmp_path.glob("s.db.corrupt-*"))) == 3


async def test_damage_met_while_running_is_told_and_found_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    await build(path, 2000)
    store, notices = open_store(path)
    assert not notices
    monkeypatch.setattr(file, "CHECK_BYTES", 0)  # a suspect file is looked through at any size
    data = path.read_bytes()
    with path.open("r+b") as handle:
        handle.seek(4096 * 30)
        handle.write(b"\xa5" * (len(data) - 4096 * 30))
    with pytest.raises(StoreFailed) as caught:
        await store.entries("s1")
    assert "damaged" in caught.value.message
    await store.close()
    store, notices = open_store(path)
    assert isinstance(store, SqliteStore) and len(notices) == 1
    await usable(store)


async def test_a_crash_alone_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await build(path)
    (tmp_path / "s.db.lock").write_bytes(file.OPEN)
    store, notices = open_store(path)
    assert not notices and len(await store.entries("s1")) == 200
    await store.close()
    assert not (tmp_path / "s.db.lock").exists()


async def test_a_large_file_is_not_looked_through_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    await build(path)
    path.write_bytes(scribble(path.read_bytes()))
    for limit, moved in ((0, 0), (file.CHECK_BYTES, 1)):
        (tmp_path / "s.db.lock").write_bytes(file.OPEN)
        monkeypatch.setattr(file, "CHECK_BYTES", limit)
        store, notices = open_store(path)
        await store.close()
        assert len(notices) == moved


async def test_a_sound_file_is_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    await build(path)
    checks: list[str] = []
    monkeypatch.setattr(file, "check", lambda connection, path, thorough: checks.append(path))
    first = SqliteStore(path)
    second = SqliteStore(path)  # the first is alive, so its mark is no sign of a crash
    await first.close()
    await second.close()
    await SqliteStore(path).close()
    assert checks == []


async def test_a_damaged_file_in_use_is_not_moved(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await build(path)
    user = file.Claim(str(path))
    user.share()
    path.write_bytes(b"nonsense" * 1000)
    store, notices = open_store(path)
    assert isinstance(store, MemoryStore) and "will not survive" in notices[0]
    assert list(tmp_path.glob("s.db.corrupt-*")) == []
    user.release(clean=True)
    await store.close()


# --- full disks -------------------------------------------------------------------------------


async def test_a_full_database_fails_one_batch_and_recovers(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, 1, 2))
    await store.writer.run(lambda c: c.execute("PRAGMA max_page_count = 40").fetchall())
    with pytest.raises(StoreFailed) as caught:
        await store.append(make_batch("s1", epoch, 3, 500, text="x" * 1000, title="half"))
    assert "full" in caught.value.message and "Free some space" in caught.value.hint
    assert [e.seq for e in await store.entries("s1")] == [1, 2]
    info = await store.info("s1")
    assert info is not None and info.title == ""
    await store.writer.run(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())
    assert await store.append(make_batch("s1", epoch, 3, 500, text="x" * 1000)) == 3
    assert len(await store.entries("s1")) == 502
    await store.close()


@pytest.mark.root
async def test_a_full_disk_fails_one_batch_and_recovers(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        store = SqliteStore(disk / "s.db")
        epoch = await store.create(make_info("s1"), "me")
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 500_000)
        seq = 1
        with pytest.raises(StoreFailed) as caught:
            while seq < 5000:
                await store.append(make_batch("s1", epoch, seq, 10, text="x" * 1000))
                seq += 10
        assert str(disk) in caught.value.message and "nothing was saved" in caught.value.message
        assert len(await store.entries("s1")) == seq - 1
        ballast.unlink()
        await store.append(make_batch("s1", epoch, seq, 10, text="x" * 1000))
        assert len(await store.entries("s1")) == seq + 9
        await store.close()
        store, notices = open_store(disk / "s.db")  # type: ignore[assignment]
        assert not notices and len(await store.entries("s1")) == seq + 9
        await store.close()
        (disk / "more").write_bytes(b"x")
        with pytest.raises(OSError):
            (disk / "rest").write_bytes(b"x" * 2_000_000)
        store, notices = open_store(disk / "sub" / "other.db")  # type: ignore[assignment]
        assert isinstance(store, MemoryStore) and "will not survive" in notices[0]
        await store.close()


LIMITED = """
import asyncio, resource, signal, sys
from dragoman.engine.faults import StoreFailed
from dragoman.store.sqlite import SqliteStore
from tests.store.making import ROOT, make_batch, make_info

async def main(path):
    store = SqliteStore(path)
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, 1, 2))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        await store.append(make_batch("s1", epoch, 3, 500, text="x" * 1000))
    except StoreFailed as fault:
        print(fault)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(await store.entries("s1")) == 2
    await store.append(make_batch("s1", epoch, 3, 500, text="x" * 1000))
    assert len(await store.entries("s1")) == 502
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def test_a_file_size_limit_fails_one_batch_and_recovers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "s.db")],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "nothing was saved" in done.stdout


async def test_a_file_locked_too_long_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await build(path)
    store = SqliteStore(path)
    store.writer._connection.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed) as caught:
        await store.put("a", "b", b"c")
    assert "locked" in caught.value.message
    assert await store.info("s1") is not None  # reading goes on
    other.execute("ROLLBACK")
    await store.put("a", "b", b"c")
    other.close()
    await store.close()


async def test_a_link_to_the_store_is_followed(tmp_path: Path) -> None:
    """What belongs to the file lies beside it: sessions were in memory only, the link was moved."""
    there, link = tmp_path / "disk", tmp_path / "s.db"
    there.mkdir()
    link.symlink_to(there / "real.db")
    (there / "real.db").touch()
    for name in ("one", "two"):
        store, notices = open_store(link)
        assert isinstance(store, SqliteStore) and notices == ()
        assert {path.name for path in tmp_path.iterdir()} == {"disk", "s.db"}
        await store.create(make_info(name), "owner")
        await store.close()
    (there / "real.db").write_bytes(b"no database at all, but long enough to be one" * 100)
    store, notices = open_store(link)
    assert isinstance(store, SqliteStore) and "was damaged" in notices[0]
    await store.close()
    assert link.is_symlink() and len(list(there.glob("real.db.corrupt-*"))) == 1


async def test_a_writer_that_cannot_say_what_is_wrong_goes_on_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "s.db")

    def speechless(error: Exception, path: str) -> StoreFailed:
        raise RuntimeError("no words")

    epoch = await store.create(make_info("s1"), "me")
    with monkeypatch.context() as patched:
        patched.setattr(file, "explain", speechless)
        with pytest.raises(RuntimeError, match="no words"):
            await store.writer.run(lambda connection: connection.execute("SELECT nothing"))
    await store.append(make_batch("s1", epoch))
    await usable(store)
