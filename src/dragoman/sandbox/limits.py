"""How many processes a command may have, so that a fork bomb stays small.

What counts must count this command alone: RLIMIT_NPROC counts all that its user runs, and any
desktop runs more than a command should. So a control group is used where we may make one (systemd
gives every user some), else the limit inside of a user namespace of the command's own, which starts
to count at zero, else whoever runs the command counts its processes now and then (`counted`).
"""

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

PROCESSES = 512
_UNIFIED = "/sys/fs/cgroup"
_LEGACY = "/sys/fs/cgroup/pids"  # version 1

_OLD = 60.0  # seconds after which a group that nobody is in has been left behind

_groups: dict[str, bool] = {}  # the groups of this process; False: its command may not have joined
_one_at_a_time = threading.Lock()


class Bounded(NamedTuple):
    """How one command is bounded."""

    join: Callable[[], None]  # the child calls it first
    bound: Callable[[], None]  # the child calls it in its own user namespace, when it has one
    done: Callable[[], None]  # the parent calls it once the child runs
    counted: int  # more processes than this: the parent has to look, and to end it; 0: no need


class Limits:
    """Bounds of one command."""

    def __init__(self, processes: int = PROCESSES, *, groups: bool = True) -> None:
        """Without `groups` no control group is made."""
        self.processes = processes
        self.groups = groups

    def prepare(self, *, own_users: bool = False) -> Bounded:
        """`own_users`: the command gets a user namespace of its own, and is not root."""
        import resource

        alone = own_users and os.geteuid() != 0  # root's are never counted
        group = make_group(self.processes) if self.groups and not alone else ""
        processes = self.processes
        first = [getattr(resource, name, None) for name in ("RLIMIT_NICE", "RLIMIT_RTPRIO")]
        none = [resource.RLIMIT_CORE, *(one for one in first if one is not None)]

        def join() -> None:
            for number in none:  # no traces of a crash, no coming before others
                resource.setrlimit(number, (0, 0))
            if group:
                _enter(group)

        def count() -> None:
            hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            ceiling = processes if hard == resource.RLIM_INFINITY else min(processes, hard)
            resource.setrlimit(resource.RLIMIT_NPROC, (ceiling, ceiling))

        counted = 0 if group or alone else processes
        bound = count if alone else lambda: None
        return Bounded(join, bound, lambda: _release(group), counted)


def make_group(processes: int) -> str:
    """A control group with this bound that nobody is in; empty where we may not make one."""
    with _one_at_a_time:
        if not _groups:
            _sweep()
        return _free(str(processes)) or _new(str(processes))


def _free(bound: str) -> str:
    """A group of ours whose command has ended, with all that it had started."""
    own = f"/dragoman-{os.getpid()}-"  # not our parent's, where we were forked
    for group, joined in _groups.items():
        if joined and own in group and _says(f"{group}/pids.current") == "0":
            if _says(f"{group}/pids.max") == bound:
                _groups[group] = False
                return group
    return ""


def _new(bound: str) -> str:
    for parent in _parents():
        group = f"{parent}/dragoman-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            os.mkdir(group)
            with open(f"{group}/pids.max", "w", encoding="ascii") as file:
                file.write(bound)
        except OSError:
            with contextlib.suppress(OSError):  # half-made: the next parent may do
                os.rmdir(group)
            continue
        if not _groups:
            atexit.register(_leave, os.getpid())
        _groups[group] = False
        return group
    return ""


def _enter(group: str) -> None:
    """Move the calling process, which has one thread, into a group.

    The kernel moves a thread that asks for itself at once. For a whole process it waits for all
    processors, which takes milliseconds; but version 2 knows nothing else.
    """
    for name in ("tasks", "cgroup.procs"):
        try:
            fd = os.open(f"{group}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            os.write(fd, b"0")
        finally:
            os.close(fd)
        return
    raise FileNotFoundError(group)


def _says(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _parents(proc: str = "/proc", unified: str = _UNIFIED, legacy: str = _LEGACY) -> Iterator[str]:
    """Groups that we may put a new one into and that count processes, the nearest first."""
    path = _own(proc)
    while path:
        folder = f"{unified}{path}".rstrip("/")
        if os.access(f"{folder}/cgroup.procs", os.W_OK) and _counts(folder):
            yield folder
        path = "" if path == "/" else os.path.dirname(path)
    if os.access(f"{legacy}/cgroup.procs", os.W_OK):
        yield legacy


def _own(proc: str) -> str:
    """Our own group in the unified hierarchy."""
    try:
        with open(f"{proc}/self/cgroup", encoding="utf-8") as file:
            for line in file:
                if line.startswith("0::/"):
                    return line[3:].rstrip("\n")
    except OSError:
        return ""
    return ""


def _counts(folder: str) -> bool:
    """Whether groups below this one can have a bound."""
    return "pids" in _says(f"{folder}/cgroup.subtree_control").split()


def _release(group: str) -> None:
    """Its command has joined, or never will: the next one can have it once this one has ended."""
    if group in _groups:
        _groups[group] = True


def _leave(pid: int) -> None:
    """Remove the groups of this process that nobody is in."""
    if pid != os.getpid():
        return  # a child of ours that ends: they are not its own
    for group in _groups:
        with contextlib.suppress(OSError):  # still in use
            os.rmdir(group)


def _sweep() -> None:
    """Remove what processes that are gone, and the one that we have replaced, left behind."""
    for parent in _parents():
        for name in os.listdir(parent):
            words = name.split("-")
            if len(words) != 3 or words[0] != "dragoman" or not words[1].isdigit():
                continue
            path = os.path.join(parent, name)
            with contextlib.suppress(OSError):  # still in use, or gone
                theirs = int(words[1]) != os.getpid() and os.path.exists(f"/proc/{words[1]}")
                if not theirs and time.time() - os.stat(path).st_mtime > _OLD:
                    os.rmdir(path)
