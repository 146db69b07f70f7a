"""Files that the daemon needs under their names, and whether they are still there."""

import os


class Belongings:
    """Files as they were at the start; another one of the same name is not the same."""

    def __init__(self, *paths: str) -> None:
        self._marks = {path: _mark(path) for path in paths if path}

    def lost(self) -> list[str]:
        """Those that were removed or replaced; what cannot be looked at is taken to be there."""
        now = {path: _mark(path) for path, mark in self._marks.items() if mark is not None}
        return [path for path, mark in now.items() if mark not in (self._marks[path], None)]


def _mark(path: str) -> tuple[int, int] | None:
    """Which file it is; None: nobody can tell."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return (0, 0)
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
