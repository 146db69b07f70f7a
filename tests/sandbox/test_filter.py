"""The filter of system calls: what it is made of, and what it does to a process."""

import ctypes
import errno
import os
import platform
import socket
import struct
import subprocess
import sys
from collections.abc import Callable

import pytest

from dragoman.sandbox import seccomp
from dragoman.sandbox.seccomp import ALLOW, Openings, build
from dragoman.sandbox.syscalls import MACHINES, here

needs_filter = pytest.mark.skipif(here() is None, reason="no filter for this machine")


def run(program: bytes, number: int, *args: int, arch: int) -> int:
    """What the kernel's machine would answer; errors as their number, 0 for yes."""
    words = list(args) + [0] * (6 - len(args))
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, arch, 0, *(w & (1 << 64) - 1 for w in words))
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = word = 0
    for _ in range(len(code)):
        op, yes, no, value = code[at]
        at += 1
        if op == 0x20:
            word = struct.unpack_from("=I", data, value)[0]
        elif op == 0x54:
            word &= value
        elif op == 0x06:
            return 0 if value == ALLOW else value & 0xFFFF
        else:
            true = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[op]
            at += yes if true else no
    raise AssertionError("no answer")


@pytest.mark.parametrize("name", MACHINES)
def test_what_it_answers(name: str) -> None:
    machine = MACHINES[name]
    plain = build(Openings(), machine)
    wide = build(Openings(unix=True, own_ipc=True), machine)
    silent = build(Openings(network=False), machine)
    assert len(plain) < 8 * 400

    def ask(call: str, *args: int, program: bytes = plain) -> int:
        return run(program, machine.numbers[call], *args, arch=machine.audit)

    denied = errno.EPERM
    for call in ("ptrace", "mount", "setns", "bpf", "clock_settime", "pidfd_getfd", "keyctl"):
        assert ask(call) == denied, call
    for call in ("clone3", "io_uring_setup"):
        assert ask(call) == errno.ENOSYS
    unix, inet, inet6, netlink, packet, vsock, alg = 1, 2, 10, 16, 17, 40, 38
    for kind in (1, 2, 5, 1 | 0o2000000, 1 | 0o4000):
        assert ask("socket", unix, kind, 0) == denied
        assert ask("socket", unix, kind, 0, program=wide) == 0
    for family in (inet, inet6):
        for kind in (1, 2, 1 | 0o2000000 | 0o4000):
            assert ask("socket", family, kind, 0) == 0
            assert ask("socket", family, kind, 0, program=silent) == errno.EACCES
        for kind in (3, 10, 3 | 0o2000000):
            assert ask("socket", family, kind, 255) == denied
    # The upper half of an argument is nothing that the kernel looks at.
    assert ask("socket", unix | 1 << 32, 1, 0) == denied
    assert ask("socket", inet, 3 | 1 << 40, 0) == denied
    assert ask("socket", netlink, 3, 0) == 0 and ask("socket", netlink, 3, 4) == denied
    for family in (packet, vsock, alg, 15, 29, 44):
        assert ask("socket", family, 3, 0) == errno.EAFNOSUPPORT
    for kind in (1, 5, 1 | 0o2000000, 5 | 0o4000):
        assert ask("socketpair", unix, kind) == 0
    for kind in (2, 3, 3 | 0o2000000, 4, 10):  # of "raw" the kernel makes datagrams
        assert ask("socketpair", unix, kind) == denied
        assert ask("socketpair", unix, kind, program=wide) == 0
    assert ask("clone", 0x1200011) == 0 and ask("clone", 0x10000011) == denied
    assert ask("unshare", 0x400) == 0 and ask("unshare", 0x20000) == denied
    assert ask("ioctl", 0, 0x5413) == 0
    for key in (0x5412, 0x541C, 0x5412 | 1 << 32):
        assert ask("ioctl", 0, key) == denied
    assert ask("prlimit64", 0, 7, 0x1000) == 0 and ask("prlimit64", 1, 7, 0x1000) == denied
    assert ask("prlimit64", 0, 15, 0) == 0 and ask("prlimit64", 0, 15, 0x1000) == denied
    assert ask("prlimit64", 0, 15, 1 << 40) == denied
    assert ask("setrlimit", 7) == 0 and ask("setrlimit", 15) == denied
    assert ask("setpriority", 0, 0) == 0 and ask("setpriority", 0, 77) == denied
    assert ask("setpriority", 2, 0) == denied and ask("ioprio_set", 3, 0) == denied
    assert ask("sched_setscheduler", 0, 3) == 0 and ask("sched_setscheduler", 0, 1) == denied
    assert ask("sched_setscheduler", 9, 0) == denied
    assert ask("sched_setscheduler", 0, 0x40000000) == 0
    assert ask("sched_setscheduler", 0, 0x40000001) == denied
    assert ask("sched_setaffinity", 0) == 0 and ask("sched_setaffinity", 5) == denied
    assert ask("shmget") == errno.ENOSYS and ask("shmget", program=wide) == 0


