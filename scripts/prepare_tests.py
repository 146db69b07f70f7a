"""Prepares the tests of a run once: pytest writes down what it makes of each module.

Its workers all begin at the same time and read the same modules, so each would do the whole work.
"""

import os
import subprocess
import sys
from pathlib import Path

PARTS = min(os.cpu_count() or 1, 8)


def stale(path: Path) -> bool:
    """Whether no prepared module is newer than the file."""
    made = path.parent.joinpath("__pycache__").glob(f"{path.stem}.*-pytest-*.pyc")
    changed = path.stat().st_mtime
    return not any(one.stat().st_mtime >= changed for one in made)


def main(places: list[str]) -> None:
    files = sorted({
        file for place in map(Path, places) if place.is_dir() for file in place.rglob("test_*.py")
    })  # fmt: skip
    if sum(map(stale, files)) < 10 * PARTS:
        return
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    running = [
        subprocess.Popen([*command, *map(str, files[part::PARTS])], stdout=subprocess.DEVNULL)
        for part in range(PARTS)
    ]
    for one in running:
        one.wait()  # what cannot be read is told by the run itself


if __name__ == "__main__":
    main(sys.argv[1:])
