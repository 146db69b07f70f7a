"""Commands of a host that died: nobody hears them, nobody could end them, so the next host does.

Every command carries whose it is in its environment: where the host keeps its data, its process and
when that began. What a command started may have dropped that, but not its brand.
"""

import asyncio
import contextlib
import os
import signal
from hashlib import sha256

from dragoman import kernel
from dragoman.sandbox import brand

from .group import gone, lives, started

MARK = "DRAGOMAN_CALL"  # in the environment of every process that a command starts
_PROC = "/proc"
_LARGEST = 1 << 20  # bytes of an environment that are read
_GRACE = 1.5  # seconds between SIGTERM and SIGKILL


def mark(place: str) -> str:
    """A mark for one command of this process, which keeps its outputs there."""
    pid = os.getpid()
    return f"{_of(place)}.{pid}.{started(pid)}.{os.urandom(12).hex()}"


def _of(place: str) -> str:
    return sha256(os.fsencode(os.path.realpath(place))).hexdigest()[:16]


async def end_orphans(place: str) -> int:
    """End what commands of dead hosts with the same data left running; how many processes."""
    found = await asyncio.to_thread(_orphans, place)
    _signal(found, signal.SIGTERM)
    await gone(found, _GRACE)
    left = [pid for pid, began in found.items() if lives(pid, began)]
    _signal({pid: found[pid] for pid in left}, signal.SIGKILL)
    await gone(left, _GRACE)
    return len(found)


def _orphans(place: str) -> dict[int, int]:
    """The processes, and when each began."""
    try:
        numbers = [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return {}  # no /proc on this system
    words = f"{MARK}={_of(place)}.".encode()
    marked = {pid for pid in numbers if pid != os.getpid() and _left(pid, words)}
    if not marked:
        return {}
    brands = {brand.of(pid) for pid in marked} - {None, 0}
    others = {pid for pid in numbers if brands and pid != os.getpid() and brand.of(pid) in brands}
    return {pid: began for pid in marked | others if (began := started(pid))}


def _left(pid: int, words: bytes) -> bool:
    """Whether a process belongs to a command of a host that is gone."""
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            variables = file.read(_LARGEST).split(b"\0")
    except OSError:
        return False  # gone, or not ours
    for one in variables:
        if one.startswith(words):
            owner, _, rest = one[len(words) :].partition(b".")
            began = rest.partition(b".")[0]
            whole = owner.isdigit() and began.isdigit()
            return whole and not lives(int(owner), int(began))
    return False


def _signal(found: dict[int, int], number: int) -> None:
    for pid, began in found.items():
        with contextlib.suppress(OSError):  # gone meanwhile, or not ours
            _send(pid, began, number)


def _send(pid: int, began: int, number: int) -> None:
    """Signal a process, not another that has its number now. Raises OSError."""
    if not kernel.holds_processes():  # the number is looked at as late as can be
        if lives(pid, began):
            os.kill(pid, number)
        return
    fd = kernel.open_process(pid)
    try:
        if lives(pid, began):
            kernel.signal_process(fd, number)
    finally:
        os.close(fd)
