"""File systems that tests mount: always unmounted, also what a killed run has left behind."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(target: Path, *arguments: str) -> Iterator[Path]:
    """Mount something at a folder for a while; it goes even if somebody still has files open."""
    done = subprocess.run(["mount", *arguments, str(target)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield target
    finally:
        unmount(target)


def unmount(target: Path) -> None:
    # Lazily: a process of a failed test may still hold a file, and the mount must go anyway.
    subprocess.run(["umount", "-l", str(target)], check=True)


def left_behind(mounts: str, top: Path) -> list[Path]:
    """Mount points below pytest's folders whose run is over, the deepest first."""
    found = []
    for line in mounts.splitlines():
        point = Path(line.split()[1].encode().decode("unicode_escape"))
        if top in point.parents and not _running(top / point.relative_to(top).parts[0]):
            found.append(point)
    return sorted(found, key=lambda point: len(point.parts), reverse=True)


def _running(run: Path) -> bool:
    """Whether the run that made this folder still lives: it says its number in a lock."""
    try:
        pid = int((run / ".lock").read_text())
    except (OSError, ValueError):
        return False
    return Path(f"/proc/{pid}").exists()


def sweep() -> list[Path]:
    """Unmount what runs that are over have left mounted."""
    table = Path("/proc/self/mounts")
    if os.name != "posix" or os.geteuid() != 0 or not table.exists():
        return []
    found = []
    for top in Path(tempfile.gettempdir()).glob("pytest-of-*"):
        for point in left_behind(table.read_text(), top):
            unmount(point)
            found.append(point)
    return found
