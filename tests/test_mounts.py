"""What a killed run has left mounted goes with the next one; what a living run uses stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.mounts import left_behind, mounted


def dead() -> int:
    """The number of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def table(*points: Path) -> str:
    return "".join(f"tmpfs {str(p).replace(' ', chr(92) + '040')} tmpfs rw 0 0\n" for p in points)


def test_only_mounts_of_runs_that_are_over_are_found(tmp_path: Path) -> None:
    for name, pid in (("pytest-1", dead()), ("pytest-2", os.getpid())):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".lock").write_text(str(pid))
    over, lives = tmp_path / "pytest-1/a b/disk", tmp_path / "pytest-2/disk"
    unlocked = tmp_path / "pytest-0/disk"
    found = left_behind(table(over.parent, over, lives, unlocked, Path("/proc")), tmp_path)
    assert found == [over, over.parent, unlocked]


@pytest.mark.root
def test_a_mount_goes_while_a_file_of_it_is_open(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=64k", "none"):
        held = (tmp_path / "held").open("w")
    with held:
        assert not (tmp_path / "held").exists()
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
