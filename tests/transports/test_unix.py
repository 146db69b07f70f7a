"""Unix sockets: modes, who may connect, what happens under load."""

import asyncio
import os
import socket
import stat
import subprocess
import sys

import pytest
from tests.transports.parrot import Cage

from dragoman.daemon.listening import Doorkeeper
from dragoman.transports import pump, unix
from dragoman.transports.directory import prepare


def mode(path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.fixture
async def served(tmp_path):
    """A cage of parrots at a socket."""
    cage = Cage()
    listener = await unix.listen(str(tmp_path / "run" / "s.sock"), cage)
    yield listener, cage
    for parrot in cage.parrots:
        parrot.link.abort()
    await listener.close()


async def test_modes_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        listener = await unix.listen(str(tmp_path / "a" / "b" / "s.sock"), Cage())
    finally:
        os.umask(before)
    assert mode(tmp_path / "a" / "b" / "s.sock") == 0o600
    assert mode(tmp_path / "a" / "b") == mode(tmp_path / "a") == 0o700
    await listener.close()


def test_the_socket_is_private_before_it_listens(tmp_path):
    before = os.umask(0)
    try:
        with unix.bind(str(tmp_path / "s.sock")):
            assert mode(tmp_path / "s.sock") == 0o600
        assert os.umask(0) == 0
    finally:
        os.umask(before)


def test_a_directory_that_exists_is_never_changed(tmp_path):
    kept = tmp_path / "shared"
    kept.mkdir(mode=0o755)
    prepare(str(kept))
    assert mode(kept) == 0o755
    kept.chmod(0o1777)
    prepare(str(kept))
    assert mode(kept) == 0o1777


def test_a_directory_that_others_may_write_to_is_refused(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    for bits in (0o777, 0o770, 0o702):
        open_to_all.chmod(bits)
        with pytest.raises(PermissionError, match="writable by others"):
            prepare(str(open_to_all))
        assert mode(open_to_all) == bits


@pytest.mark.root
def test_a_directory_of_another_user_is_refused(tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o700)
    os.chown(foreign, 65534, 65534)
    with pytest.raises(PermissionError, match="another user"):
        prepare(str(foreign))


def test_a_file_where_the_directory_should_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        prepare(str(tmp_path / "file" / "below"))


async def test_talk_and_peer(served):
    listener, cage = served
    reader, writer = await asyncio.open_unix_connection(listener.path)
    writer.write(b"hello\nworld\n")
    assert await reader.readexactly(14) == b">hello\n>world\n"
    peer = cage.parrots[0].link.peer
    assert (peer.pid, peer.uid, peer.transport) == (os.getpid(), os.geteuid(), "unix")
    assert peer.label == f"unix:pid={os.getpid()},uid={os.geteuid()}"
    writer.close()
    await asyncio.wait_for(cage.parrots[0].over.wait(), 60)


async def test_half_close_still_gets_the_answers(served):
    listener, cage = served
    reader, writer = await asyncio.open_unix_connection(listener.path)
    writer.write(b"a\nb")
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 60) == b">a\n>b\n"
    writer.close()


async def test_a_client_that_goes_without_a_word(served):
    listener, cage = served
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(listener.path)
    sock.sendall(b"big 5000000\n")
    parrot = await cage.first()
    sock.close()
    await asyncio.wait_for(parrot.over.wait(), 60)
    assert parrot.losses == 1


async def test_a_large_line_each_way(served):
    listener, _ = served
    reader, writer = await asyncio.open_unix_connection(listener.path, limit=1 << 22)
    line = b"y" * 1_000_000
    writer.write(line + b"\n")
    assert await asyncio.wait_for(reader.readline(), 60) == b">" + line + b"\n"
    writer.close()


async def test_many_connections_at_once(served):
    listener, cage = served
    socks = []
    for _ in range(300):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(listener.path)  # never blocks: they wait in the queue of the listener
        sock.send(b"hi\n")
        sock.setblocking(False)
        socks.append(sock)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(60):
        assert [await loop.sock_recv(sock, 10) for sock in socks] == [b">hi\n"] * 300
    for sock in socks:
        sock.close()


async def test_real_backpressure_stops_reading_and_recovers(tmp_path):
    cage = Cage()
    listener = await unix.listen(str(tmp_path / "s.sock"), cage, bound=1_000_000)
    reader, writer = await asyncio.open_unix_connection(listener.path, limit=1 << 24)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"big 900000\n" * 10)
    parrot = await cage.first()
    async with asyncio.timeout(60):
        while not parrot.link.paused:  # noqa: ASYNC110 - the kernel decides when
            await asyncio.sleep(0)
    reader._transport.resume_reading()  # type: ignore[attr-defined]
    got = 0
    async with asyncio.timeout(60):
        while got < 10 * 900_001:
            got += len(await reader.read(1 << 20))
    assert not parrot.link.paused
    writer.write(b"still there\n")
    assert await asyncio.wait_for(reader.readline(), 60) == b">still there\n"
    writer.close()
    await listener.close()


