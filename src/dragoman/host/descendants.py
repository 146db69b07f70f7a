"""Which of our own descendants may talk to us.

A command that an agent runs has the rights of the same user, and could otherwise connect to the
daemon and approve its own calls. The kernel tells who connects; whoever descends from us is
refused, unless it is a process that the user set up: a hosted agent, an MCP server, an app. What a
command of an earlier daemon left behind is known by its brand.
"""

import os
import sys
from collections import OrderedDict
from typing import Literal

from dragoman import kernel
from dragoman.observe.log import get_log
from dragoman.sandbox import brand

_PR_SET_CHILD_SUBREAPER = 36
_TRIES = 3
_HIGHEST = 256  # ancestors looked at
_REMEMBERED = 1024  # strangers that need not be looked at again
_HELD = 64  # of those, whose descriptors are kept

log = get_log("descendants")


class Held:
    """A process by its descriptor: its number can mean no other while it is there."""

    __slots__ = ("fd",)

    def __init__(self, pid: int) -> None:
        """Raises OSError."""
        self.fd = kernel.open_process(pid)

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)


class Descendants:
    """The family of this process."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._trusted: dict[int, bytes] = {}  # process -> when it began, since numbers come again
        # Processes that are no descendants of ours, and when they began: that never changes.
        self._strangers: OrderedDict[int, bytes] = OrderedDict()
        self._held: OrderedDict[int, Held] = OrderedDict()  # those that came again
        self.branded: set[int] = set()  # programs of agents and servers that run, by our mark
        self._dead: set[int] = set()  # seen dead and uncollected the last time
        self.watching = False

    def adopt(self) -> bool:
        """Become the parent of what our descendants leave behind, so that it stays in sight."""
        if sys.platform != "linux":
            return False
        self.watching = _prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0
        return self.watching

    def trust(self, pid: int) -> None:
        self._trusted[pid] = self._began(pid)

    def forget(self, pid: int) -> None:
        self._trusted.pop(pid, None)
        self.branded.discard(pid)

    def trust_marked(self, mark: str) -> int | None:
        """Trust the child of ours that has this in its environment; returns its number."""
        for pid in self._children():
            try:
                with open(f"{self._proc}/{pid}/environ", "rb") as file:
                    if mark.encode() in file.read(1 << 20):
                        self.trust(pid)
                        return pid
            except OSError:
                continue  # gone meanwhile
        return None

    def brand(self, pid: int) -> None:
        """Mark a program that we started, and what it started since: it is refused for good."""
        self.branded.add(pid)
        mark = brand.new()  # it stays among the live ones: nobody takes it for a runaway
        found, family = {pid}, [pid]
        while family:
            above = family.pop()
            brand.put(mark, above)
            below = [one for one in self._children(above) if one not in found]
            found.update(below)
            family += below

    def brand_marked(self, mark: str) -> int | None:
        """Brand the child of ours that has this in its environment; returns its number."""
        pid = self.trust_marked(mark)
        if pid is not None:
            self.forget(pid)
            self.brand(pid)
        return pid

    def refuses(self, pid: int | None) -> bool:
        """Whether this process is one that a tool started."""
        if not pid:
            return False
        held = self._held.get(pid)
        if held is not None:
            try:
                kernel.signal_process(held.fd, 0)  # nothing is sent: it is only looked for
                return False
            except PermissionError:
                return False  # there, and another user's
            except OSError:
                del self._held[pid]
        if pid == os.getpid():
            return False
        began = self._began(pid)
        if began and self._strangers.get(pid) == began:
            self._hold(pid, began)
            return False
        if brand.is_ours(pid):
            return True
        if not self.watching:
            return False
        for _ in range(_TRIES):
            found = self._family(pid)
            if found == "none" and began:
                self._remember(pid, began)
            if found:
                return found == "ours"
        return True  # it keeps vanishing: nobody is there who could be served

    def _remember(self, pid: int, began: bytes) -> None:
        self._strangers[pid] = began
        if len(self._strangers) > _REMEMBERED:
            self._strangers.popitem(last=False)

    def _hold(self, pid: int, began: bytes) -> None:
        """Keep a stranger that comes again by its descriptor: that is quicker to look at."""
        if not kernel.holds_processes() or self._proc != "/proc":
            return
        try:
            held = Held(pid)
        except OSError:
            return  # gone meanwhile, or no descriptor is left
        if self._began(pid) != began:
            return  # its number has become another's just now
        self._held[pid] = held
        if len(self._held) > _HELD:
            self._held.popitem(last=False)

    def _family(self, pid: int) -> Literal["ours", "trusted", "none", ""]:
        """Whose descendant a process is; nothing when one went away while we looked."""
        us, at = os.getpid(), pid
        for _ in range(_HIGHEST):
            if at == us:
                return "ours"
            if at <= 1:
                return "none"
            if at in self._trusted and self._trusted[at] == self._began(at):
                return "trusted"
            parent = self._parent(at)
            if parent is None:
                return ""
            at = parent
        return "ours"

    def _began(self, pid: int) -> bytes:
        fields = self._stat(pid)
        return fields[19] if len(fields) > 19 else b""

    def _parent(self, pid: int) -> int | None:
        fields = self._stat(pid)
        return int(fields[1]) if fields else None

    def _stat(self, pid: int) -> list[bytes]:
        try:
            with open(f"{self._proc}/{pid}/stat", "rb") as file:
                data = file.read(1024)
        except OSError:
            return []
        return data[data.rfind(b")") + 2 :].split()  # the name may contain anything

    def _children(self, of: int = 0) -> list[int]:
        us = of or os.getpid()
        try:
            numbers = [int(name) for name in os.listdir(self._proc) if name.isdigit()]
        except OSError:
            return []
        return [pid for pid in numbers if self._parent(pid) == us]

    def bury(self) -> int:
        """Collect adopted children that died; called now and then.

        Those that somebody here started are collected by whoever started them, and at once: one
        that is still dead at the next look is nobody's but ours.
        """
        if not self.watching:
            return 0
        dead = {pid for pid in self._children() if self._stat(pid)[:1] == [b"Z"]}
        count = 0
        for pid in dead & self._dead:
            try:
                count += os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                continue  # collected just now
        self._dead = dead - self._dead
        if count:
            log.debug("collected orphans", count=count)
        return count


def _prctl(option: int, value: int) -> int:
    """The system call, which Python has no name for."""
    try:  # what `ctypes` stands on: the rest of it takes 1.6 ms more at every start (0073)
        from _ctypes import call_function, dlopen, dlsym
    except ImportError:
        import ctypes

        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))
    here = dlopen(None, 0)  # type: ignore[arg-type]
    return int(call_function(dlsym(here, "prctl"), (option, value, 0, 0, 0)))
