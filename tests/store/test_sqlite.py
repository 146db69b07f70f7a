"""What only the store in a file does: grouping, sharing, growing, folding."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.store.making import (
    ROOT,
    make_answer,
    make_ask,
    make_batch,
    make_entries,
    make_info,
)

from dragoman.engine.faults import (
    AlreadySettled,
    BadInput,
    InUse,
    StaleEpoch,
    StoreFailed,
)
from dragoman.engine.info import SessionQuery
from dragoman.kernel import ASK_OPEN_FILE
from dragoman.store import file
from dragoman.store.lists import Where, ordered
from dragoman.store.migrations import APPLICATION_ID, STEPS, Foreign, migrate
from dragoman.store.rows import INDEXED, INFO_COLUMNS, info_values
from dragoman.store.sqlite import SqliteStore, open_store


class Gate:
    """Holds a store's writer thread in a job until it is let go."""

    def __init__(self, store: SqliteStore) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()
        self._store = store

    def __enter__(self) -> "Gate":
        self.task = asyncio.ensure_future(self._store.writer.run(self._hold))
        return self

    def __exit__(self, *exc: object) -> None:
        self.leave.set()

    def _hold(self, connection: sqlite3.Connection) -> None:
        self.entered.set()
        assert self.leave.wait(60)


async def queue_up(store: SqliteStore, works: list[Any]) -> list[Any]:
    """Have all of these wait in the writer's queue at once, then let it go on."""
    with Gate(store) as gate:
        await asyncio.sleep(0)  # the gate's job enters the queue
        assert await asyncio.to_thread(gate.entered.wait, 10)
        tasks = [asyncio.ensure_future(work) for work in works]
        await asyncio.sleep(0)
    await gate.task
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("count", "transactions"), [(1, 1), (100, 1), (256, 1), (257, 2)])
async def test_what_waits_is_written_in_one_transaction(
    tmp_path: Path, count: int, transactions: int
) -> None:
    store = SqliteStore(tmp_path / "s.db")
    names = [f"s{n}" for n in range(count)]
    epochs = [await store.create(make_info(name), "me") for name in names]
    before = store.commits
    works = [store.append(make_batch(*pair, 1, 2)) for pair in zip(names, epochs, strict=True)]
    results = await queue_up(store, works)
    assert store.commits - before - 1 == transactions  # one more is the gate's own
    assert results == [1 + 2 * n for n in range(count)]
    await store.close()


async def test_one_bad_batch_of_a_group_is_undone_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epochs = {f"s{n}": await store.create(make_info(f"s{n}"), "me") for n in range(6)}
    stale = epochs["s2"] - 1
    broken = make_batch("s4", epochs["s4"], 1, 2)
    broken.entries[1] = type(broken.entries[1])(2, 1, "noted", object())  # type: ignore[index, arg-type]
    works = [
        store.append(make_batch("s0", epochs["s0"])),
        store.append(make_batch("s1", epochs["s1"], asked=[make_ask("a", "s1")])),
        store.append(make_batch("s2", stale)),
        store.append(make_batch("s1", epochs["s1"], 2, settled=[make_answer("a", "deny")])),
        store.append(make_batch("s1", epochs["s1"], 3, settled=[make_answer("a")])),
        store.append(make_batch("s3", epochs["s3"])),
    ]
    before = store.commits
    results = await queue_up(store, works)
    assert [type(r).__name__ for r in results] == [
        "int",
        "int",
        "StaleEpoch",
        "int",
        "AlreadySettled",
        "int",
    ]
    assert isinstance(results[2], StaleEpoch) and isinstance(results[4], AlreadySettled)
    assert store.commits - before == 2
    # An error of the database itself undoes the group; the others are then written one by one.
    works = [store.append(make_batch("s5", epochs["s5"])), store.append(broken)]
    results = await queue_up(store, works)
    assert isinstance(results[0], int) and isinstance(results[1], StoreFailed)
    assert len(await store.entries("s5")) == 1
    assert list(await store.entries("s4")) == []
    every = await store.entries_since(0, 100)
    assert [e.gseq for e in every] == list(range(1, len(every) + 1))
    await store.close()


