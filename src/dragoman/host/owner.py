"""Who owns a session: this process, named so that a reused pid is not mistaken for it."""

import os

# Ended, and nobody collects it: whoever started it does not, and a container may have no init.
_OVER = (b"Z", b"X")


def this_process() -> str:
    return f"{os.getpid()}:{_seen(os.getpid())[1]}"


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
    state, began = _seen(int(pid))
    return state not in _OVER and (not born or began in (born, ""))


def this_life() -> str:
    """This process and the machine it runs on: what others there can tell the end of."""
    return f"{_machine()} {this_process()}"


def has_ended(life: str) -> bool:
    """Whether a life of this machine is known to be over."""
    machine, _, process = life.partition(" ")
    return bool(machine and process) and machine == _machine() and not is_alive(process)


def _machine() -> str:
    """This start of this machine, seen from this container; empty where nobody can tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _seen(pid: int) -> tuple[bytes, str]:
    """A process's state, and when it began in the kernel's clock ticks; empty: nobody can tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return b"", ""
    return fields[0], fields[19].decode()
