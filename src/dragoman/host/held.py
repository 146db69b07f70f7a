"""Who keeps a store locked, by what the kernel tells of locks.

The store is not opened for it: a file that this process closes takes the process's own locks on it
along, and it may be the daemon that asks.
"""

import os
import time

_LOOKS = 10
_SECONDS = 0.1  # between two looks; whoever saves something is done long before the last
_SHARED = 0x40000002  # where SQLite locks a file that nobody else may even read
_RESERVED = 0x40000001  # … that somebody writes without a log
_WRITING = 120  # … and, in its shared memory, where somebody writes to the log


def holder(path: str) -> int:
    """The process that has kept others from writing for a second; 0: none is known."""
    found = _writers(path)
    for _ in range(_LOOKS):
        if not found:
            return 0
        time.sleep(_SECONDS)
        found &= _writers(path)
    return min(found, default=0)


def name_of(pid: int) -> str:
    """What a process is called; empty where the system does not tell."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _writers(path: str) -> set[int]:
    """Processes other than ours that have the file for themselves now."""
    places: dict[str, tuple[int, ...]] = {}
    for suffix, starts in (("", (_SHARED, _RESERVED)), ("-shm", (_WRITING,))):
        try:
            places[str(os.stat(path + suffix).st_ino)] = starts
        except OSError:
            continue
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return set()
    found = set()
    for row in rows:
        if len(row) != 8 or row[3] != "WRITE":  # those that wait have an arrow before them
            continue
        held = places.get(row[5].rpartition(":")[2], ())
        end = float("inf") if row[7] == "EOF" else int(row[7])
        if any(int(row[6]) <= start <= end for start in held):
            found.add(int(row[4]))
    return {pid for pid in found if pid > 0 and pid != os.getpid()}
