"""What a command wrote that makes other programs run something, and nobody agreed to, is undone.

A sandbox lets a command write its workspace, and some files there are run later, outside of it:
git's hooks and configuration, settings of editors and shells (`policy.guarded`). Where mounts are
to be had, git's are read-only while the command runs; all are looked at before and after it.
What is new or changed is put aside for its owner to see, and what was there is put back.
"""

import contextlib
import errno
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dragoman.policy.gitlinks import linked
from dragoman.policy.guarded import (
    GIT,
    MODULES,
    at_home,
    is_guarded,
    is_repository,
    led,
    repositories,
)
from dragoman.policy.opening import walk_directory
from dragoman.policy.repository import harmless_change

_DEPTH = 2  # levels of folders below a workspace that are looked at
_FOLDERS = 128  # and how many of them, of those that are there before a command
_ENTRIES = 512  # of a folder that is guarded as a whole
_LARGEST = 1 << 18  # bytes of a file whose content can be put back
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(\S.*?)\s*$", re.MULTILINE)
_HEAVY = frozenset(
    "node_modules .venv venv .tox .nox target dist build __pycache__ .mypy_cache .cache .svn "
    "vendor bower_components .gradle .terraform".split()
)
_SAID = 8  # paths that are named
_LINKED = 256  # submodules that are looked into


class FoundEntry(NamedTuple):
    """One entry as it was found. `data`: of a file or link; None when it is too large to keep."""

    kind: int
    mode: int
    data: bytes | None
    sign: tuple[int, int, int] = (0, 0, 0)


