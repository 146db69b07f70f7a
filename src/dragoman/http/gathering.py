"""A stream that comes faster than anybody looks is read in beats: what comes between two of them
waits in the kernel, so that a process is woken and a read is made once for several deltas.

The first reads of an answer, and every one of a slower stream, are made at once. Only Linux lets a
socket be quiet (`SO_RCVLOWAT`: it is not readable below so many bytes, unless it ended).
"""

import asyncio
import socket
import sys

from dragoman.holding import Holder

BEAT_SECONDS = 0.004  # 250 times a second: far quicker than the eye
_ENOUGH = 32 * 1024  # bytes that are read before the beat
_WATCHED = 8  # reads that are looked at together
_FAST = 0.0015  # seconds from one to the next, at most
_AT_ONCE = 0.001  # what waited is read so soon after the beat, by a clock of milliseconds


class Gathering(Holder):
    """Watches the reads of one answer, and makes its socket quiet between beats."""

    _loop: asyncio.AbstractEventLoop
    _transport: asyncio.Transport
    _number: int = -1
    _timer: asyncio.TimerHandle | None = None
    _reads: int = 0
    _since: float = 0.0  # when the reads that are looked at began, or the last beat was
    _beats: bool = False

    def read(self, now: float) -> None:
        """Something was read just now, and more is to come."""
        if self._timer is not None:
            return  # it was enough for a read before the beat
        if self._beats:
            if now - self._since <= _AT_ONCE:
                self._be_quiet()
                return
            self._beats, self._reads = False, 0  # nothing had waited: it has become slow
        self._reads += 1
        if self._reads == _WATCHED:
            self._beats = now - self._since <= _WATCHED * _FAST
            self._reads = 0
            if self._beats:
                self._be_quiet()
        if not self._reads or self._reads == 1:
            self._since = now

    def stop(self) -> None:
        """The answer is over, or the connection is: the next byte is told at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._listen()

    def _be_quiet(self) -> None:
        if self._set(_ENOUGH):
            self._timer = self._loop.call_later(BEAT_SECONDS, self._listen)

    def _listen(self) -> None:
        self._timer = None
        self._since = self._loop.time()
        self._set(1)

    def _set(self, least: int) -> bool:
        if self._transport.is_closing():
            return False  # its number may be another's
        if self._number < 0:
            self._number = self._transport.get_extra_info("socket").fileno()
        borrowed = socket.SocketType(socket.AF_INET, socket.SOCK_STREAM, 0, self._number)
        try:
            borrowed.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
        except OSError:
            return False
        finally:
            borrowed.detach()  # it is the transport's
        return True


CAN_BE_QUIET = sys.platform == "linux"
