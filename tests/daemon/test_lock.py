"""One daemon per socket; stale sockets go, live ones are respected."""

import os
import socket
import stat
import subprocess
import sys

import pytest

from dragoman.engine.faults import BadInput, InUse, Refused
from dragoman.host import lock

HOLDER = """
import sys
from dragoman.host import lock
held = lock.hold(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_the_lock_file(tmp_path):
    path = str(tmp_path / "new" / "s.sock")
    held = lock.hold(path)
    found = os.lstat(path + ".lock")
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(os.lstat(tmp_path / "new").st_mode) == 0o700
    assert (tmp_path / "new" / "s.sock.lock").read_text() == f"{os.getpid()}\n"
    assert lock.owner(path) == os.getpid()
    held.release()
    assert lock.owner(path) is None
    assert not os.path.exists(path + ".lock")
    lock.hold(path).release()


def test_a_second_one_is_told_who_is_first(tmp_path):
    path = str(tmp_path / "s.sock")
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(InUse, match=str(child.pid)) as caught:
            lock.hold(path)
        assert caught.value.data["owner"] == child.pid == lock.owner(path)
    finally:
        child.kill()
        child.communicate(timeout=60)
    lock.hold(path).release()  # the kernel gave the lock back


def test_a_live_socket_without_lock_is_respected(tmp_path):
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        with pytest.raises(InUse, match=str(os.getpid())):
            lock.hold(path)
        assert os.path.exists(path)
    assert lock.owner(path) is None


def test_a_live_socket_whose_queue_is_full_is_respected(tmp_path):
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(0)
        waiting = []
        for _ in range(5):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            waiting.append(client)
            try:
                client.connect(path)
            except BlockingIOError:
                break
        else:
            pytest.fail("the queue never filled")
        with pytest.raises(InUse):
            lock.hold(path)
        for client in waiting:
            client.close()


def test_a_stale_socket_is_cleared(tmp_path):
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    held = lock.hold(path)
    assert not os.path.lexists(path)
    held.release()


def test_something_that_is_no_socket_stays(tmp_path):
    path = tmp_path / "s.sock"
    path.write_text("precious")
    with pytest.raises(BadInput, match="not a socket"):
        lock.hold(str(path))
    assert path.read_text() == "precious"
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="not a socket"):
        lock.hold(str(path))


def test_a_lock_file_that_is_not_ours_to_trust(tmp_path):
    path = str(tmp_path / "s.sock")
    target = tmp_path / "victim"
    target.write_text("precious")
    os.symlink(target, path + ".lock")
    with pytest.raises(Refused, match="symbolic link"):
        lock.hold(path)
    assert target.read_text() == "precious"
    os.unlink(path + ".lock")
    os.mkfifo(path + ".lock", 0o600)
    with pytest.raises(Refused, match="regular file"):
        lock.hold(path)
    os.unlink(path + ".lock")
    open(path + ".lock", "w").close()
    os.chmod(path + ".lock", 0o644)
    with pytest.raises(Refused, match="open to others"):
        lock.hold(path)


def test_an_unsafe_directory_is_refused_with_a_way_out(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(Refused, match="DRAGOMAN_DATA_DIR"):
        lock.hold(str(tmp_path / "s.sock"))


def test_a_failed_hold_leaves_no_lock(tmp_path):
    path = tmp_path / "s.sock"
    path.write_text("")
    with pytest.raises(BadInput):
        lock.hold(str(path))
    assert os.listdir(tmp_path) == ["s.sock"]
    path.unlink()
    lock.hold(str(path)).release()
