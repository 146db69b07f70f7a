"""How many processes a command may have, so that a fork bomb stays small.

What counts must count this command alone: RLIMIT_NPROC counts all that its user runs, and any
desktop runs more than a command should. So a control group is used where we may make one (systemd
gives every user some), else the limit inside of a user namespace of the command's own, which starts
to count at zero, else whoever runs the command counts its processes now and then (`counted`).
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from typing import NamedTuple

PROCESSES = 512
_UNIFIED = "/sys/fs/cgroup"
_LEGACY = "/sys/fs/cgroup/pids"  # version 1

_empty: set[str] = set()  # groups whose command has not joined yet


class Bounded(NamedTuple):
    """How one command is bounded."""

    join: Callable[[], None]  # the child calls it first
    bound: Callable[[], None]  # the child calls it in its own user namespace, when it has one
    done: Callable[[], None]  # the parent calls it once the child runs
    counted: int  # more processes than this: the parent has to look, and to end it; 0: no need


class Limits:
    """Bounds of one command."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self.processes = processes

    def prepare(self, *, own_users: bool = False) -> Bounded:
        """`own_users`: the command gets a user namespace of its own, and is not root."""
        import resource

        group = "" if own_users and os.geteuid() != 0 else make_group(self.processes)
        processes = self.processes
        first = [getattr(resource, name, None) for name in ("RLIMIT_NICE", "RLIMIT_RTPRIO")]
        none = [resource.RLIMIT_CORE, *(one for one in first if one is not None)]

        def join() -> None:
            for number in none:  # no traces of a crash, no coming before others
                resource.setrlimit(number, (0, 0))
            if group:
                with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
                    file.write("0")

        def count() -> None:
            hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            ceiling = processes if hard == resource.RLIM_INFINITY else min(processes, hard)
            resource.setrlimit(resource.RLIMIT_NPROC, (ceiling, ceiling))

        own = own_users and os.geteuid() != 0  # root's are never counted
        counted = 0 if group or own else processes
        return Bounded(join, count if own else _nothing, lambda: _sweep(group), counted)


def _nothing() -> None:
    return None


def how() -> str:
    """What bounds the processes of a command here, for `doctor`."""
    group = make_group(PROCESSES)
    if not group:
        return "counted by us"
    _sweep(group)
    return "a control group"


def make_group(processes: int) -> str:
    """A new control group with this bound; empty where we may not make one."""
    for parent in _parents():
        group = f"{parent}/dragoman-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            os.mkdir(group)
            with open(f"{group}/pids.max", "w", encoding="ascii") as file:
                file.write(str(processes))
        except OSError:
            with contextlib.suppress(OSError):  # half-made: the next parent may do
                os.rmdir(group)
            continue
        _empty.add(group)
        return group
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
    try:
        with open(f"{folder}/cgroup.subtree_control", encoding="ascii") as file:
            return "pids" in file.read().split()
    except OSError:
        return False


def _sweep(group: str) -> None:
    """Remove groups of ours that are empty by now; this one is in use until its command ends."""
    if not group:
        return
    _empty.discard(group)
    parent = os.path.dirname(group)
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if name.startswith(f"dragoman-{os.getpid()}-") and path not in _empty:
            with contextlib.suppress(OSError):  # still in use
                os.rmdir(path)
