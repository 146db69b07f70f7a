"""Whether a shell waits behind this program that can bring it to the foreground again."""

import os


def has_shell() -> bool:
    """Whether somebody of this session leads another group and began ours: a shell with jobs.

    Else whoever is stopped stands still for good: nobody is there to say `fg`.
    """
    group = os.getpgrp()
    parent = os.getppid() if group == os.getpid() else _parent_of(group)
    try:
        return parent > 0 and os.getsid(parent) == os.getsid(0) and os.getpgid(parent) != group
    except OSError:  # it ended just now
        return False


def _parent_of(process: int) -> int:
    """The parent of another process, where the system tells it; else 0."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
