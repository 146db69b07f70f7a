"""Which system calls a command may make: a filter that its children inherit and cannot take off.

Landlock and namespaces rule about files. The filter closes what they leave open: sockets that lead
past the network (raw ones, and those of other programs on this machine, such as D-Bus, Docker or
tmux, which would start programs for whoever asks), other processes (their memory, limits and
priorities), the clock, the kernel's own interfaces, and typing into a terminal. What is refused
fails with an error, as on a machine that does not have it, so programs fall back.

A filter sees numbers, never what a pointer leads to: paths are none of its business.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from dragoman import kernel

from .syscalls import MACHINES, Machine

ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LD, _AND, _RET = 0x20, 0x54, 0x06  # load a word, mask it, answer
_JEQ, _JGE, _JSET = 0x15, 0x35, 0x45
_NUMBER, _ARCH, _ARGS = 0, 4, 16  # offsets in what the filter is shown
_X32 = 0x40000000  # numbers of the other ABI of the same processor begin here
_SPEC_ALLOW = 4  # the filter costs no speculation
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_RTTIME = 15  # the limit that carries the brand (see `brand`)
_SPACES = 0x7E020000  # every CLONE_NEW… flag of clone
_TIME_SPACE = 0x80  # and the one that only unshare knows
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5
_TCP = 6
_TYPE = 0xF  # the rest of a socket's type are flags

Code = list[tuple[int, int, int, int]]  # operation, jump if true, jump if false, value

# Never needed by a command, and dangerous or a way around the other walls.
_REFUSED = (
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
    "pidfd_getfd", "kcmp", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree",
    "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "clock_settime", "clock_adjtime", "settimeofday", "adjtimex", "bpf", "perf_event_open",
    "keyctl", "add_key", "request_key", "kexec_load", "kexec_file_load", "create_module",
    "init_module", "finit_module", "delete_module", "userfaultfd", "reboot", "swapon", "swapoff",
    "sethostname", "setdomainname", "iopl", "ioperm", "acct", "quotactl", "quotactl_fd",
    "syslog", "vhangup", "nfsservctl", "lookup_dcookie", "uselib", "_sysctl", "fanotify_init",
    "open_by_handle_at", "sched_setattr",
)  # fmt: skip
# Programs that find these missing use others: `clone` can be looked at, `clone3` cannot, and
# what is done through a ring is seen by no filter.
_MISSING = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
# Shared memory, semaphores and queues of the whole user, where the command has no own ones.
_SHARED = (
    "shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd",
    "msgrcv", "msgctl", "mq_open", "mq_unlink",
)  # fmt: skip
# For oneself (process number 0) they are fine, for others not.
_OWN_ONLY = (
    "sched_setparam", "sched_setaffinity", "migrate_pages", "move_pages", "get_robust_list",
)  # fmt: skip
_KEYS = (
    0x5412,  # TIOCSTI: type into a terminal
    0x541C,  # TIOCLINUX: paste into a console
    0x541D,  # TIOCCONS: take the console's output
    0x5423,  # TIOCSETD
    0x5437,  # TIOCVHANGUP
    0x8901,  # FIOSETOWN: have the kernel send a signal
    0x8902,  # SIOCSPGRP
)


class Openings(NamedTuple):
    """What a filter lets pass that another would not."""

    unix: bool = False  # sockets of other programs on this machine
    network: bool = True  # sockets of the network
    own_ipc: bool = False  # System V and POSIX queues: they are the command's own


def build(openings: Openings, machine: Machine | None = None) -> bytes:
    """The filter as the kernel and bubblewrap take it; empty for a machine that is not known."""
    if machine is None:
        return _for(openings, platform.machine())
    return _build(openings, machine)


@cache
def _for(openings: Openings, name: str) -> bytes:
    machine = MACHINES.get(name)
    return b"" if machine is None else _build(openings, machine)


def _build(openings: Openings, machine: Machine) -> bytes:
    code: Code = [(_LD, 0, 0, _ARCH), (_JEQ, 1, 0, machine.audit), _answer(errno.EPERM)]
    code += [(_LD, 0, 0, _NUMBER), (_JGE, 0, 1, _X32), _answer(errno.ENOSYS)]
    for name, body in _rules(openings):
        number = machine.numbers.get(name)
        if number is not None:
            code += [(_JEQ, 0, len(body), number), *body]
    code.append((_RET, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *one) for one in code)


@cache
def install(program: bytes) -> Callable[[], None]:
    """What a child calls last before exec, with `no_new_privs` set. Raises OSError there."""
    length = len(program) // 8
    if not length:
        return lambda: None
    kept = ctypes.create_string_buffer(program, len(program))
    given = struct.pack("@HP", length, ctypes.addressof(kept))
    libc: Any = ctypes.CDLL(None, use_errno=True)
    number = _SECCOMP[platform.machine()]

    def enter() -> None:
        assert kept
        for flags in (_SPEC_ALLOW, 0):
            if libc.syscall(number, 1, flags, given) == 0:
                return
        raise OSError(ctypes.get_errno(), "seccomp")

    return enter


def as_file(program: bytes) -> int:
    """A descriptor that the filter can be read from; who asks for it closes it."""
    fd = kernel.memory_file("filter")
    os.write(fd, program)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


# --- rules ---


def _rules(openings: Openings) -> Iterable[tuple[str, Code]]:
    for name in _REFUSED:
        yield name, [_answer(errno.EPERM)]
    for name in _MISSING:
        yield name, [_answer(errno.ENOSYS)]
    for name in () if openings.own_ipc else _SHARED:
        yield name, [_answer(errno.ENOSYS)]
    yield "socket", _socket(openings)
    # A pair is connected for good, but one of datagrams, which the kernel also makes of the type
    # "raw", can be pointed elsewhere.
    pair = _when(1, _STREAM, _fine(), mask=_TYPE) + _when(1, _PACKETS, _fine(), mask=_TYPE)
    yield "socketpair", _fine() if openings.unix else [*pair, _answer(errno.EPERM)]
    yield "clone", _if_bits(0, _SPACES) + _fine()
    yield "unshare", _if_bits(0, _SPACES | _TIME_SPACE) + _fine()
    keys: Code = []
    for number in _KEYS:
        keys += _when(1, number, [_answer(errno.EPERM)])
    yield "ioctl", keys + _fine()
    for name in _OWN_ONLY:
        yield name, _others(0) + _fine()
    plain: Code = []
    for policy in (0, 3, 5):  # other, batch, idle: nothing that comes before anybody else
        plain += _when(1, policy, _fine(), mask=0xFF)
    yield "sched_setscheduler", _others(0) + plain + [_answer(errno.EPERM)]
    everybody = [_answer(errno.EPERM)]
    yield "setpriority", _when(0, 2, everybody) + _others(1) + _fine()
    yield "ioprio_set", _when(0, 3, everybody) + _others(1) + _fine()
    brand = _when(1, _RTTIME, _if_given(2) + _fine())
    yield "prlimit64", _others(0) + brand + _fine()
    yield "setrlimit", _when(0, _RTTIME, [_answer(errno.EPERM)]) + _fine()


def _socket(openings: Openings) -> Code:
    inet: Code = [_answer(errno.EACCES)]
    if openings.network:
        # A connection of several paths is in no table by which its owner could be found.
        tcp = _when(2, 0, _fine()) + _when(2, _TCP, _fine()) + [_answer(errno.EPROTONOSUPPORT)]
        inet = _when(1, _STREAM, tcp, mask=_TYPE) + _when(1, _DATAGRAM, _fine(), mask=_TYPE)
        inet.append(_answer(errno.EPERM))
    code = _when(0, _UNIX, _fine() if openings.unix else [_answer(errno.EPERM)])
    code += _when(0, _INET, inet) + _when(0, _INET6, inet)
    # Without any power it only lists addresses and routes, which servers show when they start.
    code += _when(0, _NETLINK, _when(2, 0, _fine()) + [_answer(errno.EPERM)])
    return [*code, _answer(errno.EAFNOSUPPORT)]


def _answer(number: int) -> tuple[int, int, int, int]:
    return (_RET, 0, 0, _ERRNO | number)


def _fine() -> Code:
    return [(_RET, 0, 0, ALLOW)]


def _low(argument: int) -> tuple[int, int, int, int]:
    return (_LD, 0, 0, _ARGS + 8 * argument)


def _when(argument: int, value: int, body: Code, mask: int = 0) -> Code:
    """The body, when an argument (its lower half, as the kernel reads numbers) has this value."""
    masked: Code = [(_AND, 0, 0, mask)] if mask else []
    return [_low(argument), *masked, (_JEQ, 0, len(body), value), *body]


def _others(argument: int) -> Code:
    """Refuse when the argument names a process, group or user other than the caller itself."""
    return [_low(argument), (_JEQ, 1, 0, 0), _answer(errno.EPERM)]


def _if_bits(argument: int, bits: int) -> Code:
    return [_low(argument), (_JSET, 0, 1, bits), _answer(errno.EPERM)]


def _if_given(argument: int) -> Code:
    """Refuse when a pointer is given."""
    high = (_LD, 0, 0, _ARGS + 8 * argument + 4)
    return [_low(argument), (_JEQ, 0, 2, 0), high, (_JEQ, 1, 0, 0), _answer(errno.EPERM)]
