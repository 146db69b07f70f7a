"""Runs attacks inside of a sandbox: one line in (JSON), one line out (JSON), until the input ends.

This file is given to a Python of its own as its whole program, so it imports nothing of ours.
"""

import ctypes
import errno
import json
import os
import select
import signal
import socket  # noqa: F401 - attacks use it
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

NUMBERS: dict[str, int] = {}  # of system calls, by name
SECONDS = 6.0
MOST = 65536
libc: Any = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def escaped() -> None:
    print("ESC" + "APED")


def call(name: Any, *args: Any) -> tuple[int, str]:
    """A system call; its answer, and the error's name."""
    number = NUMBERS.get(name) if isinstance(name, str) else name
    if number is None:
        return -1, "ENOSYS"
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    found = libc.syscall(ctypes.c_long(number), *words)
    return found, errno.errorcode.get(ctypes.get_errno(), "") if found < 0 else ""


def refused(name: Any, *args: Any) -> None:
    """Say ESCAPED when the kernel even looks at the arguments."""
    found, problem = call(name, *args)
    print(name, found, problem)
    if found >= 0 or problem not in ("EPERM", "ENOSYS", "EACCES", "EAFNOSUPPORT", "ESRCH"):
        escaped()


def tried(work: Callable[[], object]) -> None:
    """Say ESCAPED when this raises nothing."""
    try:
        work()
    except (OSError, ValueError, AttributeError) as problem:
        print(problem)
    else:
        escaped()


def near(folder: str) -> str:
    """A short name of a folder: that of a socket may not be long."""
    return f"/proc/self/fd/{os.open(folder, os.O_PATH)}"


def in_fork(code: str, out: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.dup2(out, 1)
        os.dup2(out, 2)
        exec(code, globals())
        sys.stdout.flush()
    except BaseException as problem:
        os.write(2, f"{type(problem).__name__}: {problem}\n".encode())
    finally:
        os._exit(0)


def run(attack: dict[str, str]) -> str:
    read, write = os.pipe()
    if attack["shell"]:
        pid = subprocess.Popen(
            ["/bin/sh", "-c", attack["shell"]], stdin=subprocess.DEVNULL, stdout=write,
            stderr=write, start_new_session=True,
        ).pid  # fmt: skip
    else:
        pid = in_fork(attack["python"], write)
    os.close(write)
    said, limit = b"", time.monotonic() + SECONDS
    while len(said) < MOST:
        left = limit - time.monotonic()
        if left <= 0 or not select.select([read], [], [], left)[0]:
            break
        more = os.read(read, MOST)
        if not more:
            break
        said += more
    os.close(read)
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except OSError:
            continue
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # a shell collected it
    return said.decode("utf-8", "replace")


if __name__ == "__main__":
    NUMBERS.update(json.loads(sys.argv[1]))
    for line in sys.stdin:
        try:
            print(json.dumps(run(json.loads(line))), flush=True)
        except BrokenPipeError:
            os._exit(1)  # nobody listens any more, and nothing is left to be written
