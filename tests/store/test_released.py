"""A store of every schema that was released is opened by the newest, with all that is in it."""

import sqlite3
from pathlib import Path

import pytest
from tests.cli.living import Living

from dragoman.engine.info import SessionQuery
from dragoman.store.migrations import STEPS
from dragoman.store.sqlite import SqliteStore

KEPT = Path(__file__).parent / "released"
VERSIONS = sorted(int(file.stem.partition("-")[2]) for file in KEPT.glob("schema-*.sql"))


def revive(version: int, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    base = sqlite3.connect(path)
    base.executescript((KEPT / f"schema-{version}.sql").read_text())
    base.close()


def test_every_schema_before_this_one_is_kept() -> None:
    assert set(range(1, len(STEPS))) <= set(VERSIONS), "python scripts/keep_store.py"


@pytest.mark.parametrize("version", VERSIONS)
async def test_it_is_opened_with_all_that_is_in_it(version: int, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    revive(version, path)
    store = SqliteStore(path)
    try:
        page = await store.list(SessionQuery())
        assert len(page.sessions) == 2
        for one in page.sessions:
            entries = await store.entries(one.id)
            assert [entry.seq for entry in entries] == list(range(1, one.last_seq + 1))
            assert len(entries) > 5 and {entry.kind for entry in entries} >= {"turn_ended"}
    finally:
        await store.close()
    base = sqlite3.connect(path)
    assert base.execute("PRAGMA user_version").fetchone()[0] == len(STEPS)
    base.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_commands_go_on_with_it(version: int, tmp_path: Path) -> None:
    living = Living(tmp_path)
    revive(version, living.config / "data" / "sessions.db")
    assert "can take over" in living.says("upgrade-check")
    listed = living.says("sessions", "--json")
    assert "run echo hello" in listed
    session = next(row.split()[0] for row in living.says("sessions").splitlines() if "echo" in row)
    assert "hello" in living.says("sessions", "show", session)
    living.start()
    try:
        assert "one local agent host" in living.says(
            "sessions", "send", session, "what is dragoman"
        )
    finally:
        living.stop()