class GuardedEntries:
    """The guarded entries of some workspaces, as they are now."""

    def __init__(self, roots: Sequence[str], agreed: Sequence[str] = ()) -> None:
        """`agreed`: what a human said may be written, and what the command cannot have written."""
        real = dict.fromkeys(map(os.path.realpath, roots))  # no link is followed from here on
        tops = [root for root in real if os.path.isdir(root)]
        self._roots = [one for one in tops if not any(_in(one, o) for o in tops if o != one)]
        self._agreed = tuple(agreed)
        # What the limits left out before is left out after, and nothing else: a command must not
        # be able to fill them.
        self._left_out: set[str] = set()
        self._closed: set[str] = set()  # folders that were not ours to read before, either
        self._looked = False
        # As it is now: what a command links to is not taken for something that it made.
        self._led = [place for root in self._roots for place in led(root)]
        self._before: dict[str, FoundEntry] = {}
        self._before = dict(self._look())
        self._looked = True

    def undo(self, aside: str) -> list[str]:
        """Undo what has changed since; sentences that say what. `aside`: where it is put."""
        after = dict(self._look())
        hidden = (path for path in self._before if path not in after)  # not where it is looked for
        after |= {path: kept for path in hidden if (kept := _kept(path)) is not None}
        odd = [path for path in after if self._matters(path, after)]
        gone = [path for path in self._before if path not in after and not self._may(path)]
        said: list[str] = []
        for folder in {os.path.dirname(path) for path in (*odd, *gone)}:
            _open_up(folder, 0o700)
        for path in sorted(odd, key=len, reverse=True):  # what is in a folder before the folder
            said += _take(path, after[path], aside)
        for path in sorted({*odd, *gone}, key=len):
            if path in self._before and not _put(path, self._before[path]) and path in odd:
                said.append(f"{path} could not be put back as it was")
        made = [p for p in after if after[p].kind == stat.S_IFDIR and p not in self._before]
        for path in sorted(made if said else (), key=len, reverse=True):
            _remove(path)
        if not said:
            return []
        named = "; ".join(said[:_SAID])
        more = f"; and {len(said) - _SAID} more" if len(said) > _SAID else ""
        return [
            f"[undone: {named}{more}. It could make other programs run something later, which "
            f"nobody agreed to; what was written lies in {aside}. Use write or edit for it.]"
        ]

    def _may(self, path: str) -> bool:
        return any(path == one or path.startswith(f"{one}/") for one in self._agreed)

    def _matters(self, path: str, after: dict[str, FoundEntry]) -> bool:
        old, new = self._before.get(path), after[path]
        if self._may(path):
            return False
        if new.kind == stat.S_IFDIR:  # what is in it counts by itself
            return old is not None and old.kind != new.kind
        if old is not None and old == new:
            return False
        name = os.path.basename(path)
        gits = _gits(path)
        if name in ("config", "config.worktree") and gits:
            past = old.data if old is not None and old.data else b""
            plain = new.kind == stat.S_IFREG and new.data is not None
            sub = "/.git/modules/" in path  # which says where its files lie
            return not (
                plain and harmless_change(past, new.data or b"", fresh=old is None, submodule=sub)
            )
        if name == ".git" and new.kind == stat.S_IFREG:
            return not self._own_repository(path, new.data or b"")
        if gits and name in ("commondir", "gitdir"):  # of a worktree, made by git
            return old is not None or "/worktrees/" not in path
        if not gits and new.data:  # a copy, as worktrees and clones have them
            known = (one for at, one in self._before.items() if os.path.basename(at) == name)
            if any(one.kind == new.kind and one.data == new.data for one in known) and not old:
                # A link may lead elsewhere from here, unless that is one of these files, too.
                there = os.path.join(os.path.dirname(path), os.fsdecode(new.data))
                leads = new.kind == stat.S_IFLNK and not os.path.isabs(new.data)
                return leads and os.path.normpath(there) not in after
        return not (gits and "/info/" in path and name in ("exclude", "sparse-checkout", "refs"))

    def _own_repository(self, path: str, data: bytes) -> bool:
        """Whether a file `.git` names a place in the workspace's own repository."""
        real = _named(path, data)
        own = [place for root in self._roots for place in self._repositories(root)]
        return real in own  # those are looked at, and nothing else in there is

    def has(self, file: os.stat_result) -> bool:
        """Whether a file is one of them, by whatever name it was found."""
        for path in self._before:
            with contextlib.suppress(OSError):
                if os.path.samestat(file, os.lstat(path)):
                    return True
        return False

    # --- looking ---

    def _look(self) -> Iterator[tuple[str, FoundEntry]]:
        links: set[str] = set()
        for place in self._led:
            yield from self._tree(place)
        for root in self._roots:
            for place in at_home(root):
                yield from self._tree(place)
            waiting, seen = deque([(root, 0)]), 0
            while waiting and not self._full(seen, _FOLDERS):
                folder, depth = waiting.popleft()
                seen += 1
                if is_repository(folder):  # a bare one, which nobody expects there
                    yield from self._settings(folder)
                for entry in self._entries(folder):
                    if entry.name.casefold() == ".git":
                        yield from self._git(entry.path, links)
                    elif is_guarded(entry.name, folder):
                        yield from self._tree(entry.path)
                    elif depth < _DEPTH and entry.path not in self._left_out:
                        if entry.is_dir(follow_symlinks=False):
                            heavy = entry.name in _HEAVY  # only what lies right in it counts
                            waiting.append((entry.path, _DEPTH if heavy else depth + 1))
            self._left_out.update(folder for folder, _ in waiting)

    def _full(self, seen: int, most: int) -> bool:
        return not self._looked and seen >= most

    def _repositories(self, root: str) -> Iterator[str]:
        return repositories(root, self._left_out, sys.maxsize if self._looked else MODULES)

    def _git(self, path: str, links: set[str]) -> Iterator[tuple[str, FoundEntry]]:
        """`links`: submodules that were looked into, wherever they lie."""
        kept = _kept(path)
        if kept is None:
            return
        yield path, kept
        if kept.kind != stat.S_IFDIR:
            yield from self._submodules(_named(path, kept.data or b""), links)
            return
        for place in self._repositories(os.path.dirname(path)):
            yield from self._settings(place)
            yield from self._submodules(place, links)

    def _submodules(self, place: str, links: set[str]) -> Iterator[tuple[str, FoundEntry]]:
        for inner in _linked(place):
            if inner in links or inner in self._left_out:
                continue
            if self._full(len(links), _LINKED):
                self._left_out.add(inner)
                continue
            links.add(inner)
            yield from self._git(inner, links)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        """What is in a folder. One that a command has closed to us can still be gone through."""
        try:
            return _entries(folder)
        except PermissionError:
            if not self._looked:
                self._closed.add(folder)
        except OSError:
            pass  # gone
        return [] if folder in self._closed else _behind(folder)

    def _settings(self, place: str) -> Iterator[tuple[str, FoundEntry]]:
        for name in GIT:
            for found, one in self._tree(os.path.join(place, name)):
                # Git itself never runs a sample.
                if not (name == "hooks" and found.endswith(".sample")):
                    yield found, one

    def _tree(self, top: str) -> Iterator[tuple[str, FoundEntry]]:
        waiting, seen = deque([top]), 0
        while waiting and not self._full(seen, _ENTRIES):
            path = waiting.popleft()
            if path in self._left_out or self._may(path):
                continue
            kept = _kept(path, content=seen < _ENTRIES or path in self._before)
            if kept is None:
                continue
            seen += 1
            yield path, kept
            if kept.kind == stat.S_IFDIR:
                waiting.extend(entry.path for entry in self._entries(path))
        self._left_out.update(waiting)


