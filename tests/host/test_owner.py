"""A process is known by its number and its birth, so that a reused number is nobody's."""

import os
import signal
import subprocess
import sys

import pytest

from dragoman.host.owner import is_alive, this_process


def test_this_process_lives() -> None:
    assert this_process() == this_process() and is_alive(this_process())
    assert is_alive(str(os.getpid()))


def test_a_reused_number_is_somebody_else() -> None:
    pid, _, born = this_process().partition(":")
    assert born.isdigit() and not is_alive(f"{pid}:{int(born) + 1}")


def test_who_has_ended_does_not_live() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        name = f"{process.pid}"
    assert not is_alive(name)


def test_who_has_ended_does_not_live_though_nobody_collects_it() -> None:
    """The sessions of a daemon that was killed in a container without an init ran for ever."""
    process = subprocess.Popen(["sleep", "600"])
    born = process_name(process.pid)
    assert is_alive(born) and is_alive(str(process.pid))
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is left uncollected
    assert not is_alive(born) and not is_alive(str(process.pid))
    process.wait()


def process_name(pid: int) -> str:
    code = "import os, sys; from dragoman.host import owner; os.getpid = lambda: int(sys.argv[1]); "
    words = [sys.executable, "-c", code + "print(owner.this_process())", str(pid)]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", ["", "nobody", ":5", "-1", "1x:2"])
def test_what_names_no_process(name: str) -> None:
    assert not is_alive(name)


def test_a_process_of_another_user_lives() -> None:
    assert is_alive("1")
