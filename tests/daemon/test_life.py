"""The life of a real daemon: starting, refusing, reloading, leaving."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest
from tests.daemon.running import SNAKE, Daemon, Line, call, datagrams, hang, say, script
from tests.timed import judging, promised

SOCKETS = ("daemon", "humanlayer", "kernel", "acp", "any")


def test_modes_and_what_is_left(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        assert stat.S_IMODE(os.stat(daemon.data).st_mode) == 0o700
        for name in SOCKETS:
            path = daemon.data / f"{name}.sock"
            found = os.lstat(path)
            assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
        with Line(daemon.socket) as line:
            status = line.ask("status")
            assert status["localIpcEndpoint"] == daemon.socket
            assert line.init["serverPid"] == daemon.process.pid
        assert daemon.stop() == 0
        left = {path.name for path in daemon.data.iterdir() if path.suffix == ".sock"}
        assert not left


def test_peers_are_noted(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket):
        mine = f"pid={os.getpid()} uid={os.geteuid()}"
        daemon.wait_said(f'audit admitted peer="unix:pid={os.getpid()},uid={os.geteuid()}" {mine}')


_STRANGER = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
sock = socket.socket(socket.AF_UNIX)
sock.settimeout(60)
sock.connect(sys.argv[1])
try:
    sock.sendall(b'{"jsonrpc":"2.0","method":"initialize","params":{},"id":1}\\n')
    print(sock.recv(100))
except (BrokenPipeError, ConnectionResetError):
    print(b"")
"""


def test_other_users_are_refused(tmp_path):
    if os.geteuid() != 0:
        # Only root can become somebody else; tests of the doorkeeper itself need nobody.
        from dragoman.daemon.listening import Doorkeeper
        from dragoman.wire.link import Peer

        notes = []
        keeper = Doorkeeper(lambda what, peer: notes.append(what))
        assert not keeper(Peer("unix:pid=1,uid=12345", "unix", 1, 12345)) and notes == ["refused"]
        return
    place = f"/tmp/dragoman-test-{os.getpid()}"
    os.mkdir(place, 0o700)
    path = f"{place}/open.sock"
    try:
        with Daemon(tmp_path, env={"DRAGOMAN_SOCKET": path}).wait_ready() as daemon:
            os.chmod(place, 0o755)  # let the stranger reach the socket, to see that it is no use
            os.chmod(path, 0o666)
            said = subprocess.run(
                [sys.executable, "-c", _STRANGER, path], capture_output=True, timeout=60
            )
            assert said.stdout == b"b''\n", said
            daemon.wait_said("audit refused")
            with Line(path) as line:
                line.ask("status")
            daemon.stop()
    finally:
        for name in os.listdir(place):
            os.unlink(f"{place}/{name}")
        os.rmdir(place)


def test_a_live_one_is_respected_and_named(tmp_path):
    with Daemon(tmp_path).wait_ready() as first:
        second = Daemon(tmp_path)
        with second:
            assert second.ended() == 1
            assert f"in use by process {first.process.pid}".encode() in second.said
            assert b"Traceback" not in second.said
        with Line(first.socket) as line:
            line.ask("status")


