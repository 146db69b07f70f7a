"""A mark that a command and all it starts cannot take off.

A child can leave its group, its session, its parent and its environment behind. It cannot raise a
hard limit of the kernel. So every command gets one of its own, on something that nobody uses (the
time that a real-time process may run without a pause, about nine years), and whoever carries it, or
a lower one, descends from a command of ours, even after our own process was replaced. The
sandbox's filter (see `seccomp`) refuses to change it at all.
"""

import contextlib
import os
from collections.abc import Callable

LEAST, MOST = 1 << 48, 1 << 50  # microseconds
_LINE = b"Max realtime timeout"
_NONE = 1 << 63  # no limit

live: set[int] = set()  # marks of the commands that run now


def _number() -> int | None:
    try:
        import resource
    except ImportError:
        return None  # not this system
    return getattr(resource, "RLIMIT_RTTIME", None)


def _ours() -> int:
    import resource

    number = _number()
    if number is None:
        return _NONE
    hard = resource.getrlimit(number)[1]
    return _NONE if hard == resource.RLIM_INFINITY else hard


def worn() -> bool:
    """Whether we carry a mark ourselves: we are a command, or a hosted agent, of another host."""
    return _ours() < MOST


def new() -> int:
    """A mark for one command; 0 where there can be none."""
    if _number() is None:
        return 0
    most = min(_ours(), MOST)
    if most <= 1:  # we are a command of another host ourselves, deeper than the marks reach
        return 0
    import secrets

    least = LEAST if most > LEAST + 1 else 1
    mark = least + secrets.randbelow(most - least)
    live.add(mark)
    return mark


def burn(mark: int) -> Callable[[], None]:
    """What a child calls before exec. One that was given a lower mark meanwhile keeps it."""
    import resource

    number = _number()

    def set_limit() -> None:
        if mark and number is not None:
            with contextlib.suppress(ValueError):
                resource.setrlimit(number, (mark, mark))

    return set_limit


def put(mark: int, pid: int) -> None:
    """Mark a process that runs already; nothing when it is gone, or another user's."""
    import resource

    number = _number()
    if mark and number is not None:
        with contextlib.suppress(OSError):
            resource.prlimit(pid, number, (mark, mark))


def of(pid: int, proc: str = "/proc") -> int | None:
    """The mark of a process, which may be 0; None when it has none, or not less than our own."""
    try:
        with open(f"{proc}/{pid}/limits", "rb") as file:
            text = file.read(4096)
    except OSError:
        return None
    at = text.find(_LINE)
    if at < 0:
        return None
    hard = text[at + len(_LINE) :].split(None, 2)[1]
    value = int(hard) if hard.isdigit() else _NONE
    return value if value < _ours() else None


def is_ours(pid: int) -> bool:
    """Whether a process of this user descends from a command of this host, or of one before."""
    return pid != os.getpid() and of(pid) is not None
