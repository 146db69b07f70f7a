"""Where a measure runs: client and server on one core, or wherever the scheduler puts them.

A message between two cores of a virtual machine wakes a sleeping core, which takes several times as
long as all that the servers here do with it, and the scheduler moves processes at its own will. So
round trips are measured with both ends on one core, for every server alike (a Go server's are the
same when its client is elsewhere on a good day: 19-20 us). Throughput and the time to a first delta
are measured in both ways, and each server's better result counts: those with several threads may
use all cores, and those that wake their client with every write are not interrupted by it.
"""

import contextlib
import os
from collections.abc import Iterator

_MOVABLE = hasattr(os, "sched_setaffinity")


def told() -> str:
    """What a run says about its placement."""
    if not _MOVABLE:
        return "Placement: left to the scheduler; round trips are not comparable."
    return (
        f"Placement: round trips with client and server on one core (number {_core()}) for every"
        " server alike; rates, CPU per message and first deltas on one core and on all, each"
        " server's better result counts."
    )


@contextlib.contextmanager
def on_one_core(*servers: int) -> Iterator[None]:
    """Keep this thread, the programs it starts and some servers on one core for a while."""
    if not _MOVABLE:
        yield
        return
    before = os.sched_getaffinity(0)
    homes = {server: os.sched_getaffinity(server) for server in servers}
    try:
        for server in servers:
            _move(server, {_core()})
        os.sched_setaffinity(0, {_core()})
        yield
    finally:
        os.sched_setaffinity(0, before)
        for server, home in homes.items():
            _move(server, home)


def placed(one: bool, *servers: int) -> contextlib.AbstractContextManager[None]:
    """On one core, or as it comes."""
    return on_one_core(*servers) if one else contextlib.nullcontext()


def _core() -> int:
    return max(_ALL)


_ALL = os.sched_getaffinity(0) if _MOVABLE else {0}


def _move(server: int, cores: set[int]) -> None:
    """Move all threads of a process, also those that begin meanwhile."""
    moved: set[str] = set()
    while more := _threads(server) - moved:
        for thread in more:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), cores)
        moved |= more


def _threads(server: int) -> set[str]:
    try:
        return set(os.listdir(f"/proc/{server}/task"))
    except FileNotFoundError:
        return set()
