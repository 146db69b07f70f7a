"""What a host that died left running: ended by the next one, and by no other."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import kernel
from dragoman.tools import group, orphans

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
_HOST = """
import os, subprocess, sys
from dragoman.sandbox import brand
from dragoman.tools import orphans
mark = orphans.mark(sys.argv[1])
env = {**os.environ, orphans.MARK: mark}
run = "trap '' TERM; setsid env -i sleep 600 & echo $!; setsid sleep 600 & echo $!; wait"
burn = brand.burn(brand.new())
made = subprocess.Popen(["sh", "-c", run], env=env, preexec_fn=burn, stdout=subprocess.PIPE)
print(made.pid, *(int(made.stdout.readline()) for _ in range(2)), flush=True)
sys.stdin.read()
"""


class Dying:
    """A host with a command: a shell that takes no SIGTERM, and two that left it."""

    def __init__(self, place: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _HOST, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        pids = map(int, self.process.stdout.readline().split())
        self.command = {pid: group.started(pid) for pid in pids}

    def die(self) -> None:
        self.process.kill()
        self.process.wait()

    def left(self) -> list[int]:
        return [pid for pid, began in self.command.items() if group.lives(pid, began)]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Dying]:
    made = Dying(tmp_path)
    yield made
    made.die()
    for stream in (made.process.stdin, made.process.stdout):
        assert stream is not None
        stream.close()
    for pid in made.left():
        os.kill(pid, signal.SIGKILL)


async def test_what_a_dead_host_left_is_ended_whatever_it_did(host: Dying, tmp_path: Path) -> None:
    assert await orphans.end_orphans(str(tmp_path)) == 0  # its host lives
    assert len(host.left()) == 3
    host.die()
    (tmp_path / "other").mkdir()
    assert await orphans.end_orphans(str(tmp_path / "other")) == 0  # of another host's data
    assert len(host.left()) == 3
    assert await orphans.end_orphans(str(tmp_path)) == 3
    assert host.left() == []
    assert await orphans.end_orphans(str(tmp_path)) == 0


async def test_where_processes_cannot_be_held_they_are_ended_too(
    host: Dying, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "holds_processes", lambda: False)
    host.die()
    assert await orphans.end_orphans(str(tmp_path)) == 3
    assert host.left() == []


async def test_without_descriptors_the_end_of_processes_is_seen_by_looking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = await asyncio.create_subprocess_exec("sleep", "600")  # asyncio has one of its own

    def unknown(pid: int) -> int:
        raise OSError(errno.ENOSYS, "an old kernel")

    monkeypatch.setattr(kernel, "open_process", unknown)
    loop = asyncio.get_running_loop()
    loop.call_later(0.1, process.kill)
    began = loop.time()
    await group.gone([process.pid, os.getpid() + (1 << 22)], 50)  # and one that never was
    assert loop.time() - began < 40
    await process.wait()
    began = loop.time()
    await group.gone([os.getpid()], 0.1)
    assert loop.time() - began >= 0.1


async def test_a_number_that_means_another_process_now_is_no_owner(tmp_path: Path) -> None:
    words = orphans.mark(str(tmp_path)).split(".")
    words[2] = str(int(words[2]) - 1)  # our number, and another beginning
    env = {**os.environ, orphans.MARK: ".".join(words)}
    process = await asyncio.create_subprocess_exec("sleep", "600", env=env)
    assert await orphans.end_orphans(str(tmp_path)) == 1
    assert await process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("rest", ["", "x.y.z", "1", "..", "99999999999999999999.1.a"])
async def test_marks_that_are_none_end_nobody(rest: str, tmp_path: Path) -> None:
    ours = orphans.mark(str(tmp_path)).partition(".")[0]
    env = {**os.environ, orphans.MARK: f"{ours}.{rest}"}
    process = await asyncio.create_subprocess_exec("sleep", "600", env=env)
    try:
        found = await orphans.end_orphans(str(tmp_path))
        assert found == (1 if rest.startswith("9") else 0)
    finally:
        if process.returncode is None and not rest.startswith("9"):
            process.kill()
        await process.wait()
