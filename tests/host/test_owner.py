"""A process is known by its number and its birth, so that a reused number is nobody's."""

import os
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


@pytest.mark.parametrize("name", ["", "nobody", ":5", "-1", "1x:2"])
def test_what_names_no_process(name: str) -> None:
    assert not is_alive(name)


def test_a_process_of_another_user_lives() -> None:
    assert is_alive("1")
