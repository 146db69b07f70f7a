"""What Linux offers, also to Pythons that were built where the C library did not know it yet.

Such are the portable ones of uv and conda: they have neither descriptors of processes, nor files in
memory, nor locks of open files, though the kernel below them does.
"""

import errno
import fcntl
import os
import signal
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio.subprocess import Process

_LINUX = sys.platform == "linux"
# The command of `fcntl` that sets a lock which belongs to an open file, not to the process.
LOCK_OPEN_FILE: int | None = getattr(fcntl, "F_OFD_SETLK", 37 if sys.platform == "linux" else None)
# … and the one that asks who would be in its way.
ASK_OPEN_FILE: int | None = getattr(fcntl, "F_OFD_GETLK", 36 if sys.platform == "linux" else None)
# Numbers of system calls that are the same on all machines.
_SEND_SIGNAL, _OPEN_PROCESS = 424, 434
_CLOSE_ON_EXEC = 1


@cache
def holds_processes() -> bool:
    """Whether a process can be held by a descriptor, so that its number means no other one.

    Tried once: kernels before 5.3 cannot, and some containers forbid it.
    """
    try:
        os.close(open_process(os.getpid()))
    except OSError as problem:  # that there is no room now says nothing
        return problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
    return True


def open_process(pid: int) -> int:
    """A descriptor of a process; it can be read from when that has ended. Raises OSError."""
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    fd = _called("syscall", _OPEN_PROCESS, pid, 0)
    os.set_inheritable(fd, False)
    return fd


async def exited(process: "Process") -> int:
    """Wait until this process has ended; its exit code.

    `process.wait()` of some Pythons waits for the ends of its pipes, too, which whatever it left
    behind may hold for as long as that runs.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    if process.returncode is None and holds_processes():
        try:
            fd = open_process(process.pid)
        except OSError:  # it is gone, or there is no room: look now and then
            fd = -1
        if fd >= 0:
            gone = asyncio.Event()
            loop.add_reader(fd, gone.set)
            try:
                await gone.wait()
            finally:
                loop.remove_reader(fd)
                os.close(fd)
    pause = 0.001  # until whoever reaps it has told the loop
    while (code := process.returncode) is None:
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.25)
    return code


def let_go(process: "Process") -> None:
    """Close our ends of the pipes of a process that has ended, whoever has the others."""
    process._transport.close()  # type: ignore[attr-defined]  # asyncio has no name for it


def signal_process(fd: int, number: int) -> None:
    """Send a signal to the process of a descriptor, 0 to look whether it lives. Raises OSError."""
    if sys.platform == "linux" and hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal(fd, number)
        return
    _called("syscall", _SEND_SIGNAL, fd, number, None, 0)


def memory_file(name: str) -> int:
    """A descriptor of a file that is nowhere but in memory. Raises OSError."""
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC)
    return _called("memfd_create", name.encode(), _CLOSE_ON_EXEC)


def _called(name: str, *given: Any) -> int:
    """What a function of the C library gives back, as OSError where it failed."""
    import ctypes

    if not _LINUX:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), name)
    function.restype = ctypes.c_long
    longs = [ctypes.c_long(one) if isinstance(one, int) else one for one in given]
    found = int(function(*longs))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found
