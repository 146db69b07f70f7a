"""Who belongs to a command: whatever they do to themselves, and nobody of another host."""

import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dragoman.sandbox import brand
from dragoman.tools.group import Group

# A program takes its mark, or none, and starts another that lowers its own and says its number.
ABOVE = """
import os, resource, subprocess, sys
mark = int(sys.argv[1])
if mark:
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, mark))
below = subprocess.Popen(
    ["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL, env={},
    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_RTTIME, (int(sys.argv[2]),) * 2),
)
print(below.pid, flush=True)
if sys.argv[3] == "stays":
    sys.stdin.read()
"""


@contextlib.contextmanager
def begun(mark: int, lower: int, how: str) -> Iterator[tuple[int, int]]:
    """The numbers of both programs."""
    above = subprocess.Popen(
        [sys.executable, "-c", ABOVE, str(mark), str(lower), how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert above.stdout is not None
    below = int(above.stdout.readline())
    try:
        if how == "leaves":
            assert above.wait(60) == 0
        yield above.pid, below
    finally:
        subprocess.run(["kill", "-9", str(below)], check=True)
        above.kill()
        above.communicate()


@contextlib.contextmanager
def command() -> Iterator[Group]:
    mark = brand.new()
    process = subprocess.Popen(
        ["sleep", "600"], preexec_fn=brand.burn(mark), start_new_session=True
    )
    try:
        yield Group(process.pid, "DRAGOMAN_MARK=none", mark)
    finally:
        brand.live.discard(mark)
        process.kill()
        process.wait()


@pytest.mark.parametrize("lower", [0, 7])
def test_a_lowered_mark_below_another_host_is_that_ones_matter(lower: int) -> None:
    """A command that ended beside it said that it left a process, and ended that one."""
    with command() as group, begun(0, lower, "stays") as (_, below):
        assert brand.of(below) == lower
        assert group.members() == [group.pid]


@pytest.mark.parametrize("lower", [0, 7])
def test_who_lowered_its_mark_below_another_command_is_ended_with_that_one(lower: int) -> None:
    with command() as group, command() as other, begun(other.brand, lower, "stays") as (above, low):
        assert group.members() == [group.pid]
        assert sorted(other.members()) == sorted([other.pid, above, low])


# Whoever reaps for a host is an ancestor of it: here a program which other tests have not.
REAPER = """
import os, sys
from dragoman.host.descendants import Descendants
from tests.tools.test_group import begun, command
assert Descendants().adopt()
if not (host := os.fork()):
    with command() as group, begun(0, int(sys.argv[1]), "leaves") as (_, below):
        found, expected = group.members(), [group.pid, below]
    os._exit(sorted(found) != sorted(expected))
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(host, 0)[1]))
"""


@pytest.mark.parametrize("lower", [0, 7])
def test_who_lowered_its_mark_and_ran_away_is_ours(lower: int) -> None:
    subprocess.run([sys.executable, "-c", REAPER, str(lower)], check=True, timeout=120)


@pytest.mark.parametrize("lower", [0, 7])
def test_who_lowered_its_mark_below_a_command_is_ours(lower: int) -> None:
    with command() as group, begun(group.brand, lower, "stays") as (above, below):
        assert sorted(group.members()) == sorted([group.pid, above, below])


def test_a_child_of_ours_that_lowered_its_mark_is_ours() -> None:
    with command() as group:
        process = subprocess.Popen(["sleep", "600"], preexec_fn=brand.burn(brand.LEAST))
        try:
            resource.prlimit(process.pid, resource.RLIMIT_RTTIME, (0, 0))
            assert sorted(group.members()) == sorted([group.pid, process.pid])
        finally:
            process.kill()
            process.wait()
