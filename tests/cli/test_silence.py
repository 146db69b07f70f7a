"""A daemon that does not answer: stopped, mute, or only slow."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.living import Living

from dragoman.client import silence
from dragoman.client.plain import Plain
from dragoman.client.problems import ConnectionGone
from dragoman.client.wire import Wire

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
# A listener that takes a connection, does something, and then answers whatever is asked.
LISTENER = """
import json, socket, sys, time
sock = socket.socket(socket.AF_UNIX)
sock.bind(sys.argv[1])
sock.listen()
print("ready", flush=True)
client, _ = sock.accept()
{does}
for line in client.makefile("rb"):
    client.sendall(b'{{"id": %d, "result": {{}}}}\\n' % json.loads(line)["id"])
"""


@pytest.fixture
def living(tmp_path: Path) -> Iterator[Living]:
    one = Living(tmp_path)
    one.start()
    try:
        yield one
    finally:
        assert one.process is not None
        one.process.send_signal(signal.SIGCONT)
        one.stop()


@pytest.fixture
def listener(tmp_path: Path) -> Iterator["type[Listening]"]:
    Listening.folder = tmp_path
    yield Listening
    for process in Listening.processes:
        process.kill()
        process.communicate()
    Listening.processes.clear()


class Listening:
    """A process at a socket that is no daemon."""

    folder: Path
    processes: list["subprocess.Popen[str]"] = []

    def __init__(self, does: str) -> None:
        self.path = str(self.folder / "s")
        words = [sys.executable, "-c", LISTENER.format(does=does), self.path]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.processes.append(self.process)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"


def test_a_stopped_daemon_is_said_at_once(living: Living) -> None:
    assert living.process is not None
    os.kill(living.process.pid, signal.SIGSTOP)
    for verb in ("status", "sessions", "approvals", "models"):
        began = time.monotonic()
        done = living.run(verb)
        assert time.monotonic() - began < 20
        assert done.returncode == 1
        assert f"(process {living.process.pid}) is stopped" in done.stderr
        assert f"kill -CONT {living.process.pid}" in done.stderr


def test_the_doctor_says_that_a_daemon_is_stopped(living: Living) -> None:
    assert living.process is not None
    os.kill(living.process.pid, signal.SIGSTOP)
    done = living.run("doctor")
    assert done.returncode == 1
    (row,) = [line for line in done.stdout.splitlines() if line.split()[1:2] == ["daemon"]]
    assert row.startswith("ERROR") and "is stopped" in row


def test_what_changes_something_is_said_to_be_open(living: Living) -> None:
    assert living.process is not None
    os.kill(living.process.pid, signal.SIGSTOP)
    with Plain(living.socket) as host, pytest.raises(ConnectionGone, match="may still be done"):
        host.call("dragoman/rename", {})


async def test_the_asynchronous_client_does_not_wait_for_a_stopped_one(living: Living) -> None:
    assert living.process is not None
    os.kill(living.process.pid, signal.SIGSTOP)
    with pytest.raises(ConnectionGone, match="is stopped"):
        async with asyncio.timeout(30):
            await Wire(living.socket, "test").open()


def test_a_mute_listener_is_told_of_and_given_up_by_who_only_reads(
    listener: "type[Listening]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "MUTE_SECONDS", 1.0)
    monkeypatch.setattr(silence, "TOLD_SECONDS", 0.5)
    one, told = listener("time.sleep(600)"), []
    with Plain(one.path, tell=told.append) as host:
        with pytest.raises(ConnectionGone, match=f"Process {one.process.pid} listens at"):
            host.call("dragoman/status")
    assert told == [f"waiting for the daemon (process {one.process.pid})"]


def test_what_changes_something_is_waited_for(
    listener: "type[Listening]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "MUTE_SECONDS", 0.5)
    one = listener("time.sleep(2)")
    with Plain(one.path) as host:
        assert host.call("dragoman/rename") == {}


def test_one_that_works_is_not_given_up(
    listener: "type[Listening]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "MUTE_SECONDS", 0.5)
    busy = "end = time.monotonic() + 3\nwhile time.monotonic() < end: pass"
    with Plain(listener(busy).path) as host:
        assert host.call("dragoman/status") == {}


def test_one_that_has_greeted_may_take_its_time(
    listener: "type[Listening]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "MUTE_SECONDS", 0.5)
    greets = (
        "for number in (1, 2):\n"
        '    client.sendall(b\'{"id": %d, "result": {}}\\n\' % number)\n'
        "time.sleep(2)"
    )
    with Plain(listener(greets).path) as host:
        assert host.call("dragoman/status") == {}
