"""Landlock's rule sets: made of rules, and used again while the places they name are the same.

Most of a command's rules are about the system's own folders, and the same for every command. A rule
belongs to a file, not to its name, so a set is used again only if every name still leads to the
file that it was made for: names in a folder that was taken apart are known to by that folder's time
of change, all others are looked at one by one.

A set that is used again is in nobody's hands but ours: the child closes it before it becomes the
command, which could widen the walls of the next one otherwise. What each child adds for mounts of
its own stays in the set and leads nowhere, since nobody else can name those; after some uses, and
after some time, the set is made anew.
"""

import ctypes
import os
import stat
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from dragoman.engine.faults import Refused

from .reach import SETTLED as _SETTLED
from .reach import Kind, Rule

_CREATE, _ADD = 444, 445  # the same on every architecture
_RULE_PATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
ALL = (0, (1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1)
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_ACCESS: dict[Kind, int] = {
    "list": READ_DIR,
    "read": READ_FILE | READ_DIR,
    "run": READ_FILE | READ_DIR | EXECUTE,
    # Everything but making device files.
    "write": ALL[5] & ~(_MAKE_CHAR | _MAKE_BLOCK),
}

_KEPT = 8  # sets
_USES = 64
_SECONDS = 60.0

_libc: Any = None


def call() -> Any:
    """The C library."""
    global _libc
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
        _libc.syscall.restype = ctypes.c_long
    return _libc


class Handled(NamedTuple):
    """What a set rules about: of files, of the network, of others' signals and sockets."""

    files: int
    network: int = 0
    scoped: int = 0
    size: int = 24  # of what this kernel takes


def make(made: Sequence[Rule], handled: Handled) -> int:
    """A new set, as a descriptor that whoever asks for it closes. Raises Refused."""
    attributes = struct.pack("QQQ", handled.files, handled.network, handled.scoped)
    fd = int(call().syscall(_CREATE, attributes[: handled.size], handled.size, 0))
    if fd < 0:
        raise _refused("create a rule set")
    try:
        apart = {rule.path for rule in made if rule.kind == "list"}
        for rule in made:
            add(fd, rule, handled.files, listed=os.path.dirname(rule.path) in apart)
    except BaseException:
        os.close(fd)
        raise
    return fd


def add(fd: int, rule: Rule, handled: int, *, listed: bool = False) -> None:
    """Put one rule into a set. Raises Refused.

    A name that was `listed` was no link, with none on its way; where it leads elsewhere by now,
    it may lead to what is forbidden.
    """
    try:
        parent = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # gone since it was listed, or not ours to see
    try:
        if listed and os.readlink(f"/proc/self/fd/{parent}") != rule.path:
            return
        access = _ACCESS[rule.kind] & handled
        if access & ~_ON_FILES and not stat.S_ISDIR(os.fstat(parent).st_mode):
            access &= _ON_FILES
        attributes = struct.pack("=Qi", access, parent)
        if call().syscall(_ADD, fd, _RULE_PATH, attributes, 0) < 0:
            raise _refused(f"allow {rule.path}")
    finally:
        os.close(parent)


def ready(made: Sequence[Rule], handled: Handled) -> int:
    """A set with these rules, made before or now; whoever asks for it closes it. Raises Refused."""
    key = (handled, tuple(made))
    with _one_at_a_time:
        kept = _sets.get(key)
        if kept is not None and kept.holds():
            kept.uses += 1
            return os.dup(kept.fd)
        if kept is not None:
            del _sets[key]
        looks = _looks(made)  # before: what changes while it is made is seen the next time
        fd = make(made, handled)
        if looks is not None:
            _sets[key] = _Kept(os.dup(fd), looks)
            if len(_sets) > _KEPT:
                _sets.popitem(last=False)
        return fd


Look = tuple[str, tuple[int, ...]]


class _Kept:
    """A set, and what its names led to."""

    __slots__ = ("fd", "looks", "since", "uses")

    def __init__(self, fd: int, looks: list[Look]) -> None:
        self.fd = fd
        self.looks = looks
        self.since = time.monotonic()
        self.uses = 0

    def __del__(self) -> None:
        os.close(self.fd)

    def holds(self) -> bool:
        fresh = self.uses < _USES and time.monotonic() - self.since < _SECONDS
        return fresh and all(_look(path, len(found)) == found for path, found in self.looks)


_sets: OrderedDict[tuple[Handled, tuple[Rule, ...]], _Kept] = OrderedDict()
_one_at_a_time = threading.Lock()


def _looks(made: Sequence[Rule]) -> list[Look] | None:
    """What to look at before the set is used again; None when something has just changed."""
    taken_apart = {rule.path for rule in made if rule.kind == "list"}
    found = []
    now = time.time_ns()
    for path in dict.fromkeys(rule.path for rule in made):
        if path in taken_apart:
            look = _look(path, 3)
            if look and abs(now - look[2]) < _SETTLED:
                return None
        elif os.path.dirname(path) in taken_apart and not os.path.islink(path):
            continue
        else:
            look = _look(path, 2)
        found.append((path, look))
    return found


def _look(path: str, wanted: int) -> tuple[int, ...]:
    try:
        it = os.stat(path)
    except OSError:
        return (0,) * wanted
    return (it.st_dev, it.st_ino, it.st_ctime_ns)[:wanted]


def _refused(what: str) -> Refused:
    reason = os.strerror(ctypes.get_errno())
    return Refused(
        f"The sandbox could not {what}: {reason}.",
        'See `dragoman doctor`; [sandbox] backend = "none" turns it off.',
    )
