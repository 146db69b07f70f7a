"""Everything that a command started: its process group, its session, and those that left both.

A child may ignore SIGTERM, start others, or leave the group with setsid. Members are found by
group, by session, by a mark in the environment, and by a limit that cannot be taken off.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable, Iterator, Sequence

from dragoman import kernel
from dragoman.sandbox import brand

_CHECKED = 512  # processes waited for by descriptor at a time
_ROUNDS = 5
_PAUSE = 0.02  # seconds between two looks, where nobody tells when a process ends
_HIGHEST = 256  # ancestors looked at
_PROC = "/proc"


class Group:
    """The processes of one command. `pid` leads their group and session."""

    __slots__ = ("brand", "mark", "pid", "since")

    def __init__(self, pid: int, mark: str, brand: int = 0) -> None:
        self.pid = pid
        self.mark = mark.encode()
        self.brand = brand
        self.since = started(pid)

    def members(self) -> list[int]:
        """Those that live (the dead that nobody has collected do not count)."""
        numbers: list[int] = []
        with contextlib.suppress(OSError):
            numbers = [int(name) for name in os.listdir(_PROC) if name.isdigit()]
        if not numbers:  # no /proc on this system
            return [self.pid] if self._group_exists() else []
        return [pid for pid in numbers if self._is_member(pid)]

    def count(self) -> int:
        """How many processes and threads there are."""
        found = (_stat(pid) for pid in self.members())
        return sum(int(fields[17]) for fields in found if fields is not None)

    def _group_exists(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _is_member(self, pid: int) -> bool:
        fields = _stat(pid)
        if fields is None or fields[0] in (b"Z", b"X"):
            return False
        if int(fields[2]) == self.pid or int(fields[3]) == self.pid:
            return True
        if pid == os.getpid() or int(fields[19]) < self.since:
            return False
        if self.brand and self._is_branded(pid, int(fields[1])):
            return True
        try:
            with open(f"{_PROC}/{pid}/environ", "rb") as file:
                return self.mark in file.read(1 << 17)
        except OSError:
            return False  # gone, or not ours

    def _is_branded(self, pid: int, parent: int) -> bool:
        """Whether it carries our brand, or one that was tampered with.

        A brand that is unknown here may be that of another host, unless the process was left to
        us: then it lowered its brand and ran away.
        """
        found = brand.of(pid)
        if found is None or found == self.brand:
            return found is not None
        if found < brand.LEAST:
            return self._comes_from_us(parent)
        return parent == os.getpid() and found not in brand.live

    def _comes_from_us(self, pid: int) -> bool:
        """Whether a process below this one is of our command, and not of another host's.

        Those that ran away belong to whoever reaps for us: to us, or to an ancestor of ours.
        """
        for _ in range(_HIGHEST):
            found = brand.of(pid)
            if found is None:
                return pid <= 1 or pid in _line()
            if found == self.brand or found in brand.live:
                return found == self.brand
            if (fields := _stat(pid)) is None:
                return True  # it went just now, and left its children to somebody
            pid = int(fields[1])
        return True

    def signal(self, number: int, members: Iterable[int] = ()) -> None:
        """Send a signal to the group, and to members outside of it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != self.pid:
                    os.kill(pid, number)

    async def stop(self) -> None:
        """SIGKILL to all at once. They are halted first, so that none makes more meanwhile."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for _ in range(_ROUNDS):
                left = await asyncio.to_thread(self.members)
                self.signal(number, left)
                if number == signal.SIGSTOP and all(map(_halted, left)):
                    break
                if not left:
                    return
                if number == signal.SIGKILL:
                    await gone(left, 0.5)

    async def end(self, grace: float, *, leader_lives: bool) -> int:
        """SIGTERM to all, SIGKILL after `grace` seconds; returns how many there were.

        Once the leader was collected, its number may be another's: look before shooting.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        if leader_lives:
            self.signal(signal.SIGTERM)
        left = await asyncio.to_thread(self.members)
        count = len(left)
        if not left:
            return 0
        self.signal(signal.SIGTERM, left)
        await gone(left, deadline - loop.time())
        for _ in range(_ROUNDS):
            left = await asyncio.to_thread(self.members)
            if not left:
                break
            self.signal(signal.SIGKILL, left)
            await gone(left, 0.5)
        return count


def _stat(pid: int) -> list[bytes] | None:
    """State, parent, group, session, ... of a process; None when it is gone."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            data = file.read(1024)
    except OSError:
        return None
    fields = data[data.rfind(b")") + 2 :].split()  # the name may contain anything
    return fields if len(fields) > 19 else None


def _line() -> Iterator[int]:
    """This process, and its ancestors."""
    pid = os.getpid()
    for _ in range(_HIGHEST):
        yield pid
        if pid <= 1 or (fields := _stat(pid)) is None:
            return
        pid = int(fields[1])


def _halted(pid: int) -> bool:
    fields = _stat(pid)
    return fields is None or fields[0] in (b"T", b"Z", b"X")


def started(pid: int) -> int:
    """When a process began, in ticks of the machine; 0: there is none."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def lives(pid: int, began: int) -> bool:
    """Whether the process that began then still runs."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in (b"Z", b"X") and int(fields[19]) == began


async def gone(pids: Iterable[int], seconds: float) -> None:
    """Wait until all these processes have ended, at most `seconds` of time."""
    pids = list(pids)
    loop = asyncio.get_running_loop()
    watched: dict[int, asyncio.Future[None]] = {}
    try:
        for pid in pids[:_CHECKED]:
            try:
                fd = kernel.open_process(pid)
            except ProcessLookupError:
                continue
            except OSError:
                await _looked_for(pids, seconds)  # no such descriptors here, or none left
                return
            future: asyncio.Future[None] = loop.create_future()
            watched[fd] = future
            loop.add_reader(fd, _ended, loop, fd, future)
        if watched:
            await asyncio.wait(watched.values(), timeout=max(0.0, seconds))
    finally:
        for fd in watched:
            loop.remove_reader(fd)
            os.close(fd)


async def _looked_for(pids: Sequence[int], seconds: float) -> None:
    """The same by looking again and again."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while any(map(_runs, pids)) and loop.time() < end:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(_PAUSE)


def _runs(pid: int) -> bool:
    if (fields := _stat(pid)) is not None:
        return fields[0] not in (b"Z", b"X")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not os.path.isdir(_PROC)  # it went just now, or there is no /proc on this system


def _ended(loop: asyncio.AbstractEventLoop, fd: int, future: "asyncio.Future[None]") -> None:
    loop.remove_reader(fd)
    if not future.done():
        future.set_result(None)
