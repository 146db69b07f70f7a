"""The package in a real daemon and as a program: found by its entry point and by nothing else."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.daemon.running import Daemon

CONFIG = '[agents.default]\nmodel = "demo/demo"\n'


def environment(target: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")])}


def dragoman(target: Path, folder: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "dragoman", *words, "--config-dir", str(folder), "--json"]
    env = {**os.environ, **environment(target)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def end(daemon: Daemon) -> None:
    assert daemon.stop() == 0
    daemon.process.stderr.close()


class Line:
    """A connection to a socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("rb")

    def send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def until(self, key: str, value: Any) -> dict[str, Any]:
        for line in self._file:
            message: dict[str, Any] = json.loads(line)
            if message.get(key) == value:
                return message
        raise AssertionError(f"the connection ended before {key} was {value}")

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def test_a_daemon_speaks_it(target: Path, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=CONFIG, env=environment(target)).wait_ready()
    try:
        row = next(
            one for one in dragoman(target, tmp_path, "dialects")["dialects"] if one["name"] == "pi"
        )
        assert row["package"] == "dragoman_pi" and row["transports"] == ["unix", "any", "stdio"]
        assert row["sockets"] == [str(daemon.data / "pi.sock")]
        assert dragoman(target, tmp_path, "status")["endpoints"]["pi"] == row["sockets"][0]
        own, any_one = Line(daemon.data / "pi.sock"), Line(daemon.data / "any.sock")
        tap = Line(daemon.data / "daemon.sock")
        hello = {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": 1},
        }
        tap.send(hello)
        tap.until("id", 0)
        tap.send({"jsonrpc": "2.0", "id": 1, "method": "dragoman/tap", "params": {}})
        tap.until("id", 1)
        own.send({"type": "prompt", "id": "a", "message": "what is dragoman"})
        assert own.until("id", "a")["data"] == {"disposition": "started"}
        assert own.until("type", "agent_settled")["aborted"] is False
        any_one.send({"type": "get_state", "id": "req_1"})
        assert any_one.until("id", "req_1")["data"]["sessionId"]
        seen = [tap.until("method", "dragoman/wire")["params"]["dialect"] for _ in range(4)]
        assert set(seen) == {"pi"}
        state = dragoman(target, tmp_path, "status")
        assert state["clients"]["pi"] == 2
        for line in (own, any_one, tap):
            line.close()
    finally:
        end(daemon)


def test_a_session_goes_on_on_another_connection(target: Path, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=CONFIG, env=environment(target)).wait_ready()
    try:
        first = Line(daemon.data / "pi.sock")
        first.send({"type": "prompt", "id": "a", "message": "what is dragoman"})
        first.until("type", "agent_settled")
        first.send({"type": "get_state", "id": "b"})
        state = first.until("id", "b")["data"]
        first.close()
        second = Line(daemon.data / "pi.sock")
        second.send({"type": "switch_session", "id": "c", "sessionPath": state["sessionFile"]})
        assert second.until("id", "c")["data"] == {"cancelled": False}
        second.send({"type": "get_state", "id": "d"})
        found = second.until("id", "d")["data"]
        assert found["sessionId"] == state["sessionId"] and found["messageCount"] == 2
        second.close()
    finally:
        end(daemon)


def test_a_full_house_refuses_in_its_words(target: Path, tmp_path: Path) -> None:
    config = f"{CONFIG}[limits]\nmax_clients = 1\n"
    daemon = Daemon(tmp_path, config=config, env=environment(target)).wait_ready()
    try:
        one = Line(daemon.data / "pi.sock")
        one.send({"type": "get_state", "id": 1})
        one.until("id", 1)
        two = Line(daemon.data / "pi.sock")
        assert two.until("type", "response")["success"] is False
        one.close()
        two.close()
    finally:
        end(daemon)


def test_the_program(target: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "dragoman_pi.program", "--mode", "rpc", "--no-session"]
    words += ["--no-themes", "--provider", "demo", "--model", "demo", "--config-dir", str(tmp_path)]
    env = {**os.environ, **environment(target)}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
    ) as program:
        assert program.stdin is not None and program.stdout is not None
        program.stdin.write('{"type":"prompt","id":1,"message":"what is dragoman"}\n')
        program.stdin.flush()
        kinds = []
        for line in program.stdout:
            kinds.append(json.loads(line)["type"])
            if kinds[-1] == "agent_settled":
                break
        program.stdin.close()
        assert program.stdout.read() == "" and program.wait(60) == 0
    assert kinds[0] == "response" and kinds[1] == "agent_start"
