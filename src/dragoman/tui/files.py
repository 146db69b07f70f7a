"""The files of a folder that `@` may mean: what Git would show, or what is there."""

import asyncio
import os
from collections.abc import Iterable

from dragoman.observe.programs import find

_MOST = 50_000
_DEEPEST = 12
_SHOWN = 30
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache"}


async def listed(folder: str) -> list[str]:
    """Paths below the folder, those that Git ignores left out."""
    git = find("git", [folder])  # an agent may have written a git of its own in there
    if not git:
        return await asyncio.to_thread(walked, folder)
    try:
        process = await asyncio.create_subprocess_exec(
            git, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "ls-files", "-z",
            "--cached", "--others", "--exclude-standard", "--deduplicate",
            cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        said, _ = await process.communicate()
    except OSError:
        return await asyncio.to_thread(walked, folder)  # no Git here
    if process.returncode != 0:
        return await asyncio.to_thread(walked, folder)
    names = said.decode(errors="surrogateescape").split("\0")
    return [name for name in names[:_MOST] if name]


def walked(folder: str) -> list[str]:
    """The same without Git: simple names of a .gitignore at the top are respected."""
    ignored = _SKIPPED | _ignored(folder)
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        below = os.path.relpath(place, folder)
        depth = 0 if below == "." else below.count(os.sep) + 1
        folders[:] = sorted(f for f in folders if f not in ignored) if depth < _DEEPEST else []
        for file in sorted(files):
            if file not in ignored:
                found.append(file if below == "." else os.path.join(below, file))
                if len(found) >= _MOST:
                    return found
    return found


def _ignored(folder: str) -> set[str]:
    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
            lines = file.read(64 * 1024).splitlines()
    except OSError:
        return set()  # there is none
    return {line.strip().strip("/") for line in lines if line.strip() and not line.startswith("#")}


def matching(names: Iterable[str], typed: str) -> list[str]:
    """The names that fit what was typed, best first: its letters in order, ends before middles."""
    wanted = typed.lower()
    if not wanted:
        return sorted(names, key=lambda name: (name.count("/"), name))[:_SHOWN]
    scored = []
    for name in names:
        score = _score(name.lower(), wanted)
        if score is not None:
            scored.append((score, len(name), name))
    scored.sort()
    return [name for _, _, name in scored[:_SHOWN]]


def _score(name: str, wanted: str) -> int | None:
    base = name.rpartition("/")[2]
    if base.startswith(wanted):
        return 0
    if wanted in base:
        return 1
    if name.startswith(wanted):
        return 2
    if wanted in name:
        return 3
    letters = iter(name)
    return 4 if all(letter in letters for letter in wanted) else None
