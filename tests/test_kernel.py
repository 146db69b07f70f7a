"""What the kernel offers works also with a Python that does not know its names."""

import errno
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import kernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what Linux offers")
SOURCE = Path(kernel.__file__).parent
MISSING = ((os, "pidfd_open"), (os, "memfd_create"), (signal, "pidfd_send_signal"))


@pytest.fixture(params=["as it is", "portable"])
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """This Python, and one as uv and conda have it."""
    if request.param == "portable":
        for module, name in MISSING:
            monkeypatch.delattr(module, name, raising=False)
    return str(request.param)


def test_a_process_is_held_signalled_and_waited_for(python: str) -> None:
    child = subprocess.Popen(["sleep", "600"])
    fd = kernel.open_process(child.pid)
    try:
        assert not os.get_inheritable(fd)
        kernel.signal_process(fd, 0)
        assert select.select([fd], [], [], 0)[0] == []
        kernel.signal_process(fd, signal.SIGTERM)
        assert select.select([fd], [], [], 60)[0] == [fd]
        assert child.wait(60) == -signal.SIGTERM
        with pytest.raises(ProcessLookupError):
            kernel.signal_process(fd, 0)
    finally:
        os.close(fd)
        child.kill()
        child.wait()


@pytest.mark.parametrize("why", [errno.ENOSYS, errno.EPERM])
def test_where_the_kernel_refuses_to_hold_processes_that_is_known(
    why: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(pid: int) -> int:
        raise OSError(why, os.strerror(why))

    kernel.holds_processes.cache_clear()
    try:
        monkeypatch.setattr(kernel, "open_process", refused)
        assert not kernel.holds_processes()
    finally:
        monkeypatch.undo()
        kernel.holds_processes.cache_clear()
    assert kernel.holds_processes()


def test_one_that_is_not_there_cannot_be_held(python: str) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(ProcessLookupError):
        kernel.open_process(child.pid)
    with pytest.raises(OSError):
        kernel.signal_process(-1, 0)


def test_a_file_in_memory_is_written_read_and_inherited_by_nobody(python: str) -> None:
    fd = kernel.memory_file("words")
    try:
        assert not os.get_inheritable(fd)
        assert os.write(fd, b"x" * 100_000) == 100_000
        assert os.pread(fd, 3, 99_998) == b"xx"
        assert "memfd:words" in os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def test_the_number_of_locks_is_the_one_that_python_knows() -> None:
    assert kernel.LOCK_OPEN_FILE == getattr(fcntl, "F_OFD_SETLK", 37) == 37


def test_nobody_asks_python_for_what_some_have_not() -> None:
    """Whoever does breaks, or is weaker without a word, with the Pythons of uv and conda."""
    names = (
        "pidfd_open|pidfd_send_signal|memfd_create|MFD_\\w+|copy_file_range|F_OFD_\\w+|F_ADD_SEALS"
    )
    asked = re.compile(rf"\b(?:os|signal|fcntl)\.(?:{names})\b|hasattr\(\w+, \"(?:{names})\"")
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "kernel.py" or path.parent != SOURCE
        for line in path.read_text().splitlines()
        if asked.search(line)
    ]
    assert found == []
