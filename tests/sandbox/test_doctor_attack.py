"""`dragoman doctor --attack` on this machine, as its user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.sandbox.attacks import ATTACKS


def attacked(folder: Path, config: str) -> tuple[int, list[dict[str, str]]]:
    (folder / "config.toml").write_text(config)
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "doctor", "--attack", "--json",
         "--config-dir", str(folder)],
        capture_output=True, text=True, timeout=60, env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["rows"]


@pytest.mark.timeout(70)
def test_it_tries_them_all_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code, rows = attacked(tmp_path, "")
    assert code == 0 and len(rows) == len(ATTACKS) + 1
    assert not [row for row in rows if row["severity"] == "error"]
    assert sum(row["message"].startswith("stopped: ") for row in rows) >= len(ATTACKS) - 6
    assert [one.name for one in tmp_path.iterdir() if "attack" in one.name] == []


def test_without_a_sandbox_nothing_is_tried(tmp_path: Path) -> None:
    code, rows = attacked(tmp_path, '[sandbox]\nbackend = "none"\n')
    assert code == 1 and "every attack would work" in rows[0]["message"]


@pytest.mark.timeout(70)
def test_trust_that_was_given_away_shows(tmp_path: Path) -> None:
    code, rows = attacked(tmp_path, "[sandbox]\ntrust_unix_sockets = true\n")
    worked = {row["message"].split("): ")[1].split(":")[0]
              for row in rows if row["severity"] == "error"}  # fmt: skip
    assert code == 1 and "socket of a program" in worked
    assert not worked & {"signal", "mark", "powers", "absolute path", "another terminal, read"}
