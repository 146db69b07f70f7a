"""A room of its own for a command: mounts, terminals and shared memory that are nobody else's.

Landlock only knows what to allow, below which path. It cannot tell the terminal that a command has
just made from the one that its user types in, or its shared memory from another program's; and it
says nothing about `chmod`. With a mount namespace a command gets fresh ones of the first, and
everything that it may not write is read-only for all purposes. Root can make one, and ordinary
users can wherever the system lets them have user namespaces.
"""

import ctypes
import errno
import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

_NEWNS, _NEWIPC, _NEWUSER, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND = 1, 2, 4, 8, 32, 4096
_REC, _PRIVATE = 16384, 1 << 18
_SETATTR = 442  # mount_setattr, the same on every architecture
_HERE, _RECURSIVE = -100, 0x8000
_GONE = (errno.ENOENT, errno.ENOTDIR)
_MOST = 64  # paths that can be written: with more, only what is forbidden is made read-only

SEPARATING = "unshare"
"""What failed, by its words, when the kernel gave no namespace.

Who has a second thread gets no user namespace; some library may have begun one in the child.
"""
SHARED = ("/dev/pts", "/dev/ptmx", "/dev/shm", "/proc")
"""What a room has its own of."""


def in_child(work: Callable[[], object]) -> bool:
    """Whether a child of ours can do this."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:  # whatever it was, a second one of us must not go on from here
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@cache
def possible(libc: Any) -> bool:
    """Whether this process may make rooms; found out once, in a child."""

    def make() -> None:
        _separate(libc)
        mount(libc, "tmpfs", "/tmp", "tmpfs", NOSUID)

    return in_child(make)


def enter(
    libc: Any,
    writable: Sequence[str],
    barred: Sequence[str],
    cwd: str,
    kept: Sequence[str] = (),
    covered: Sequence[str] = (),
) -> Callable[[], list[str]]:
    """What a child calls before it is confined; it says what of `SHARED` is its own now.

    Where few places can be written, all others are made read-only; else those that are barred.
    `kept` are a folder that stays in its place, and what is read-only in it, and so on; `covered`
    is what will be hidden.
    """
    outer = _outermost(writable)
    between = ways((*kept, *covered), outer)
    locked = ["/"]
    if len(outer) > _MOST or "/" in outer:
        locked = _outermost(path for path in barred if os.path.exists(path))[:_MOST]
        outer = [one for one in outer if any(one.startswith(f"{path}/") for path in locked)]

    pinned = [(path, pins(path)) for path in kept]

    def inside() -> list[str]:
        _separate(libc)
        own = _devices(libc)
        if locked != ["/"]:
            for path in locked:
                mount(libc, path, path, "", BIND | _REC)
        there = [path for path in outer if _unless_gone(mount, libc, path, path, "", BIND | _REC)]
        for path in locked:
            _set(libc, path, RDONLY, 0, _RECURSIVE)
        for path in there:
            _unless_gone(_set, libc, path, 0, RDONLY, 0)
        for path in between:
            mount(libc, path, path, "", BIND | _REC)
        for path, whole in pinned:
            mount(libc, path, path, "", BIND)
            if not whole:
                _set(libc, path, RDONLY, 0, 0)
        os.chdir(cwd)  # the folder that we were in is now below what can be written
        if "/dev/shm" in own and locked == ["/"]:
            _set(libc, "/dev/shm", 0, RDONLY, 0)
        return own

    return inside


def ways(paths: Iterable[str], tops: Iterable[str]) -> list[str]:
    """The folders on the way from what can be written to what must stay in its place.

    A folder that something is mounted in can be moved away, with another one put there instead;
    one that is a mount itself cannot.
    """
    outer = set(_outermost(tops))
    found: set[str] = set()
    for path in paths:
        folders = list(above(path))
        if top := next((one for one in folders if one in outer), ""):
            found.update(folders[: folders.index(top)])
    return sorted(found, key=len)


def pins(path: str) -> bool:
    """Whether a path is locked as a place only: a repository, which is written."""
    return os.path.isdir(path) and os.path.exists(os.path.join(path, "HEAD"))


def own_network() -> None:
    """Go into an empty network: what a child does before it has no right to. Raises OSError."""
    libc: Any = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_NEWNET | (0 if uid == 0 else _NEWUSER)) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if uid != 0:
        _map(uid, gid)


@cache
def networks() -> bool:
    """Whether commands can be given networks of their own; found out once, in a child."""
    return in_child(own_network)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Folders and files on disk that lie in no other of them."""
    found = [path for path in paths if not path.startswith(("/dev", "/proc", "/sys"))]
    known = set(found)
    return [path for path in found if not any(folder in known for folder in above(path))]


def above(path: str) -> Iterator[str]:
    """The folders that a path lies in, the nearest first; `/` is the last."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _separate(libc: Any) -> None:
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_NEWNS | _NEWIPC | (0 if uid == 0 else _NEWUSER)) != 0:
        names = ", ".join(one.name for one in threading.enumerate())
        raise OSError(ctypes.get_errno(), f"{SEPARATING}, with the threads {names}")
    if uid != 0:
        _map(uid, gid)
    mount(libc, "none", "/", "", _REC | _PRIVATE)


def _map(uid: int, gid: int) -> None:
    """Stay who we are in a user namespace of our own."""
    for name, text in (
        ("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1"),
    ):  # fmt: skip
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _unless_gone(work: Callable[..., None], *words: Any) -> bool:
    """Do this to what can be written; False when it is gone since it was listed.

    Its mount goes with it, and what has its name then is part of what is read-only.
    """
    try:
        work(*words)
    except OSError as problem:
        if problem.errno not in _GONE and not (work is _set and problem.errno == errno.EINVAL):
            raise
        return False
    return True


def _devices(libc: Any) -> list[str]:
    """Own terminals, shared memory and, for root, a /proc that shows nobody else."""
    own = []
    terminals = "newinstance,ptmxmode=0666,mode=0620"
    if _tried(libc, "devpts", "/dev/pts", "devpts", NOSUID | NOEXEC, terminals):
        own.append("/dev/pts")
        if os.path.islink("/dev/ptmx") or _tried(libc, "/dev/pts/ptmx", "/dev/ptmx", "", BIND):
            own.append("/dev/ptmx")
    if _tried(libc, "tmpfs", "/dev/shm", "tmpfs", NOSUID | NODEV, "mode=1777"):
        own.append("/dev/shm")
    # Only what one may trace is shown, and Landlock lets nobody trace what is outside.
    if os.geteuid() == 0 and _tried(
        libc, "proc", "/proc", "proc", NOSUID | NODEV | NOEXEC, "hidepid=ptraceable"
    ):
        own.append("/proc")
    return own


def _tried(libc: Any, *words: Any) -> bool:
    try:
        mount(libc, *words)
    except OSError:
        return False  # not on this machine: the caller does without
    return True


def mount(libc: Any, source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """The system call. Raises OSError."""
    words = [text.encode() if text else None for text in (source, target, kind)]
    done = libc.mount(*words, ctypes.c_ulong(flags), data.encode() if data else None)
    if done != 0:
        raise OSError(ctypes.get_errno(), f"mount over {target}")


def _set(libc: Any, path: str, put: int, taken: int, flags: int) -> None:
    given = struct.pack("=QQQQ", put, taken, 0, 0)
    if libc.syscall(_SETATTR, _HERE, path.encode(), flags, given, len(given)) != 0:
        raise OSError(ctypes.get_errno(), f"mount_setattr of {path}")
