"""Files that the daemon needs under their names, and whether they are still there."""

import os


class Belongings:
    """Files as they were at the start; another one of the same name is not the same.

    What was not there then, or could not be looked at, is none of them.
    """

    def __init__(self, *paths: str) -> None:
        marks = {path: _mark(path) for path in paths}
        self._marks = {path: mark for path, mark in marks.items() if mark not in (_NONE, None)}

    def lost(self) -> list[str]:
        """Those that were removed or replaced; what cannot be looked at is taken to be there."""
        return [path for path, mark in self._marks.items() if _mark(path) not in (mark, None)]


_NONE = (0, 0)


def _mark(path: str) -> tuple[int, int] | None:
    """Which file it is; None: nobody can tell."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _NONE
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