async def test_close_removes_only_our_own_path(tmp_path):
    path = str(tmp_path / "s.sock")
    listener = await unix.listen(path, Cage())
    await listener.close()
    assert not os.path.lexists(path)
    listener = await unix.listen(path, Cage())
    os.unlink(path)
    with unix.bind(path):
        await listener.close()
        assert os.path.lexists(path)


async def test_a_path_that_is_taken_is_an_error(served):
    listener, _ = served
    with pytest.raises(OSError):
        await unix.listen(listener.path, Cage())


INTRUDER = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
try:
    s.sendall(b"let me in\\n")
    print(repr(s.recv(100)))
except OSError as trouble:
    print(type(trouble).__name__)
"""


@pytest.mark.root
async def test_another_user_is_refused_and_noted(tmp_path):
    notes: list[tuple[str, int | None]] = []
    cage = Cage()
    # Reached by a path that the other user may walk, with the socket's own mode opened up: the
    # check of the peer must hold alone.
    path = f"/tmp/dragoman-test-{os.getpid()}-{id(cage)}.sock"
    keeper = Doorkeeper(lambda what, peer: notes.append((what, peer.uid)))
    listener = await unix.listen(path, cage, admit=keeper)
    try:
        os.chmod(path, 0o666)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", INTRUDER, path, stdout=subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(child.communicate(), 60)
    finally:
        await listener.close()
    assert out.strip() in (b"b''", b"ConnectionResetError", b"BrokenPipeError")
    assert notes == [("refused", 65534)] and cage.parrots == []


def test_doorkeeper(monkeypatch):
    from dragoman.wire.link import Peer

    monkeypatch.setattr("dragoman.daemon.listening.os.geteuid", lambda: 1000)
    notes = []
    keeper = Doorkeeper(lambda what, peer: notes.append(what))
    user, root, nobody = (Peer("", "unix", 1, uid) for uid in (1000, 0, 5))
    assert [keeper(p) for p in (user, root, nobody)] == [True, False, False]
    assert not keeper(Peer("unix:unknown", "unix"))
    assert notes == ["admitted", "refused", "refused", "refused"]


async def test_who_is_interrupted_while_it_begins_to_listen_leaves_no_socket(tmp_path, monkeypatch):
    path = tmp_path / "s.sock"
    begins = asyncio.Event()

    async def stuck(*_, **__):
        begins.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_unix_server", stuck, raising=False)
    listening = asyncio.ensure_future(unix.listen(str(path), Cage()))
    await begins.wait()
    assert path.exists()
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert not path.exists()


async def test_who_leaves_for_good_is_let_go_and_who_only_ends_its_side_is_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(pump, "_LOOK", 0.005)
    looks = asyncio.Queue()
    look = pump._has_left
    monkeypatch.setattr(pump, "_has_left", lambda outlet: looks.put_nowait(1) or look(outlet))
    cage = Cage(close_at_end=False)  # its answers take their time
    listener = await unix.listen(str(tmp_path / "s.sock"), cage)
    reader, writer = await asyncio.open_unix_connection(listener.path)
    writer.write(b"one\n")
    writer.write_eof()
    assert await reader.readline() == b">one\n"
    async with asyncio.timeout(60):
        for _ in range(5):
            await looks.get()
    parrot = cage.parrots[0]
    assert not parrot.over.is_set()
    parrot.link.send(b"late")
    assert await reader.readline() == b"late\n"
    writer.close()
    async with asyncio.timeout(60):
        await parrot.over.wait()
    assert parrot.losses == 1

    cage.news.clear()
    _, writer = await asyncio.open_unix_connection(listener.path)
    writer.write(b"two\n")
    writer.close()
    async with asyncio.timeout(60):
        await cage.news.wait()
        await cage.parrots[1].over.wait()
    assert cage.parrots[1].heard == [[b"two"]] and cage.parrots[1].losses == 1
    await listener.close()
