"""How the files of a workspace are now, with the contents of those that may change kept."""

import os
import stat
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain, islice
from typing import NamedTuple

from dragoman.engine.visible import many
from dragoman.policy.opening import walk_directory
from dragoman.tools.trees import rules_above, walk

from .database import NOTHING, Database, FileChange, Seen, State

_RACY = 20_000_000  # ns: a file changed that lately may change again with the same stamp
_PIECE = 1 << 16
_FILES = 4096  # of the host's own that are compared with a file of several names
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class LookLimits(NamedTuple):
    """`files` of one workspace, bytes of one `file`, `bytes` that one look may read.

    `own` are folders and files of the host itself, which are not opened by whatever name: closing
    its databases again would end the locks that the process has on them.
    """

    files: int = 20_000
    file: int = 4 * 1024 * 1024
    bytes: int = 128 * 1024 * 1024
    own: tuple[str, ...] = ()


class WorkspaceLook(NamedTuple):
    """The files of a workspace by path relative to it, and what is not covered."""

    files: dict[str, State]
    at: int = 0  # ns, when it began
    partial: bool = False
    note: str = ""


def look(db: Database, space: str, limits: LookLimits) -> WorkspaceLook:
    """Look at all files that are not ignored; contents that are new are kept. Blocks."""
    known = db.seen(space)
    found: dict[str, State] = {}
    news: list[tuple[str, Seen]] = []
    notes: list[str] = []
    budget = limits.bytes
    large = 0
    partial = False
    now = time.time_ns()
    here = os.path.realpath(space)
    own = [os.path.realpath(path) for path in limits.own]
    if any(f"{here}/".startswith(f"{path}/") for path in own):
        return WorkspaceLook({}, now)  # all of it is the host's
    denied = frozenset(os.path.relpath(path, here) for path in own)
    links: frozenset[tuple[int, int]] | None = None
    try:
        top = os.open(space, _OPEN)
    except OSError as error:
        return WorkspaceLook({}, note=f"{space} could not be read: {error.strerror}.", partial=True)
    try:
        with db.writing():
            for entry in walk(top, denied=denied, above=rules_above(space)):
                if entry.is_dir:
                    continue
                if len(found) >= limits.files:
                    partial = True
                    notes.append(f"Only {limits.files} files of the folder are covered.")
                    break
                try:
                    info = entry.entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
                    continue
                if info.st_nlink > 1:
                    links = _files(limits.own) if links is None else links
                    if (info.st_dev, info.st_ino) in links:
                        continue
                stamp = _stamp(info)
                before = known.get(entry.path)
                if before is not None and before.stamp == stamp:
                    found[entry.path] = before.state
                    continue
                if info.st_size > limits.file or info.st_size > budget:
                    large += 1
                    found[entry.path] = State(info.st_mode, None)
                    news.append((entry.path, Seen(stamp, found[entry.path])))
                    continue
                data = _content(entry.directory, entry.entry.name, info, limits.file)
                if data is None:
                    continue
                budget -= len(data)
                found[entry.path] = State(info.st_mode, db.put(data))
                if now - max(info.st_mtime_ns, info.st_ctime_ns) < _RACY:
                    stamp = b""  # to be read again next time
                news.append((entry.path, Seen(stamp, found[entry.path])))
            db.saw(space, news, [path for path in known if path not in found])
    finally:
        os.close(top)
    if large:
        what = "file is" if large == 1 else "files are"
        notes.append(f"{large} {what} too large to be kept.")
    return WorkspaceLook(found, now, partial, " ".join(notes))


def _files(places: Iterable[str]) -> frozenset[tuple[int, int]]:
    """The files in these places that have other names, too, by device and number."""
    found = set()
    below = (os.path.join(top, name) for place in places for top, _, names in os.walk(place)
             for name in names)  # fmt: skip
    for path in islice(chain(places, below), _FILES):
        with suppress(OSError):
            info = os.lstat(path)
            if info.st_nlink > 1:
                found.add((info.st_dev, info.st_ino))
    return frozenset(found)


def _stamp(info: os.stat_result) -> bytes:
    return struct.pack(
        "<QqqqI", info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_mode
    )


def _content(directory: int, name: str, info: os.stat_result, limit: int) -> bytes | None:
    try:
        if stat.S_ISLNK(info.st_mode):
            return os.fsencode(os.readlink(name, dir_fd=directory))
        with open(name, "rb", opener=lambda *_: os.open(name, _READ, dir_fd=directory)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(min(info.st_size, limit))
            while len(data) < limit and (more := file.read(_PIECE)):  # it grows
                data += more
            return data[:limit]
    except OSError:
        return None


def state_of(path: str, limit: int) -> tuple[State, bytes | None]:
    """One file as it is now, whoever it belongs to; no link on the way is followed."""
    try:
        parent = walk_directory(os.path.dirname(path))
    except FileNotFoundError:
        return NOTHING, None
    try:
        name = os.path.basename(path)
        try:
            info = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return NOTHING, None
        if stat.S_ISDIR(info.st_mode) or info.st_size > limit:
            return State(info.st_mode, None), None
        data = _content(parent, name, info, limit)
        return State(info.st_mode, None), data
    finally:
        os.close(parent)


def kept_state(db: Database, path: str, limit: int) -> State:
    """One file as it is now, its content kept."""
    state, data = state_of(path, limit)
    return state if data is None else State(state.mode, db.put(data))


def differences(
    space: str, before: WorkspaceLook, after: WorkspaceLook
) -> tuple[list[FileChange], str]:
    """What is another, and what cannot be told."""
    found: list[FileChange] = []
    old_rules, new_rules = _rules(before), _rules(after)
    unsure = 0
    for path in sorted({*before.files, *after.files}):
        old, new = before.files.get(path, NOTHING), after.files.get(path, NOTHING)
        if old == new:
            continue
        whole = os.path.join(space, path)
        if old is NOTHING:
            # It may have been there, and ignored, or beyond the number that is covered.
            if before.partial or old_rules != new_rules or _changed_at(whole) < before.at - _RACY:
                unsure += 1
                continue
        elif new is NOTHING and _changed_at(whole):
            continue  # it is there, only not looked at any more
        found.append(FileChange(whole, old, new))
    if not unsure:
        return found, ""
    what = many(unsure, "file that was", "files that were")
    return found, f"Not covered: {what} ignored or not looked at before."


def _rules(look: WorkspaceLook) -> list[tuple[str, State]]:
    names = look.files.items()
    return sorted((path, state) for path, state in names if path.endswith(".gitignore"))


def _changed_at(path: str) -> int:
    """When a file was last changed in any way; 0: there is none."""
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0
