"""One row that cannot be read hides no other session, and is told."""

import asyncio
import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.engine.faults import StoreFailed
from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.store import changes
from dragoman.store.lists import damaged_rows
from dragoman.store.sqlite import open_store

RUBBISH = [b"", b"\xff\xfe", b"{", b"null", b"[]", b'{"id": 5}', b"\x00" * 40]


async def stored(path: Path, count: int) -> None:
    store, notices = open_store(path)
    assert not notices
    for n in range(count):
        info = SessionInfo(f"s{n}", "default", "/", "demo/demo", "supervised", "idle", n, n)
        await store.create(info, "me")
    await store.close()


def damage(path: Path, *rows: tuple[str, bytes]) -> None:
    with sqlite3.connect(path) as connection:
        for id, data in rows:
            connection.execute("UPDATE sessions SET info = ? WHERE id = ?", (data, id))
    connection.close()


@pytest.mark.parametrize("data", RUBBISH)
async def test_the_others_are_listed(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "sessions.db"
    await stored(path, 5)
    damage(path, ("s2", data))
    store, _ = open_store(path)
    page = await store.list(SessionQuery())
    assert [info.id for info in page.sessions] == ["s4", "s3", "s1", "s0"] and page.damaged == 1
    # page by page, also where a page holds nothing but the damaged one
    seen, cursor = [], ""
    for _ in range(9):
        page = await store.list(SessionQuery(limit=1, cursor=cursor))
        seen += [info.id for info in page.sessions]
        cursor = page.cursor
        if not cursor:
            break
    assert seen == ["s4", "s3", "s1", "s0"]
    assert (await store.list(SessionQuery(extra={"odd": 1}))).sessions == ()
    await store.close()
    with sqlite3.connect(path) as connection:
        assert damaged_rows(connection) == ["s2"]
    connection.close()


async def test_the_commands_tell_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    await stored(data / "sessions.db", 3)
    damage(data / "sessions.db", ("s1", b"{"))

    def dragoman(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dragoman", *words, "--config-dir", str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    listed = dragoman("sessions")
    assert listed.returncode == 0, listed.stderr
    assert "s0" in listed.stdout and "s2" in listed.stdout
    assert "1 session cannot be read" in listed.stderr
    said = dragoman("doctor")
    assert "the row of session s1 is damaged" in said.stdout + said.stderr


async def test_a_disk_that_takes_no_mark_ends_no_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    await stored(path, 1)
    with sqlite3.connect(path) as connection:
        (num,) = connection.execute("SELECT num FROM sessions").fetchone()
        connection.execute(changes.INSERT_EVENT, (1, num, 1, 0, "", b"\xff"))
    connection.close()
    store, _ = open_store(path)

    def fails(*args: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", fails)
        for _ in range(2):
            with pytest.raises(StoreFailed, match="damaged"):
                await asyncio.wait_for(store.entries("s0"), 60)
    await store.close()
