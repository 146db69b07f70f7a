"""Who owns a session: this process, named so that a reused pid is not mistaken for it."""

import os


def this_process() -> str:
    return f"{os.getpid()}:{_born(os.getpid())}"


def is_alive(owner: str) -> bool:
    """Whether the process behind an owner's name still runs."""
    pid, _, born = owner.partition(":")
    if not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs, as somebody else
    return not born or _born(int(pid)) in (born, "")


def _born(pid: int) -> str:
    """When the process was started, in the kernel's clock ticks; empty where nobody can tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""
