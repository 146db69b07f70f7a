"""An editor's `dragoman acp` beside a running daemon: one session, seen from both."""

import json
import os
import signal
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

    def begin(self, method: str, **params) -> int:
        self.number += 1
        said = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(said).encode() + b"\n")
        self.process.stdin.flush()
        return self.number

    def until(self, fits):
        while True:
            message = json.loads(self.process.stdout.readline())
            if fits(message):
                return message

    def answer(self, id: int):
        return self.until(lambda m: m.get("id") == id and "method" not in m)

    def call(self, method: str, **params):
        return self.answer(self.begin(method, **params))["result"]

    def until_said(self, text: str) -> None:
        """Wait for words on standard error."""
        while text not in (line := self.process.stderr.readline().decode()):
            assert line, f"it ended without saying: {text}"

    def leave(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=60)
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
        daemon.process.wait(60)
        editor = Editor(tmp_path)
        assert editor.call("initialize", protocolVersion=1)["protocolVersion"] == 1
        assert editor.leave()[0] == 0


def greeted(tmp_path) -> tuple[Editor, str]:
    editor = Editor(tmp_path)
    editor.call("initialize", protocolVersion=1, clientCapabilities={})
    return editor, editor.call("session/new", cwd=str(tmp_path), mcpServers=[])["sessionId"]


def prompted(editor: Editor, session: str, text: str) -> str:
    words = [{"type": "text", "text": text}]
    return editor.call("session/prompt", sessionId=session, prompt=words)["stopReason"]


def users(client: Line, session: str) -> list[str]:
    told = client.ask("dragoman/history", {"sessionId": session})["events"]
    events = [one["event"] for one in told if one["event"]["type"] == "turn_began"]
    return [event["content"][0]["text"] for event in events]


