"""Folders and files by the letters of their names, for whoever types one."""

import os
from collections.abc import Iterator
from time import monotonic

_MOST = 50_000  # entries that are looked at
_SECONDS = 0.5
_DEEPEST = 12
_JUNK = frozenset(
    {".git", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".pytest_cache"}
    | {".ruff_cache", ".hg", ".svn", "target"}
)


def folders(typed: str, most: int = 20) -> list[str]:
    """Folders that a path which is being typed may become; those in `~` for nothing. Blocks."""
    whole = os.path.expanduser(typed or "~/")
    above, _, begun = whole.rpartition("/")
    above = above or "/"
    if not os.path.isabs(above) or "\0" in above:
        return []
    found = []
    try:
        with os.scandir(above) as entries:
            for count, entry in enumerate(entries):
                if count > _MOST:
                    break
                if entry.name.startswith(".") and not begun.startswith("."):
                    continue
                if entry.name.lower().startswith(begun.lower()) and _is_folder(entry):
                    found.append(os.path.join(above, entry.name))
    except OSError:
        return []  # it is not there, or not ours to read
    return sorted(found, key=str.lower)[:most]


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def files(folder: str, typed: str, most: int = 20) -> list[str]:
    """Files below a folder whose names fit, the best first. Blocks, for half a second at most."""
    wanted = typed.lower()
    scored = []
    for name in _below(folder):
        score = _score(name.lower(), wanted)
        if score is not None:
            scored.append((score, name.count("/"), len(name), name))
    scored.sort()
    return [name for *_, name in scored[:most]]


def _below(top: str) -> Iterator[str]:
    until = monotonic() + _SECONDS
    waiting: list[tuple[str, int]] = [("", 0)]
    seen = 0
    while waiting:
        short, depth = waiting.pop(0)
        try:
            with os.scandir(os.path.join(top, short)) as entries:
                found = sorted(entries, key=lambda one: one.name)
        except OSError:
            continue  # not ours to read
        for entry in found:
            seen += 1
            if seen > _MOST or monotonic() > until:
                return
            name = os.path.join(short, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _JUNK and depth < _DEEPEST:
                    waiting.append((name, depth + 1))
            elif entry.is_file():
                yield name


def _score(name: str, wanted: str) -> int | None:
    """How well letters fit a name: beginnings before middles, the last part before the others."""
    base = name.rpartition("/")[2]
    if base.startswith(wanted):
        return 0
    if wanted in base:
        return 1
    if wanted in name:
        return 2
    letters = iter(name)
    return 3 if all(letter in letters for letter in wanted) else None
