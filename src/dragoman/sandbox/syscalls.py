"""Numbers of the system calls that the filter names, for the machines that it knows."""

import platform
from typing import NamedTuple


class Machine(NamedTuple):
    """One architecture: how the kernel names it to a filter, and its numbers."""

    audit: int  # AUDIT_ARCH_*
    numbers: dict[str, int]


# From 424 on every architecture has the same numbers.
_SHARED = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443, "process_mrelease": 448, "open_tree_attr": 467,
}  # fmt: skip

_X86_64 = {
    "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53,
    "clone": 56, "semget": 64, "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69,
    "msgrcv": 70, "msgctl": 71, "ptrace": 101, "syslog": 103, "uselib": 134, "setpriority": 141,
    "sched_setparam": 142, "sched_setscheduler": 144, "vhangup": 153, "pivot_root": 155,
    "_sysctl": 156, "adjtimex": 159, "setrlimit": 160, "chroot": 161, "acct": 163,
    "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "create_module": 174, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "nfsservctl": 180, "sched_setaffinity": 203, "lookup_dcookie": 212, "semtimedop": 220,
    "clock_settime": 227, "mq_open": 240, "mq_unlink": 241, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "ioprio_set": 251, "migrate_pages": 256, "unshare": 272,
    "get_robust_list": 274, "move_pages": 279, "perf_event_open": 298, "fanotify_init": 300,
    "prlimit64": 302, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "sched_setattr": 314, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip

_AARCH64 = {
    "lookup_dcookie": 18, "ioctl": 29, "ioprio_set": 30, "umount2": 39, "mount": 40,
    "pivot_root": 41, "nfsservctl": 42, "chroot": 51, "vhangup": 58, "quotactl": 60, "acct": 89,
    "unshare": 97, "get_robust_list": 100, "kexec_load": 104, "init_module": 105,
    "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117,
    "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "setpriority": 140, "reboot": 142, "sethostname": 161, "setdomainname": 162,
    "setrlimit": 164, "settimeofday": 170, "adjtimex": 171, "mq_open": 180, "mq_unlink": 181,
    "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191,
    "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196, "socket": 198,
    "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
    "swapon": 224, "swapoff": 225, "migrate_pages": 238, "move_pages": 239,
    "perf_event_open": 241, "prlimit64": 261, "fanotify_init": 262, "open_by_handle_at": 265,
    "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271,
    "kcmp": 272, "finit_module": 273, "sched_setattr": 274, "bpf": 280, "userfaultfd": 282,
    "kexec_file_load": 294,
}  # fmt: skip

MACHINES = {
    "x86_64": Machine(0xC000003E, _X86_64 | _SHARED),
    "aarch64": Machine(0xC00000B7, _AARCH64 | _SHARED),
}


def here() -> Machine | None:
    """This machine; None when the filter does not know it."""
    return MACHINES.get(platform.machine())
