"""Two processes at random work on one file, killed now and then: as a store in memory would be."""

import os
import sqlite3
from pathlib import Path

import pytest
from tests.store.differing import Trial

from dragoman.store import writer
from dragoman.store.sqlite import SqliteStore

STEPS = int(os.environ.get("DRAGOMAN_TRIAL_STEPS", "120"))
SEEDS = int(os.environ.get("DRAGOMAN_TRIAL_SEEDS", "3"))


@pytest.mark.timeout(60 + STEPS)
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_shared_file_is_as_a_store_in_memory(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(writer, "HOT", 4)
    trial = Trial(tmp_path / "s.db", seed)
    try:
        for _ in range(STEPS):
            await trial.step()
        await trial.end()
    finally:
        trial.abandon()
    await SqliteStore(tmp_path / "s.db").close()  # tidies up after those who were killed
    look = sqlite3.connect(tmp_path / "s.db")
    assert look.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert look.execute("SELECT count(*) FROM sessions WHERE hot = 1").fetchone() == (0,)
    look.close()