async def test_a_commit_wakes_the_loop_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epochs = [await store.create(make_info(f"s{n}"), "me") for n in range(50)]
    loop = asyncio.get_running_loop()
    calls: list[int] = []
    original = loop.call_soon_threadsafe

    def counted(callback: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread().name == "dragoman-writer":
            calls.append(len(args[0]))
        return original(callback, *args, **kwargs)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    await queue_up(store, [store.append(make_batch(f"s{n}", e)) for n, e in enumerate(epochs)])
    assert calls == [1, 50]
    await store.close()


async def test_a_cancelled_caller_leaves_the_store_sound(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    epoch = await store.create(make_info("s1"), "me")
    with Gate(store) as gate:
        await asyncio.sleep(0)
        assert await asyncio.to_thread(gate.entered.wait, 10)
        task = asyncio.ensure_future(store.append(make_batch("s1", epoch)))
        await asyncio.sleep(0)
        task.cancel()
    await gate.task
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.append(make_batch("s1", epoch, 2)) == 2
    await store.close()


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "s.db"
    store, notices = open_store(path)
    assert isinstance(store, SqliteStore) and store.durable and not store.problem and not notices
    epoch = await store.create(make_info("s1"), "one")
    await store.append(make_batch("s1", epoch, 1, 3, asked=[make_ask("a", "s1")]))
    await store.put("space", "key", b"value")
    await store.close()
    assert sorted(os.listdir(path.parent)) == ["s.db"]  # the log was folded in
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store, notices = open_store(path)
    assert not notices
    assert [e.gseq for e in await store.entries("s1")] == [1, 2, 3]
    assert [row.ask.id for row in await store.asks()] == ["a"]
    assert await store.get("space", "key") == b"value"
    assert await store.owner("s1") == "one"
    with pytest.raises(StaleEpoch):
        await store.append(make_batch("s1", epoch - 1, 4))
    await store.close()


async def test_a_file_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await SqliteStore(path).close()
    path.chmod(0o644)
    store = SqliteStore(path)
    await store.put("a", "b", b"c")
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    await store.close()


async def test_the_settings_are_what_was_asked_for(tmp_path: Path) -> None:
    def look(connection: sqlite3.Connection) -> list[Any]:
        names = "journal_mode", "synchronous", "wal_autocheckpoint", "busy_timeout", "foreign_keys"
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    for synchronous, number in (("NORMAL", 1), ("FULL", 2)):
        store = SqliteStore(tmp_path / "s.db", synchronous=synchronous)
        assert await store.writer.run(look) == ["wal", number, 4000, 5000, 1]
        await store.close()
    with pytest.raises(BadInput):
        open_store(tmp_path / "s.db", synchronous="OFF")


async def test_the_log_is_folded_in_when_nobody_writes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db", idle=0.02)
    log = tmp_path / "s.db-wal"
    await store.put("a", "b", b"c" * 100_000)
    folded = threading.Event()
    original = store.writer._fold

    def fold() -> None:
        original()
        folded.set()

    store.writer._fold = fold  # type: ignore[method-assign]
    await store.put("a", "b", b"d" * 100_000)
    assert await asyncio.to_thread(folded.wait, 5)
    assert log.stat().st_size == 0
    assert await store.get("a", "b") == b"d" * 100_000
    await store.put("a", "c", b"e")
    await store.close()


async def test_two_stores_share_a_file(tmp_path: Path) -> None:
    one, two = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    epoch = await one.create(make_info("s1"), "one")
    await one.append(make_batch("s1", epoch, asked=[make_ask("a", "s1")]))
    with pytest.raises(InUse):
        await two.take("s1", "two", lambda owner: owner == "one")
    taken = await two.take("s1", "two", lambda owner: False)
    await two.append(make_batch("s1", taken, 2, settled=[make_answer("a", "deny", "two")]))
    with pytest.raises(StaleEpoch):
        await one.append(make_batch("s1", epoch, 2, settled=[make_answer("a")]))
    back = await one.take("s1", "one", lambda owner: False)
    with pytest.raises(AlreadySettled) as caught:
        await one.append(make_batch("s1", back, 3, settled=[make_answer("a")]))
    assert caught.value.data["verdict"] == "deny"
    await one.close()
    await two.put("a", "b", b"c")
    assert [e.seq for e in await two.entries("s1")] == [1, 2]
    await two.close()


async def test_a_store_behind_a_link_is_the_one_that_the_link_leads_to(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (tmp_path / "s.db").symlink_to("away/real.db")
    (away / "real.db").touch(mode=0o600)
    for name in ("s1", "s2"):  # a new file, and one with something in it
        linked, told = open_store(tmp_path / "s.db")
        assert linked.durable and not told
        straight = SqliteStore(away / "real.db")
        await linked.create(make_info(name), "one")
        assert (await straight.info(name)) is not None
        assert sorted(os.listdir(tmp_path)) == ["away", "s.db"]
        await linked.close()
        await straight.close()
    assert os.listdir(away) == ["real.db"]


async def test_a_damaged_store_behind_a_link_is_moved_with_its_log(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (tmp_path / "s.db").symlink_to("away/real.db")
    (away / "real.db").write_bytes(b"no database " * 1000)
    store, told = open_store(tmp_path / "s.db")
    assert store.durable and f"{away}/real.db.corrupt-" in told[0]
    await store.close()
    assert (tmp_path / "s.db").is_symlink() and (away / "real.db").stat().st_size
    assert sum(name.startswith("real.db.corrupt-") for name in os.listdir(away)) == 1


SHARED = """
import asyncio, sys
from dragoman.store.sqlite import SqliteStore
from tests.store.making import make_batch, make_info

async def main(path, name):
    store = SqliteStore(path)
    epoch = await store.create(make_info(name), name)
    for n in range(100):
        await store.append(make_batch(name, epoch, 1 + 2 * n, 2))
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    children = [
        subprocess.Popen([sys.executable, "-c", SHARED, str(path), f"p{n}"], cwd=ROOT)
        for n in range(3)
    ]
    assert [child.wait(30) for child in children] == [0, 0, 0]
    store = SqliteStore(path)
    every = await store.entries_since(0, 1000)
    assert [e.gseq for e in every] == list(range(1, 601))
    for n in range(3):
        assert [e.seq for e in await store.entries(f"p{n}")] == list(range(1, 201))
    await store.close()


@pytest.mark.bare
async def test_sqlite_is_loaded_only_when_a_file_is_opened() -> None:
    code = (
        "import sys, dragoman.store.sqlite as s; s.open_store('x', want_file=False);"
        "sys.exit('sqlite3' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


# --- lists do not grow ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"cwd": "/p"},
        {"agent": "main"},
        {"parent": "s1"},
        {"status": ("running",)},
        {"archived": False},
        {"archived": True},
        {"leaves": True},
        {"cwd": "/p", "status": ("idle", "failed"), "archived": False},
    ],
)
@pytest.mark.parametrize("place", [None, (5, "s5")])
async def test_lists_walk_an_index_in_its_order(
    tmp_path: Path, query: dict[str, Any], place: tuple[int, str] | None
) -> None:
    store = SqliteStore(tmp_path / "s.db")
    where = Where(SessionQuery(**query), [], place, "cold")
    cold = f"{where.select('info')} ORDER BY updated_at DESC, id DESC"
    plan = " / ".join(await explain(store, cold, where.values))
    assert where.index in plan
    assert "TEMP B-TREE" not in plan
    # In the whole statement only the few sessions that are hot are sorted.
    whole = await explain(store, *ordered(SessionQuery(**query), place))
    sorts = [number for number, step in enumerate(whole) if "TEMP B-TREE" in step]
    if query.get("status") and len(query["status"]) > 1:  # with a directory, it is walked instead
        assert "sessions_cwd" in " ".join(whole)
    assert len(sorts) == 1
    assert "INDEX sessions_hot" in whole[sorts[0] - 1]
    assert where.index in " ".join(whole)
    await store.close()


async def explain(store: SqliteStore, sql: str, values: list[Any]) -> list[str]:
    rows = await store._reader.run(
        lambda c: c.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
    )
    return [str(row[3]) for row in rows]


@pytest.mark.parametrize(("place", "name"), list(INDEXED.items()))
async def test_finding_uses_an_index(tmp_path: Path, place: tuple[str, str], name: str) -> None:
    store = SqliteStore(tmp_path / "s.db")
    where = Where(SessionQuery(extra={place[0]: {place[1]: "x"}}), [])
    sql = f"EXPLAIN QUERY PLAN {where.select('info')} ORDER BY created_at DESC, num DESC"
    rows = await store._reader.run(lambda c: c.execute(sql, where.values).fetchall())
    assert len(rows) == 1 and f"SEARCH sessions USING INDEX sessions_{name}" in rows[0][3]
    await store.close()


# --- versions ---------------------------------------------------------------------------------


async def test_a_file_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    connection.execute("CREATE TABLE future (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreFailed) as caught:
        open_store(path)
    assert "newer version" in caught.value.message and caught.value.hint
    assert path.read_bytes() == before


async def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreFailed) as caught:
        open_store(path)
    assert "another program" in caught.value.message
    assert path.read_bytes() == before


def test_versions_are_reached_step_by_step(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    assert migrate(connection, "s.db") == 0
    connection.execute("INSERT INTO kv VALUES ('a', 'b', x'01')")

    def fill_color(c: sqlite3.Connection) -> None:
        c.execute("UPDATE kv SET color = 'red'")

    steps = (*STEPS, ("ALTER TABLE kv ADD COLUMN color TEXT",), fill_color)
    assert migrate(connection, "s.db", steps) == len(STEPS)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS) + 2,)
    assert connection.execute("SELECT color FROM kv").fetchall() == [("red",)]
    assert migrate(connection, "s.db", steps) == len(STEPS) + 2
    with pytest.raises(Foreign):
        migrate(connection, "s.db")
    connection.close()


def test_a_failed_step_leaves_the_version_before(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    migrate(connection, "s.db")
    steps = (*STEPS, ("ALTER TABLE kv ADD COLUMN color TEXT", "DROP TABLE missing"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, "s.db", steps)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
    assert len(connection.execute("PRAGMA table_info(kv)").fetchall()) == 3
    connection.close()


async def test_a_file_of_version_1_is_brought_up_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, str(path), STEPS[:1])
    columns = ("num", "id", "owner", "epoch", "last_seq", "leaf", *INFO_COLUMNS)
    insert = f"INSERT INTO sessions ({', '.join(columns)}) VALUES"
    for num, (name, at, status) in enumerate((("a", 1, "idle"), ("b", 2, "running")), 1):
        info = make_info(name, at, status=status, last_seq=3)
        values = (num, name, "old", 4, 3, 1, *info_values(info))
        connection.execute(f"{insert} ({', '.join('?' * len(columns))})", values)
    for gseq in range(1, 7):
        entry = make_entries(1 + (gseq - 1) // 2, 1)[0]
        connection.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
            (gseq, 1 + (gseq - 1) % 2, entry.seq, entry.at, entry.kind, entry.body),
        )
    connection.execute("UPDATE counters SET value = 9")  # 7 to 9 were deleted with their session
    connection.close()
    store = SqliteStore(path)
    assert [info.id for info in (await store.list(SessionQuery())).sessions] == ["b", "a"]
    assert [e.gseq for e in await store.entries("a")] == [1, 3, 5]
    assert [e.gseq for e in await store.entries_since(2, 10)] == [3, 4, 5, 6]
    assert await store.newest_gseq() == 9
    assert await store.append(make_batch("a", 4, 4, 2, updated_at=5)) == 10
    assert [(e.seq, e.gseq) for e in await store.entries("a", after=2)] == [
        (3, 5),
        (4, 10),
        (5, 11),
    ]
    listed = (await store.list(SessionQuery(status=("idle",)))).sessions
    assert [(info.id, info.updated_at) for info in listed] == [("a", 5)]
    assert [i.id for i in (await store.list(SessionQuery())).sessions] == ["a", "b"]
    await store.close()
    store = SqliteStore(path)
    assert [i.id for i in (await store.list(SessionQuery())).sessions] == ["a", "b"]
    await store.close()


_COME_AND_GO = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1])
print(other.execute("SELECT count(*) FROM sessions").fetchone()[0])
other.close()
"""


async def test_a_kernel_without_locks_of_open_files_has_a_store_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And SQLite's own locks: no descriptor of the file is closed before SQLite has."""
    monkeypatch.setattr(file, "LOCK_OPEN_FILE", 4242)  # EINVAL, as an older one says
    store = SqliteStore(str(tmp_path / "s.db"))
    await store.create(make_info("s"), "me")
    path = tmp_path / "s.db"
    code = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1])\n"
    code += "db.execute('SELECT * FROM sessions').fetchall(); db.close()"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        assert path.with_name("s.db-wal").exists()
    await store.close()
    assert os.listdir(tmp_path) == ["s.db"]


async def test_whoever_leaves_leaves_the_log_though_our_process_closed_the_file_once_more(
    tmp_path: Path,
) -> None:
    """That ends SQLite's own locks: by them, the next one to leave would be the last."""
    path = tmp_path / "s.db"
    store = SqliteStore(str(path))
    for number in range(3):
        for end in ("", "-shm", "-wal"):
            Path(f"{path}{end}").read_bytes()
        said = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", _COME_AND_GO, str(path)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert said.stdout == f"{number}\n"
        await store.create(make_info(f"s{number}"), "me")
    await store.close()
    assert os.listdir(tmp_path) == ["s.db"]


# --- several names ----------------------------------------------------------------------------


@pytest.mark.skipif(ASK_OPEN_FILE is None, reason="needs locks of open files")
async def test_a_file_in_use_by_another_of_its_names_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "s.db", tmp_path / "other.db"
    first = SqliteStore(path)
    os.link(path, other)
    script = f"from dragoman.store.sqlite import open_store; open_store({str(other)!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and f"{other} is in use by another of its names" in done.stderr
    second = SqliteStore(path)  # by the same name, as ever
    await second.close()
    await first.close()
    assert sorted(os.listdir(tmp_path)) == ["other.db", "other.db.lock", "s.db"]
    alone = SqliteStore(other)  # nobody has it open now
    await alone.close()
