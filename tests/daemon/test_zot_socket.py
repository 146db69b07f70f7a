"""zot over the daemon's `any.sock`: sessions that are shared, and that stay."""

import json
import os
import socket
import subprocess
import sys

import pytest


@pytest.fixture
def address(tmp_path):
    """A daemon of our own; gives the path of its socket for any dialect."""
    env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    env |= {
        "DRAGOMAN_CONFIG_DIR": str(tmp_path / "c"),
        "DRAGOMAN_ANY_SOCKET": str(tmp_path / "any.sock"),
        "OLLAMA_HOST": "127.0.0.1:9",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "daemon", "--no-gateway"],
        env=env, stderr=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    try:
        for line in process.stderr:
            if line.strip() == b"ready":
                break
        else:
            raise AssertionError("the daemon did not become ready")
        yield str(tmp_path / "any.sock")
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


class Client:
    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(address)
        self.file = self.socket.makefile("rb")

    def send(self, **command):
        self.socket.sendall(json.dumps(command).encode() + b"\n")

    def receive(self):
        return json.loads(self.file.readline())

    def until(self, kind):
        frames = [self.receive()]
        while frames[-1]["type"] != kind:
            frames.append(self.receive())
        return frames

    def close(self):
        self.file.close()
        self.socket.close()


def test_two_connections_share_a_session_and_one_approves_for_the_other(address):
    one, two = Client(address), Client(address)
    one.send(id="1", type="open", session="new")
    session = one.receive()["data"]["session"]
    two.send(id="1", type="hello", session=session)
    assert two.receive()["data"]["session"] == session
    one.send(id="2", type="prompt", message="write made.txt with hello")
    asked = one.until("approval_request")[-1]
    assert two.until("approval_request")[-1] == asked
    two.send(id="2", type="approve", approval=asked["approval"], decision="allow")
    mine, theirs = one.until("done"), two.until("done")
    assert [f["type"] for f in mine if f["type"] == "response"] == []
    assert [f["command"] for f in theirs if f["type"] == "response"] == ["approve"]
    for frames in (mine, theirs):
        assert [f["is_error"] for f in frames if f["type"] == "tool_result"] == [False]
    one.close()
    two.close()
    # it is still there for a third
    three = Client(address)
    three.send(id="1", type="list_sessions")
    rows = three.receive()["data"]["sessions"]
    assert [row["id"] for row in rows] == [session]
    three.send(id="2", type="open", session=session)
    assert three.receive()["data"]["state"]["message_count"] == rows[0]["message_count"]
    three.socket.shutdown(socket.SHUT_WR)
    assert three.file.readline() == b""
    three.close()
