"""Powers of root: a command has none, whoever runs it.

Landlock rules about files only. With a single power left, a command of a host that runs as root
could look at the network's raw packets, set the clock, or come before every other process.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_CAP_AMBIENT = 47
_CLEAR_ALL = 4
_VERSION_3 = 0x20080522
_MOST = 64


def renounce(libc: Any) -> Callable[[], None]:
    """What a child calls before exec, once it needs no power any more."""
    prctl, capset, powers = libc.prctl, libc.capset, _known(libc)
    head, none = struct.pack("=Ii", _VERSION_3, 0), bytes(24)

    def drop() -> None:
        # What is in the bounding set comes back to root with the exec that follows: it goes first.
        for power in powers:
            prctl(_PR_CAPBSET_DROP, power, 0, 0, 0)  # an ordinary user may not, and has none
        prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
        capset(head, none)

    return drop


@cache
def _known(libc: Any) -> tuple[int, ...]:
    """The powers that the kernel knows, held or not: a user namespace brings all of them back."""
    return tuple(
        power for power in range(_MOST) if libc.prctl(_PR_CAPBSET_READ, power, 0, 0, 0) >= 0
    )
