"""A daemon whose files are taken away under it: it says so and ends, and harms no successor."""

import contextlib
import os
import shutil
import signal
import sqlite3
import time

import pytest
from tests.daemon.running import Daemon, Line, hang, script

from dragoman.daemon.belongings import Belongings


def replaced(path):
    """Another file of the same name, as after a restore."""
    beside = path.with_name("beside")
    shutil.copy(path, beside)
    os.replace(beside, path)


def reached_anew(daemon):
    """A connection to a socket that is made anew; for an instant it is there and not heard yet."""
    limit = time.monotonic() + 60
    while True:
        try:
            return Line(daemon.socket)
        except (FileNotFoundError, ConnectionRefusedError):
            assert time.monotonic() < limit and daemon.process.poll() is None, daemon.log()
            time.sleep(0.02)


@pytest.mark.parametrize(
    "take",
    [
        lambda data: shutil.rmtree(data),
        lambda data: data.rename(data.with_name("moved")),
        lambda data: (data / "sessions.db").unlink(),
        lambda data: replaced(data / "sessions.db"),
        lambda data: (data / "sessions.db-wal").unlink(),
        lambda data: (data / "sessions.db-shm").unlink(),
        lambda data: (data / "sessions.db.lock").unlink(),
        lambda data: (data / "daemon.sock.lock").unlink(),
        lambda data: replaced(data / "daemon.sock.lock"),
        lambda data: (shutil.rmtree(data), data.write_text("a file where the folder was")),
    ],
    ids="folder moved store other-store log memory claim lock other-lock file".split(),
)
def test_it_ends_and_says_why(tmp_path, take):
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as line:
        line.ask("status")
        take(daemon.data)
        assert daemon.ended() == 1
        assert b"was removed or replaced while the daemon ran: it ends." in daemon.said
        assert b"Traceback" not in daemon.said
        with pytest.raises(EOFError):
            line.receive()


def test_what_was_kept_is_in_the_file_when_its_log_was_taken(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as line:
        line.ask("session/new", {"agentAlias": "default", "sessionId": "s"})
        (daemon.data / "sessions.db-wal").unlink()
        assert daemon.ended() == 1
    with contextlib.closing(sqlite3.connect(daemon.data / "sessions.db")) as store:
        assert store.execute("SELECT id FROM sessions").fetchall() == [("s",)]


def test_who_started_it_need_not_listen_any_more(tmp_path):
    """What cannot be said is in the log: a daemon did not end, and did not see the file change."""
    with Daemon(tmp_path).wait_ready() as daemon:
        daemon.process.stderr.close()
        (daemon.data / "daemon.sock.lock").unlink()
        assert daemon.process.wait(60) == 1
        assert "was removed or replaced" in daemon.log()


def test_it_ends_in_order_where_nothing_can_be_removed(tmp_path):
    """A file that stays is no reason to leave turns, clients and the store as they are."""
    config = script(tmp_path, [hang({"type": "say", "text": "part"})])
    with Daemon(tmp_path, config=config, gateway=True).wait_ready() as daemon:
        with Line(daemon.socket) as line:
            line.ask("session/new", {"agentAlias": "default", "sessionId": "s"})
            prompt = line.say("session/prompt", {"sessionId": "s", "prompt": "go"})
            line.until("agent_message_chunk")
            away = daemon.data.rename(tmp_path / "away")
            daemon.data.symlink_to(daemon.data)  # no name below it means anything
            daemon.signal(signal.SIGTERM)
            assert line.answer(prompt)["result"]["stopReason"] == "cancelled"
        assert daemon.ended() == 0, daemon.said
    assert "stopping" in (away / "daemon.log").read_text()


def test_turns_end_and_their_clients_are_told(tmp_path):
    config = script(tmp_path, [hang({"type": "say", "text": "part"})])
    with Daemon(tmp_path, config=config).wait_ready() as daemon, Line(daemon.socket) as line:
        line.ask("session/new", {"agentAlias": "default", "sessionId": "s"})
        prompt = line.say("session/prompt", {"sessionId": "s", "prompt": "go"})
        line.until("agent_message_chunk")
        shutil.rmtree(daemon.data)
        result = line.answer(prompt)["result"]
        assert result["stopReason"] == "cancelled" and result["content"] == "part"
        assert daemon.ended() == 1


def test_a_successor_keeps_what_is_its_own(tmp_path):
    with Daemon(tmp_path).wait_ready() as first:
        first.signal(signal.SIGSTOP)  # so that it cannot notice before the other one is there
        shutil.rmtree(first.data)
        with Daemon(tmp_path).wait_ready() as second:
            before = sorted(path.name for path in second.data.iterdir())
            first.signal(signal.SIGCONT)
            assert first.ended() == 1
            left = {path.name for path in second.data.iterdir()}
            assert left.issuperset(before)
            with Line(second.socket) as line:
                line.ask("status")
            assert second.stop() == 0


def test_without_a_file_for_sessions_the_locks_still_count(tmp_path):
    config = "[store]\npath = ':memory:'\n"
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        with Line(daemon.socket) as line:
            line.ask("status")
        shutil.rmtree(daemon.data)
        assert daemon.ended() == 1


def test_what_stood_in_the_way_of_the_store_may_be_moved_away(tmp_path):
    """Sessions are in memory then: whoever repairs the place must not lose them by it."""
    made = Daemon(tmp_path)
    (made.data / "sessions.db").mkdir(parents=True)
    with made.wait_ready() as daemon:
        (daemon.data / "sessions.db").rename(daemon.data / "aside")
        os.unlink(daemon.socket)  # made anew after two looks
        with reached_anew(daemon) as line:
            line.ask("status")
        assert daemon.stop() == 0


def test_a_socket_that_is_removed_is_made_anew(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as old:
        for _ in range(2):
            os.unlink(daemon.socket)
            with reached_anew(daemon) as line:
                assert os.stat(daemon.socket).st_mode & 0o777 == 0o600
                line.ask("status")
            old.ask("status")  # who was connected still is
        assert daemon.stop() == 0
        assert not os.path.exists(daemon.socket)
        assert daemon.log().count("the socket was removed; listening anew") == 2


def test_a_lock_elsewhere_may_be_tidied_away(tmp_path):
    """As a logout does with the user's folder of sockets: the sessions are there."""
    beside = tmp_path / "run"
    beside.mkdir(0o700)
    config = f'[listen]\nacp = "{beside}/acp.sock"\n'
    with Daemon(tmp_path, config=config).wait_ready() as daemon, Line(daemon.socket) as line:
        line.ask("status")
        shutil.rmtree(beside)
        limit = time.monotonic() + 60
        while "the lock was removed or replaced" not in daemon.log():
            assert time.monotonic() < limit and daemon.process.poll() is None, daemon.log()
            time.sleep(0.02)
        line.ask("status")
        assert daemon.stop() == 0


def test_what_cannot_be_looked_at_is_not_lost(tmp_path, monkeypatch):
    path = tmp_path / "store"
    path.write_text("")
    look, refuse = os.stat, False

    def stat(name):
        if refuse:
            raise PermissionError(13, "Permission denied", name)
        return look(name)

    monkeypatch.setattr("dragoman.daemon.belongings.os.stat", stat)
    own = Belongings(str(path), "")
    assert own.lost() == []
    refuse = True
    assert own.lost() == []
    unseen = Belongings(str(path))
    refuse = False
    assert unseen.lost() == []
    path.unlink()
    assert own.lost() == [str(path)]
