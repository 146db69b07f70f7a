"""Finding programs that the host itself runs: never one that an agent may have written.

A PATH can lead into a project (an active virtual environment, `node_modules/.bin`, an entry that
is not absolute), where an agent writes what it likes. Commands of agents meet those behind the
walls of the sandbox; what the host runs for itself has no walls around it. So the system's own
folders come first, and what lies where agents write does not count.
"""

import contextlib
import os
from collections.abc import Iterable
from functools import cache

_SYSTEM = (
    *("/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/local/sbin"),
    *("/opt/homebrew/bin", "/run/wrappers/bin", "/run/current-system/sw/bin"),
)


def find(name: str, away: Iterable[str] = ()) -> str:
    """Where a program is; empty: nowhere that counts. `away`: folders that agents write."""
    if os.name != "posix":
        from shutil import which

        return which(name) or ""
    found = _candidates(name, os.environ.get("PATH", ""))
    if not found or os.path.dirname(found[0]) in _SYSTEM:
        return found[0] if found else ""
    kept = tuple(os.path.realpath(path) for path in (*away, *_open_places()))
    for path in found:
        if not any(_below(place, one) for place in (path, os.path.realpath(path)) for one in kept):
            return path
    return ""


def _open_places() -> list[str]:
    """Where anything may have been put: the folder that we were started in, temporary ones."""
    found = ["/tmp", "/var/tmp", os.environ.get("TMPDIR") or "/tmp"]
    with contextlib.suppress(OSError):  # the folder is gone
        here = os.getcwd()
        # Who is at home, or at the root, has not chosen a project.
        found += [here] if here not in ("/", os.path.expanduser("~")) else []
    return found


@cache
def _candidates(name: str, path: str) -> tuple[str, ...]:
    folders = [*_SYSTEM, *path.split(os.pathsep)]
    found = []
    for folder in dict.fromkeys(folders):
        place = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(place) and os.access(place, os.X_OK):
            found += [] if _projects(folder) else [place]
    return tuple(found)


def _projects(folder: str) -> bool:
    """Whether programs there belong to some project: its environment, its packages."""
    around = os.path.dirname(os.path.realpath(folder))
    return os.path.isfile(os.path.join(around, "pyvenv.cfg")) or "/node_modules/" in f"{folder}/"


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