@pytest.mark.parametrize("name", MACHINES)
def test_other_machines_and_other_numbers_are_refused(name: str) -> None:
    machine = MACHINES[name]
    program = build(Openings(), machine)
    for arch in (0x40000003, 0x40000028, 0xC00000F3, 0, 0xFFFFFFFF):
        assert run(program, 0, arch=arch) == errno.EPERM
    for number in (0x40000000, 0x40000000 | 41, -1):
        assert run(program, number, arch=machine.audit) == errno.ENOSYS
    assert run(program, 0, arch=machine.audit) == 0


def test_a_machine_that_is_not_known_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    assert build(Openings()) == b"" and seccomp.install(b"")() is None


def inside(code: str, *before: Callable[[], None]) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    enter = seccomp.install(build(Openings()))

    def start() -> None:
        for one in before:
            one()
        libc.prctl(38, 1, 0, 0, 0)
        enter()

    done = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=start, capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


@needs_filter
def test_children_inherit_it_and_a_second_one_takes_nothing_away() -> None:
    said = inside(
        "import subprocess, sys\n"
        "print(open('/proc/self/status').read().split('Seccomp_filters:')[1].split()[0])\n"
        "code = 'import socket; socket.socket(socket.AF_UNIX)'\n"
        "print(subprocess.run([sys.executable, '-c', code], capture_output=True).returncode)\n"
    )
    assert int(said.split()[0]) >= 1 and said.split()[1] == "1", said


@needs_filter
def test_programs_fall_back() -> None:
    """Threads, pools, pairs, names of hosts, terminals: all of it works without what is refused."""
    said = inside(
        "import asyncio, concurrent.futures as c, socket, subprocess, threading\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(9).decode())\n"
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())\n"
        "print(c.ThreadPoolExecutor(2).submit(lambda: 'pool').result())\n"
        "print(asyncio.run(asyncio.sleep(0, 'loop')))\n"
        "print(socket.getaddrinfo('localhost', 80)[0][4][1])\n"
        "s = socket.create_server(('127.0.0.1', 0)); print('server')\n"
    )
    assert said.split() == ["thread", "pair", "child", "pool", "loop", "80", "server"], said


@needs_filter
@pytest.mark.skipif(platform.machine() != "x86_64", reason="another ABI of this processor")
def test_the_numbers_of_x32_are_no_way_around() -> None:
    said = inside(
        "import ctypes, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "print(c.syscall(0x40000000 | 41, 1, 1, 0), os.strerror(ctypes.get_errno()))\n"
    )
    assert said == "-1 Function not implemented\n"


def test_a_file_of_the_filter_can_be_read_from_its_beginning() -> None:
    program = build(Openings())
    fd = seccomp.as_file(program)
    try:
        assert os.read(fd, 1 << 16) == program
    finally:
        os.close(fd)
    assert socket.AF_UNIX == 1
