"""How the files of a workspace are now, with the contents of those that may change kept."""

import os
import stat
import struct
import time
from typing import NamedTuple

from dragoman.policy.opening import walk_directory
from dragoman.tools.trees import rules_above, walk

from .database import NOTHING, Database, FileChange, Seen, State

_RACY = 20_000_000  # ns: a file changed that lately may change again with the same stamp
_PIECE = 1 << 16
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class LookLimits(NamedTuple):
    """`files` of one workspace, bytes of one `file`, `bytes` that one look may read."""

    files: int = 20_000
    file: int = 4 * 1024 * 1024
    bytes: int = 128 * 1024 * 1024
    spared: tuple[str, ...] = ()  # folders and databases of ours, which are not opened


def _is_spared(path: str, spared: tuple[str, ...]) -> bool:
    """Whether it is a file of ours.

    Whoever closes a file loses all locks that its process has on it, SQLite's among them: the next
    process would take the store for left, and throw away what is still being written.
    """
    return any(
        path == one or path.startswith((f"{one}{os.sep}", f"{one}-wal", f"{one}-shm"))
        for one in spared
    )


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
    whole = os.path.realpath(space)
    try:
        top = os.open(space, _OPEN)
    except OSError as error:
        return WorkspaceLook({}, note=f"{space} could not be read: {error.strerror}.", partial=True)
    try:
        with db.writing():
            for entry in walk(top, above=rules_above(space)):
                if entry.is_dir or _is_spared(os.path.join(whole, entry.path), limits.spared):
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
    what = "1 file that was" if unsure == 1 else f"{unsure} files that were"
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
