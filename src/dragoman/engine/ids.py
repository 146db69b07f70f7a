"""What the engine takes from the world around it: names that nothing else has, and the time."""

import os
from time import monotonic, time_ns

_SIZE = 16
_pool = memoryview(b"")


def token() -> str:
    """128 random bits as 32 hex digits. Drawn in stock: asking the kernel costs microseconds."""
    global _pool
    if not _pool:
        _pool = memoryview(os.urandom(_SIZE * 64))
    taken, _pool = _pool[:_SIZE], _pool[_SIZE:]
    return taken.hex()


def _forget() -> None:
    global _pool
    _pool = memoryview(b"")


os.register_at_fork(after_in_child=_forget)  # a child must not draw the same ones


class WallClock:
    """The real time."""

    __slots__ = ()

    monotonic = staticmethod(monotonic)

    def now_ms(self) -> int:
        return time_ns() // 1_000_000
