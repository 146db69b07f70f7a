"""Why nobody answers: tells a daemon that is stopped or stuck from one that is only slow.

A daemon answers a greeting at once, whatever else it does. One that does not, and neither runs nor
wants to run nor waits for a disk, will not answer for waiting longer. Where the system does not
tell of the process, nothing is concluded.
"""

import _socket as socket

from dragoman import TYPE_CHECKING

from .problems import ConnectionGone

if TYPE_CHECKING:
    from typing import Any

LOOK_SECONDS = 0.25  # between two looks at a process that has not answered
TOLD_SECONDS = 2.0  # until a person is told what is waited for
MUTE_SECONDS = 8.0  # without an answer to the greeting and without any work
_LATER = "What was asked may still be done when it goes on."
# What changes nothing may be given up early: it can be asked again.
READS = frozenset(
    f"dragoman/{name}"
    for name in (
        "agents", "approval", "approvals", "apps", "checkpoints", "doctor", "history", "models",
        "rules", "scheduleRuns", "schedules", "session", "sessions", "status",
    )
)  # fmt: skip


class Silence:
    """One wait for a process at the other end of a Unix socket."""

    def __init__(self, sock: "Any", path: str) -> None:
        self.path = path
        self.pid = _peer(sock)
        self._worked = -1  # ticks of the CPU at the last look
        self._idle = 0.0
        self._stops = 0

    def look(self, seconds: float, *, greeted: bool, reads: bool) -> None:
        """Another so many seconds went by. Raises ConnectionGone when waiting is of no use."""
        state, worked = _work(self.pid)
        later = "" if reads else f" {_LATER}"
        self._stops = self._stops + 1 if state == "T" else 0
        if self._stops > 1:
            raise ConnectionGone(
                f"The daemon (process {self.pid}) is stopped and cannot answer.{later}",
                f"Let it go on: kill -CONT {self.pid}; or end it: kill -KILL {self.pid}",
            )
        rests = state == "S" and worked == self._worked and not greeted
        self._idle = self._idle + seconds if rests else 0.0
        self._worked = worked
        if reads and self._idle >= MUTE_SECONDS:
            raise ConnectionGone(
                f"Process {self.pid} listens at {self.path}, but has neither answered nor worked "
                f"for {MUTE_SECONDS:g} seconds.",
                f"If it is the daemon, it is stuck: end it with kill {self.pid}, and start it "
                "with: dragoman daemon --background",
            )

    def waits_for(self) -> str:
        """What a person is told while nothing comes."""
        who = f"the daemon (process {self.pid})" if self.pid else f"the daemon at {self.path}"
        doing = {"R": ", which is busy", "D": ", which waits for a disk"}.get(
            _work(self.pid)[0], ""
        )
        return f"waiting for {who}{doing}"


def _peer(sock: "Any") -> int:
    """The process that listens there; 0 where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    try:
        told = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    except OSError:
        return 0
    from sys import byteorder

    return int.from_bytes(told[:4], byteorder)


def _work(pid: int) -> tuple[str, int]:
    """A process's state as the system writes it, and how long it has worked; ("", -1): unknown."""
    if not pid:
        return "", -1
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # Its name, in parentheses, may hold anything.
            words = file.read().rpartition(b")")[2].split()
        return words[0].decode("ascii", "replace"), int(words[11]) + int(words[12])
    except (OSError, IndexError, ValueError):
        return "", -1
