"""Which release of ZeroClaw's terminal a process is, told by its program."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.dialects.zeroclaw.terminals import release_of


def run(folder: Path, more: bytes, name: str = "zerocode") -> "subprocess.Popen[bytes]":
    """A process of a program with these words in it."""
    program = folder / name
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with open(program, "ab") as file:
        file.write(more)
    return subprocess.Popen([program, "60"])


@pytest.mark.parametrize(
    ("more", "release"),
    [
        (b"/home/x/zerocode-0.8.12/src/main.rs\0regex-syntax-0.8.5/src/lib.rs", "0.8.12"),
        (b"zerocode-0.8.7-rc.1/src/app.rs", "0.8.7-rc.1"),
        (b"rand-0.8.5/src/x.rs a manager0.8.60.8.6\n\nThis response0.8.6server_pid", "0.8.6"),
        (b"nothing of the kind, 1.0.8.3 and rand-0.8.5/src", ""),
    ],
)
def test_its_program_tells(tmp_path: Path, more: bytes, release: str) -> None:
    process = run(tmp_path, more)
    try:
        assert release_of(process.pid) == release
        os.unlink(tmp_path / "zerocode")  # as an update does
        assert release_of(process.pid) == release
    finally:
        process.kill()
        process.wait()


def test_others_are_none(tmp_path: Path) -> None:
    process = run(tmp_path, b"zerocode-0.8.7/src/main.rs", "other")
    try:
        assert release_of(process.pid) == ""
    finally:
        process.kill()
        process.wait()
    assert release_of(process.pid) == ""  # nobody any more
    assert release_of(None) == release_of(os.getpid()) == ""