def test_the_editor_goes_on_when_the_daemon_dies(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        editor, session = greeted(tmp_path)
        assert prompted(editor, session, "say one") == "end_turn"
        daemon.process.kill()
        daemon.process.wait(60)
    # nobody comes: the process goes on by itself, with the same session
    assert prompted(editor, session, "say two") == "end_turn"
    # a daemon comes: it gets the session back, and everybody sees it
    with Daemon(tmp_path).wait_ready() as daemon:
        editor.until_said("handing the sessions over")
        editor.until_said("connected with the daemon")
        assert prompted(editor, session, "say three") == "end_turn"
        with Line(daemon.socket) as client:
            assert session in client.ask("status")["sessionIds"]
            assert users(client, session) == ["say one", "say two", "say three"]
        assert editor.leave()[0] == 0


def test_a_daemon_that_comes_back_is_found_again(tmp_path):
    with Daemon(tmp_path).wait_ready() as daemon:
        editor, session = greeted(tmp_path)
        daemon.process.kill()
        daemon.process.wait(60)
    with Daemon(tmp_path).wait_ready() as daemon:
        assert prompted(editor, session, "say again") == "end_turn"
        with Line(daemon.socket) as client:
            assert users(client, session) == ["say again"]
        assert editor.leave()[0] == 0


def test_an_editor_that_was_first_hands_its_open_question_over(tmp_path):
    editor, session = greeted(tmp_path)
    words = [{"type": "text", "text": 'write "red" to colour.txt'}]
    asked = editor.begin("session/prompt", sessionId=session, prompt=words)
    editor.until(lambda m: m.get("method") == "session/request_permission")
    with Daemon(tmp_path).wait_ready() as daemon:
        editor.until_said("connected with the daemon")
        # anybody can answer it now, and the editor's own prompt is answered once
        with Line(daemon.socket) as client:
            (row,) = client.ask("dragoman/approvals")["approvals"]
            assert row["ask"]["session"] == session
            client.ask(
                "dragoman/answer",
                {"id": row["ask"]["id"], "verdict": "allow", "digest": row["ask"]["digest"]},
            )
            assert editor.answer(asked)["result"]["stopReason"] == "end_turn"
            assert users(client, session) == ['write "red" to colour.txt']
        assert (tmp_path / "colour.txt").read_text().strip() == "red"
        assert editor.leave()[0] == 0


def test_a_daemon_that_is_back_too_late_has_the_session_all_the_same(tmp_path):
    """The editor gives it up just as it comes: it asks its own host, and the daemon has it all."""
    with Daemon(tmp_path).wait_ready() as daemon:
        editor, session = greeted(tmp_path)
        words = [{"type": "text", "text": 'write "red" to colour.txt'}]
        asked = editor.begin("session/prompt", sessionId=session, prompt=words)
        editor.until(lambda m: m.get("method") == "session/request_permission")
        editor.process.send_signal(signal.SIGSTOP)
        daemon.process.kill()
        daemon.process.wait(60)
    with Daemon(tmp_path).wait_ready() as daemon:
        place = daemon.data / "acp.sock"
        place.rename(daemon.data / "hidden.sock")
        place.write_text("")  # the daemon would make anew what is not there
        editor.process.send_signal(signal.SIGCONT)
        editor.until_said("going on with a host of its own")
        (daemon.data / "hidden.sock").replace(place)
        again = editor.until(lambda m: m.get("id") == asked or "permission" in str(m.get("method")))
        assert again.get("method") == "session/request_permission", again
        with Line(daemon.socket) as client:
            (row,) = client.ask("dragoman/approvals")["approvals"]
            client.ask(
                "dragoman/answer",
                {"id": row["ask"]["id"], "verdict": "allow", "digest": row["ask"]["digest"]},
            )
            assert editor.answer(asked)["result"]["stopReason"] == "end_turn"
            assert users(client, session) == ['write "red" to colour.txt']
        assert editor.leave()[0] == 0


def test_a_line_over_the_limit_is_refused_and_the_rest_goes_on(tmp_path):
    with Daemon(tmp_path).wait_ready():
        editor, session = greeted(tmp_path)
        editor.process.stdin.write(b'{"jsonrpc":"2.0","id":77,"x":"' + b"y" * 17_000_000 + b'"}\n')
        refusal = editor.until(lambda m: "error" in m)
        assert refusal["id"] == 77 and "longer than" in refusal["error"]["message"]
        assert prompted(editor, session, "say fine") == "end_turn"
        assert editor.leave()[0] == 0


def test_what_is_asked_before_the_end_of_input_is_answered(tmp_path):
    with Daemon(tmp_path).wait_ready():
        editor = Editor(tmp_path)
        editor.call("initialize", protocolVersion=1)
        said = b'{"jsonrpc":"2.0","id":9,"method":"session/list","params":{}}\n'
        out, _ = editor.process.communicate(said, timeout=60)
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
        out, _ = editor.process.communicate(json.dumps(said).encode() + b"\n", timeout=60)
        answer = json.loads(out.splitlines()[-1])
        assert (answer["id"], answer["result"]["stopReason"]) == (9, "end_turn")


def test_questions_are_answered_elsewhere_while_another_session_of_the_editor_runs(tmp_path):
    editor, busy = greeted(tmp_path)
    words = [{"type": "text", "text": "say busy then count slowly to 2000"}]
    editor.begin("session/prompt", sessionId=busy, prompt=words)
    editor.until(lambda m: "busy" in str(m.get("params")))
    session = editor.call("session/new", cwd=str(tmp_path), mcpServers=[])["sessionId"]

    def asks(colour: str) -> int:
        words = [{"type": "text", "text": f'write "{colour}" to {colour}.txt'}]
        asked = editor.begin("session/prompt", sessionId=session, prompt=words)
        editor.until(lambda m: m.get("method") == "session/request_permission")
        return asked

    first = asks("red")
    with Daemon(tmp_path).wait_ready() as daemon, Line(daemon.socket) as client:
        with Line(daemon.data / "humanlayer.sock", init=None) as human:
            (row,) = human.ask("fetchApprovals", {"session_id": session})["approvals"]
            about = {"call_id": row["id"], "type": "function_call", "decision": "approve"}
            human.ask("sendDecision", about)
        assert editor.answer(first)["result"]["stopReason"] == "end_turn"
        # who watches all sessions at the daemon is told of the next question, and answers it
        client.ask("dragoman/watch", {})
        second = asks("blue")
        while (event := client.receive()["params"]["event"])["type"] != "asked":
            continue
        ask = event["ask"]
        client.ask("dragoman/answer", {"id": ask["id"], "verdict": "deny", "comment": "not blue"})
        assert editor.answer(second)["result"]["stopReason"] == "end_turn"
        told = client.ask("dragoman/history", {"sessionId": session})["events"]
    settled = [one["event"] for one in told if one["event"]["type"] == "settled"]
    assert [one["by"]["dialect"] for one in settled] == ["humanlayer", "zeroclaw"]
    assert (tmp_path / "red.txt").exists() and not (tmp_path / "blue.txt").exists()
    editor.process.kill()
    editor.process.communicate()
