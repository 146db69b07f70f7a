"""How many processes a command may have, so that a fork bomb stays small.

A control group counts everybody; RLIMIT_NPROC counts only users that are not root. The first is
used where we may make groups, the second always.
"""

import contextlib
import os
import secrets
from collections.abc import Callable

PROCESSES = 512
_GROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/pids")  # version 2, version 1


class Limits:
    """Bounds of one command."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self.processes = processes

    def prepare(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """What the child calls before exec, and what the parent calls once it runs."""
        import resource

        group = _make_group(self.processes)
        processes = self.processes

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            ceiling = processes if hard == resource.RLIM_INFINITY else min(processes, hard)
            if os.geteuid() != 0:
                resource.setrlimit(resource.RLIMIT_NPROC, (ceiling, ceiling))
            if group:
                with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
                    file.write("0")

        return limit, lambda: _sweep(group)


def _make_group(processes: int) -> str:
    """A new control group with this bound; empty where we may not make one."""
    for parent in _GROUPS:
        if not os.access(f"{parent}/cgroup.procs", os.W_OK):
            continue
        group = f"{parent}/dragoman-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            os.mkdir(group)
            with open(f"{group}/pids.max", "w", encoding="ascii") as file:
                file.write(str(processes))
        except OSError:
            with contextlib.suppress(OSError):  # half-made: the next parent may do
                os.rmdir(group)
            continue
        return group
    return ""


def _sweep(group: str) -> None:
    """Remove groups of ours that are empty by now; this one is in use until its command ends."""
    if not group:
        return
    parent = os.path.dirname(group)
    for name in os.listdir(parent):
        if name.startswith(f"dragoman-{os.getpid()}-"):
            with contextlib.suppress(OSError):  # still in use
                os.rmdir(os.path.join(parent, name))
