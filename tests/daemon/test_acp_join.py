"""An editor's `dragoman acp` beside a running daemon: one session, seen from both."""

import json
import os
import subprocess
import sys

from tests.daemon.running import Daemon, Line, say, script


class Editor:
    """`dragoman acp` as a child, spoken to in lines."""

    def __init__(self, home, *words, env=None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "acp", "--config-dir", str(home), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.number = 0

    def call(self, method: str, **params):
        self.number += 1
        said = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(said).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number:
                return answer["result"]

    def leave(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, err.decode()


def test_the_editors_session_is_the_daemons(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        editor = Editor(tmp_path)
        editor.call("initialize", protocolVersion=1, clientCapabilities={})
        session = editor.call("session/new", cwd=str(tmp_path), mcpServers=[])["sessionId"]
        words = [{"type": "text", "text": "say hi"}]
        done = editor.call("session/prompt", sessionId=session, prompt=words)
        assert done["stopReason"] == "end_turn"
        with Line(daemon.socket) as client:
            assert session in client.ask("status")["sessionIds"]
        code, told = editor.leave()
        assert code == 0 and "joined the running daemon" in told


def test_alone_with_limits_or_with_settings_of_its_own_it_does_not_join(tmp_path):
    with Daemon(tmp_path).wait_ready():
        for words, env in (
            (("--alone",), {}),
            (("--max-sessions", "2"), {}),
            ((), {"DRAGOMAN_acp__max_sessions": "3"}),
        ):
            editor = Editor(tmp_path, *words, env=env)
            assert editor.call("initialize", protocolVersion=1)["protocolVersion"] == 1
            code, told = editor.leave()
            assert code == 0 and "joined" not in told


def test_a_socket_that_was_left_behind_is_passed_over(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        daemon.process.kill()
        daemon.process.wait(10)
        editor = Editor(tmp_path)
        assert editor.call("initialize", protocolVersion=1)["protocolVersion"] == 1
        assert editor.leave()[0] == 0


def test_the_editor_is_told_when_the_daemon_goes(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        editor = Editor(tmp_path)
        editor.call("initialize", protocolVersion=1)
        daemon.process.kill()
        daemon.process.wait(10)
        assert editor.process.wait(10) == 1
        code, told = editor.leave()
        assert code == 1 and "the daemon" in told


def test_what_is_asked_before_the_end_of_input_is_answered(tmp_path):
    with Daemon(tmp_path).wait_ready():
        editor = Editor(tmp_path)
        editor.call("initialize", protocolVersion=1)
        said = b'{"jsonrpc":"2.0","id":9,"method":"session/list","params":{}}\n'
        out, _ = editor.process.communicate(said, timeout=20)
        assert json.loads(out)["id"] == 9
        assert editor.process.returncode == 0


def test_a_turn_under_way_at_the_end_of_input_is_answered(tmp_path):
    config = script(tmp_path, [say("word " * 60, deltas=60, delay=0.04)])
    with Daemon(tmp_path, config=config).wait_ready():
        editor = Editor(tmp_path)
        editor.call("initialize", protocolVersion=1)
        session = editor.call("session/new", cwd=str(tmp_path), mcpServers=[])["sessionId"]
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        said = {"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": params}
        out, _ = editor.process.communicate(json.dumps(said).encode() + b"\n", timeout=30)
        answer = json.loads(out.splitlines()[-1])
        assert (answer["id"], answer["result"]["stopReason"]) == (9, "end_turn")
