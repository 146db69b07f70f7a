"""Powers of root that no command needs: taken away before it starts.

Landlock rules about files only. A command of a host that runs as root could still stop the machine,
load a module or set the clock; what it needs for files and users it keeps.
"""

import os
from collections.abc import Callable
from typing import Any

_PR_CAPBSET_DROP = 24
_PR_CAP_AMBIENT = 47
_CLEAR_ALL = 4
_TAKEN = (
    9,  # LINUX_IMMUTABLE
    12,  # NET_ADMIN
    16,  # SYS_MODULE
    17,  # SYS_RAWIO
    18,  # SYS_CHROOT
    19,  # SYS_PTRACE
    20,  # SYS_PACCT
    21,  # SYS_ADMIN
    22,  # SYS_BOOT
    24,  # SYS_RESOURCE: with it, limits could be raised again
    25,  # SYS_TIME
    26,  # SYS_TTY_CONFIG
    27,  # MKNOD
    30,  # AUDIT_CONTROL
    32,  # MAC_OVERRIDE
    33,  # MAC_ADMIN
    34,  # SYSLOG
    35,  # WAKE_ALARM
    36,  # BLOCK_SUSPEND
    38,  # PERFMON
    39,  # BPF
    40,  # CHECKPOINT_RESTORE
)


def renounce(libc: Any) -> Callable[[], None]:
    """What a child calls before exec; nothing where it is not root."""
    if os.geteuid() != 0:
        return lambda: None
    prctl = libc.prctl

    def drop() -> None:
        # What leaves the bounding set is gone with the exec that follows. A power that this
        # kernel does not know, or that we do not have ourselves, cannot be dropped: no harm.
        for power in _TAKEN:
            prctl(_PR_CAPBSET_DROP, power, 0, 0, 0)
        prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)

    return drop