def leads_to_guarded(file: os.stat_result, roots: Sequence[str]) -> bool:
    """Whether a file of these workspaces is a hard link to a guarded one."""
    return GuardedEntries(roots).has(file)


def _in(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _gits(path: str) -> bool:
    """Whether a path lies in a repository's own folder."""
    above = os.path.dirname(path)
    return "/.git/" in path or is_repository(above) or is_repository(os.path.dirname(above))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return list(found)


def _behind(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder that is ours, but not to be read; it stays so."""
    mode = _open_up(folder, 0o400)
    if mode is None:
        return []
    try:
        return _entries(folder)
    except OSError:
        return []  # gone, or no power over it
    finally:
        with contextlib.suppress(OSError):
            _chmod(folder, mode)


def _open_up(path: str, wanted: int) -> int | None:
    """Let us do this to a folder of ours; its mode before, or None where that was not changed."""
    with contextlib.suppress(OSError), _folder_of(path) as (at, name):
        mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and mode & wanted != wanted:
            _chmod(path, stat.S_IMODE(mode) | wanted)
            return stat.S_IMODE(mode)
    return None


def _chmod(folder: str, mode: int) -> None:
    """Change the mode of a folder, and never of what a link leads to that came there just now."""
    if sys.platform == "linux":
        at = walk_directory(folder)
        try:
            os.chmod(f"/proc/self/fd/{at}", mode)  # one that is open for its place has no `fchmod`
        finally:
            os.close(at)
    else:
        os.chmod(folder, mode, follow_symlinks=False)


def _named(path: str, data: bytes) -> str:
    """The place that a file `.git` names; empty when it names none."""
    named = os.fsdecode(data.partition(b"gitdir:")[2].strip())
    return os.path.realpath(os.path.join(os.path.dirname(path), named)) if named else ""


def _linked(place: str) -> Iterator[str]:
    """The `.git` of what a repository's index calls its submodules."""
    try:
        names = linked(place)
    except ValueError:
        return  # git cannot read it either
    top = _files_of(place) if names else ""
    for name in names if top else ():
        inner = os.path.normpath(os.path.join(top, name, ".git"))
        if os.path.lexists(inner) and _in(inner, top):
            yield inner


def _files_of(place: str) -> str:
    """Where the files of a repository lie; empty: not known."""
    if os.path.basename(place) == ".git":
        return os.path.dirname(place)
    try:  # of a worktree
        with open(os.path.join(place, "gitdir"), encoding="utf-8", errors="replace") as file:
            return os.path.dirname(os.path.realpath(file.read(4096).strip()))
    except OSError:
        pass
    try:  # of a submodule
        with open(os.path.join(place, "config"), encoding="utf-8", errors="replace") as file:
            said = _WORKTREE.search(file.read(_LARGEST))
    except OSError:
        return ""
    return os.path.realpath(os.path.join(place, said.group(1))) if said else ""


@contextlib.contextmanager
def _folder_of(path: str) -> Iterator[tuple[int, str]]:
    """The folder of an entry, open, and its name in there. Raises OSError where a link leads.

    Another command may put a link in the folder's place right now.
    """
    folder, name = os.path.split(path)
    at = walk_directory(folder)
    try:
        yield at, name
    finally:
        os.close(at)


def _kept(path: str, content: bool = True) -> FoundEntry | None:
    """What is there. A folder on the way that became a link meanwhile leads to nothing.

    Without `content` a file is taken for one that is too large to keep.
    """
    try:
        with _folder_of(path) as (at, name):
            about = os.stat(name, dir_fd=at, follow_symlinks=False)
            kind = stat.S_IFMT(about.st_mode)
            data: bytes | None = b""
            if kind == stat.S_IFLNK:
                data = os.fsencode(os.readlink(name, dir_fd=at))
            elif kind == stat.S_IFREG:
                data = _content(name, at) if content and about.st_size <= _LARGEST else None
    except OSError:
        return None
    sign = (about.st_size, about.st_ctime_ns, about.st_ino) if data is None else (0, 0, 0)
    return FoundEntry(kind, stat.S_IMODE(about.st_mode) if kind == stat.S_IFREG else 0, data, sign)


def _content(name: str, at: int) -> bytes | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=at)
    except PermissionError:
        return None  # there, but closed to us: its sign says whether it is another
    try:
        data = os.read(fd, _LARGEST + 1)
    finally:
        os.close(fd)
    return data if len(data) <= _LARGEST else None


# --- undoing ---


def _take(path: str, kept: FoundEntry, aside: str) -> list[str]:
    """Put an entry aside; what was done, in words."""
    target = os.path.join(aside, path.lstrip("/").replace("/", "%"))
    try:
        os.makedirs(aside, mode=0o700, exist_ok=True)
        with _folder_of(path) as (at, name):
            if kept.data is None:
                _move(name, at, target)
            else:
                fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
                with os.fdopen(fd, "wb") as file:
                    file.write(kept.data)
                os.unlink(name, dir_fd=at)
    except OSError as problem:
        return [f"{path} could not be put aside: {problem.strerror}"]
    return [f"{path} was written"]


def _move(name: str, at: int, target: str) -> None:
    """Move an entry of a folder. Raises OSError."""
    try:
        os.replace(name, target, src_dir_fd=at)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        os.unlink(name, dir_fd=at)  # to another disk only what was read goes


def _remove(path: str) -> None:
    """Remove a folder, unless there is something in it, which then matters to nobody."""
    with contextlib.suppress(OSError), _folder_of(path) as (at, name):
        os.rmdir(name, dir_fd=at)


def _put(path: str, kept: FoundEntry) -> bool:
    """Put back what was there; False when it cannot be."""
    if kept.data is None:
        return False
    try:
        with _folder_of(path) as (at, name):
            if kept.kind == stat.S_IFDIR:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
            elif kept.kind == stat.S_IFLNK:
                os.symlink(os.fsdecode(kept.data), name, dir_fd=at)
            elif kept.kind == stat.S_IFREG:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(name, flags, 0o600, dir_fd=at), "wb") as file:
                    file.write(kept.data)
                    os.fchmod(file.fileno(), kept.mode)
    except OSError:
        return False  # perhaps the whole folder went, or leads elsewhere
    return True
