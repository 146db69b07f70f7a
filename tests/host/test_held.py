"""Who keeps a store locked is known by the kernel's own list."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.host.held import holder, name_of

HOLDS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=" + sys.argv[2])
db.execute("CREATE TABLE IF NOT EXISTS t (x)")
if sys.argv[3]:
    db.execute("BEGIN " + sys.argv[3])
    db.execute("INSERT INTO t VALUES (1)")
else:
    db.execute("SELECT * FROM t").fetchall()
print("holds", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("log", ["WAL", "DELETE"])
@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE", ""])
def test_only_who_keeps_others_from_writing_is_named(tmp_path: Path, log: str, how: str) -> None:
    path = str(tmp_path / "sessions.db")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, path, log, how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "holds\n"
        assert holder(path) == (process.pid if how else 0)
        assert name_of(process.pid).startswith("python")
        process.communicate("go on\n", timeout=60)
    assert holder(path) == 0


def test_of_who_is_gone_nothing_is_known(tmp_path: Path) -> None:
    assert holder(str(tmp_path / "none.db")) == 0
    assert name_of(2**22 + 1) == "" and name_of(os.getpid())