def test_a_stale_socket_is_replaced(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        daemon.process.kill()
        daemon.process.wait()
        assert os.path.exists(daemon.socket)
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as line:
        line.ask("status")


def test_only_our_own_socket_is_removed(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        os.unlink(daemon.socket)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(daemon.socket)
            assert daemon.stop() == 0
            assert os.path.exists(daemon.socket)


def test_sigterm_ends_the_streams_of_apps_before_it_closes_them(tmp_path):
    manifest = {"id": "@t/t", "type": "app", "protocol": {"version": "1.0"}}
    asked = [
        ("1", "app.register", {"manifest": manifest}),
        ("2", "config.watch", {}),
        ("3", "config.watch", {"paths": ["acp"]}),
    ]
    with Daemon(tmp_path).wait_ready() as daemon:
        with Line(daemon.data / "kernel.sock", init=None) as line:
            for id, method, params in asked:
                line.send({"id": id, "type": "request", "method": method, "params": params})
                assert line.receive()["success"]
            daemon.signal(signal.SIGTERM)
            for id in ("2", "3"):
                said = line.receive()
                assert (said["type"], said["requestId"]) == ("stream", id)
                assert said["chunk"] is None and said["done"] is True
            with pytest.raises(EOFError):
                line.receive()
        assert daemon.ended() == 0


@promised(5)
def test_sigterm_ends_turns_and_tells_their_clients(tmp_path, within):
    config = script(tmp_path, [hang({"type": "say", "text": "part"})])
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        line = Line(daemon.socket)
        line.ask("session/new", {"agentAlias": "default", "sessionId": "s"})
        prompt = line.say("session/prompt", {"sessionId": "s", "prompt": "go"})
        line.until("agent_message_chunk")
        began = time.monotonic()
        daemon.signal(signal.SIGTERM)
        result = line.answer(prompt)["result"]
        assert result["stopReason"] == "cancelled" and result["content"] == "part"
        with pytest.raises(EOFError):
            line.receive()
        line.close()
        assert daemon.ended() == 0
        assert time.monotonic() - began < within
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as line:
        messages = line.ask("session/messages", {"sessionId": "s"})["messages"]
        assert [one["content"] for one in messages] == ["go", "part"]
        assert line.ask("session/state", {"sessionId": "s"})["state"] == "interrupted"
        assert daemon.stop() == 0


def test_the_configuration_is_read_again(tmp_path):
    with Daemon(tmp_path, config='[zeroclaw]\nserver_version = "1"\n').wait_ready() as daemon:
        with Line(daemon.socket) as line:
            assert line.init["serverVersion"] == "1"
            daemon.config.write_text('[zeroclaw]\nserver_version = "2"\n')
            daemon.signal(signal.SIGHUP)
            daemon.wait_said("reloaded")
            assert line.ask("status")["serverVersion"] == "2"
            daemon.config.write_text("[zeroclaw\n")
            daemon.signal(signal.SIGHUP)
            daemon.wait_said("reload refused")
            assert line.ask("status")["serverVersion"] == "2"
            assert line.ask("config/validate")["valid"] is False
            # An edit is noticed without a signal.
            daemon.config.write_text(
                '[zeroclaw]\nserver_version = "3"\n[limits]\nmax_clients = 1\n'
            )
            daemon.wait_said("reloaded changed=2", within=60)
            assert line.ask("status")["serverVersion"] == "3"
            with Line(daemon.socket, init=None) as other:
                assert other.receive()["error"]["code"] == -32001
                with pytest.raises(EOFError):
                    other.receive()


def test_levels_of_the_log_hold_as_soon_as_they_are_set(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as line:
        assert line.ask("config/set", {"prop": "log.level", "value": "error"})["set"]
        before = daemon.log()
        with Line(daemon.socket):
            assert daemon.log() == before  # who came in is told at the level info
        elsewhere = tmp_path / "other.log"
        assert line.ask("config/set", {"prop": "log.file", "value": str(elsewhere)})["set"]
        assert line.ask("config/set", {"prop": "log.levels.audit", "value": "info"})["set"]
        with Line(daemon.socket):
            assert "audit admitted" in elsewhere.read_text()
        assert daemon.log() == before


def test_the_configuration_is_shown_and_changed(tmp_path):
    config = '[providers.anthropic]\napi_key = "sk-secret-secret-secret"\n'
    with Daemon(tmp_path, config=config).wait_ready() as daemon, Line(daemon.socket) as line:
        whole = line.ask("config/get", {})
        assert whole["providers"]["anthropic"]["api_key"] == "***"
        assert line.ask("config/set", {"prop": "acp.max_sessions", "value": 3})["set"]
        got = line.ask("config/get", {"prop": "acp.max_sessions"})
        assert got == {"prop": "acp.max_sessions", "value": 3}
        entries = line.ask("config/list", {"prefix": "acp"})["entries"]
        known = {one["path"]: one for one in entries}
        assert known["acp.max_sessions"]["value"] == 3 and known["acp.max_sessions"]["populated"]
        assert known["acp.error_codes"]["enumVariants"] == ["zeroclaw", "acp"]
        assert line.ask("config/map-keys", {"path": "providers"})["keys"] == ["anthropic"]
        assert any(one["key"] == "acp" for one in line.ask("config/sections")["sections"])
        keys = line.ask("dragoman/config", {"op": "explain", "path": "acp.max_sessions"})["keys"]
        assert keys[0]["value"] == 3 and keys[0]["source"].startswith("file")
        assert line.ask("dragoman/config", {"op": "unset", "path": "acp.max_sessions"}) == {
            "path": "acp.max_sessions",
            "value": 10,
        }
        bad = line.answer(line.say("config/set", {"prop": "acp.max_sessions", "value": -1}))
        assert bad["error"]["code"] == -32602
        assert "sk-secret" not in daemon.log()
        rows = line.ask("doctor/run")
        assert rows["results"] and rows["summary"]["errors"] == 0, rows


@judging
def test_an_ephemeral_one_leaves_after_its_last_client(tmp_path, judged):
    with Daemon(tmp_path, "--ephemeral").wait_ready() as daemon:
        with pytest.raises(subprocess.TimeoutExpired):
            daemon.process.wait(1.5)  # nobody has come yet
        first = Line(daemon.socket)
        if judged:
            first.close()  # and back within a second
        with Line(daemon.socket):
            first.close()
            with pytest.raises(subprocess.TimeoutExpired):
                daemon.process.wait(1.5)
        left = time.monotonic()
        assert daemon.ended() == 0
        assert 0.9 < time.monotonic() - left < (3.5 if judged else 60)


def test_an_ephemeral_one_finishes_its_work_first(tmp_path):
    slowly = {"parts": [{"type": "say", "text": "abcdefgh", "deltas": 8, "delay": 0.25}]}
    config = script(tmp_path, [slowly])
    with Daemon(tmp_path, "--ephemeral", config=config).wait_ready() as daemon:
        line = Line(daemon.socket)
        line.ask("session/new", {"agentAlias": "default", "sessionId": "s"})
        line.say("session/prompt", {"sessionId": "s", "prompt": "go"})
        line.until("agent_message_chunk")
        line.close()
        assert daemon.ended() == 0
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as line:
        messages = line.ask("session/messages", {"sessionId": "s"})["messages"]
        assert messages[-1]["content"] == "abcdefgh"


def test_systemd_is_told(tmp_path):
    with datagrams(tmp_path) as (path, receive):
        with Daemon(tmp_path, env={"NOTIFY_SOCKET": path}).wait_ready() as daemon:
            assert receive() == "READY=1"
            daemon.signal(signal.SIGHUP)
            assert receive().startswith("RELOADING=1\nMONOTONIC_USEC=")
            assert receive() == "READY=1"
            daemon.signal(signal.SIGTERM)
            assert receive() == "STOPPING=1"
            assert daemon.ended() == 0


def test_native_places(tmp_path):
    env = {"HOME": str(tmp_path / "h"), "XDG_RUNTIME_DIR": str(tmp_path / "r")}
    with Daemon(tmp_path, "--native", env=env).wait_ready() as daemon:
        path = tmp_path / "h" / ".zeroclaw" / "data" / "daemon.sock"
        with Line(path) as line:
            assert line.ask("status")["localIpcEndpoint"] == daemon.socket
        assert (tmp_path / "h" / ".humanlayer" / "daemon.sock").is_socket()
        assert (tmp_path / "r" / "openclawos" / "kernel.sock").is_socket()
        assert stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700
        assert daemon.stop() == 0
        assert not path.exists()


def test_killed_and_started_again(tmp_path):
    turns = [call("bash", command="echo hi"), say("it ran")]
    config = script(tmp_path, turns, resume=True)
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        line = Line(daemon.socket)
        line.ask("session/new", {"agentAlias": "default", "sessionId": "s", "cwd": str(tmp_path)})
        line.say("session/prompt", {"sessionId": "s", "prompt": "go"})
        asked = line.until("approval_request")
        assert asked["toolName"] == "bash" and asked["argumentsSummary"] == "command: echo hi"
        daemon.process.kill()
        line.close()
    with Daemon(tmp_path).wait_ready() as daemon:
        with Line(daemon.socket, init=SNAKE) as line:
            joined = line.ask("session/new", {"agent_alias": "default", "session_id": "s"})
            assert joined["message_count"] == 1
            again = line.until("approval_request")
            assert again["request_id"] == asked["requestId"]
            line.say(
                "session/approve",
                {"session_id": "s", "request_id": again["request_id"], "decision": "allow_once"},
            )
            assert "\nhi\n" in line.until("tool_result")["raw_output"]
            assert line.until("turn_complete")["content"] == "it ran"
        assert daemon.stop() == 0


def test_the_tap_shows_other_connections_without_secrets(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as tap:
        with Line(daemon.socket) as early:
            assert tap.ask("dragoman/tap", {}) == {"on": True}
            early.ask("session/new", {"agentAlias": "default", "sessionId": "s"})
            env = {"TOKEN": "abc", "PLAIN": "hello-there"}
            with Line(daemon.data / "any.sock", init={"protocol_version": 1, "env": env}) as late:
                late.ask("status")
            rows = []
            while len(rows) < 6:
                message = tap.receive()
                assert message["method"] == "dragoman/wire"
                rows.append(message["params"])
            seen = {(row["connection"], row["dialect"], row["direction"]) for row in rows}
            assert {row[1:] for row in seen} == {("zeroclaw", "in"), ("zeroclaw", "out")}
            assert len(seen) == 4  # two connections, each told apart
            text = str(rows)
            assert "abc" not in text and "hello-there" not in text and "session/new" in text
            assert tap.ask("dragoman/tap", {"on": False}) == {"on": False}
            early.ask("status")
            assert tap.ask("status") and not tap.seen
