"""The example apps and others as real processes, kept by a real daemon."""

import json
import os
import select
import signal
import socket
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.daemon.running import Daemon, Line, call, say, script

EXAMPLES = Path(__file__).parents[2] / "examples" / "apps"
SRC = Path(__file__).parents[2] / "src"

GUARD = """
from dragoman.apps import App, Block

app = App("@test/guard")

@app.intercept("tool_executing")
async def guard(data, context):
    if "forbidden" in data["params"].get("command", ""):
        return Block("this host keeps its forbidden things")

@app.intercept("message_sending")
async def polish(data, context):
    return {"content": data["content"].replace("darn", "d***")}

@app.route("/hello/*", public=True)
async def hello(request):
    return {"status": 202, "body": f"{request.method} {request.path} {request.body}"}

app.run()
"""


def app_config(name: str, file: Path, *args: str) -> str:
    words = ", ".join(json.dumps(word) for word in (str(file), *args))
    return (
        f'[openclawos.apps."{name}"]\ncommand = {json.dumps(sys.executable)}\nargs = [{words}]\n'
        f'env = {{ PYTHONPATH = "{SRC}" }}\nrestart_delay_secs = 0.05\n'
    )


class App:
    """A plain client of the kernel socket."""

    def __init__(self, path, id="@test/plain"):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(path))
        self.file = self.sock.makefile("rb")
        manifest = {"id": id, "type": "app", "protocol": {"version": "1.0"}}
        self.ask("app.register", {"manifest": manifest})

    def ask(self, method, params):
        message = {"id": "1", "type": "request", "method": method, "params": params}
        self.sock.sendall(json.dumps(message).encode() + b"\n")
        while True:
            answer = json.loads(self.file.readline())
            if answer["type"] == "response":
                return answer

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.file.close()
        self.sock.close()


def wait_for_app(daemon, name):
    daemon.wait_said(f"ready app={name}", within=60)


@pytest.fixture
def words(tmp_path):
    turns = [call("count_words", text="one two three"), say("three words")]
    config = script(tmp_path, turns, loop=True)
    config += app_config("@examples/words", EXAMPLES / "tool.py")
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        wait_for_app(daemon, "@examples/words")
        yield daemon
        assert daemon.stop() == 0


def test_the_example_is_short():
    code = [
        line
        for line in (EXAMPLES / "tool.py").read_text().splitlines()
        if line.strip() and not line.strip().startswith("#")
    ]
    assert len(code) < 30


def test_a_session_driven_over_acp_calls_an_apps_tool(words):
    with Line(words.data / "acp.sock", init=None) as acp:
        acp.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        asked = {"cwd": str(words.folder), "mcpServers": []}
        session = acp.ask("session/new", asked)["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "count"}]}
        result = acp.ask("session/prompt", prompt)
        assert result["stopReason"] == "end_turn"
        updates = [m["params"]["update"] for m in acp.seen if m.get("method") == "session/update"]
        done = [u for u in updates if u.get("status") == "completed"]
        assert done and '"words":3' in json.dumps(done).replace("\\", "")


def test_a_method_is_called_by_another_app(words):
    with App(words.data / "kernel.sock") as app:
        asked = {"method": "words.count", "params": {"text": "a b c d"}}
        assert app.ask("gateway.call", asked)["result"] == {"result": 4}
        failed = app.ask("gateway.call", {"method": "words.count", "params": {}})
        assert failed["error"]["code"] == "UNKNOWN_ERROR"


def test_a_killed_app_comes_back(words):
    with App(words.data / "kernel.sock") as app:
        log = words.log()
        pid = int(log.split("started app=@examples/words pid=")[1].split()[0])
        os.kill(pid, signal.SIGKILL)
        limit = time.monotonic() + 60
        while words.log().count("ready app=@examples/words") < 2:
            assert time.monotonic() < limit, words.log()
            select.select([], [], [], 0.05)
        asked = {"method": "words.count", "params": {"text": "a b"}}
        assert app.ask("gateway.call", asked)["result"] == {"result": 2}


def test_the_chat_example(tmp_path):
    config = script(tmp_path, [say("Hello from the agent"), say("And again")])
    config += app_config("@examples/chat", EXAMPLES / "chat.py", "0")
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        daemon.wait_said('text="listening on ', within=60)
        port = int(daemon.log().split('text="listening on ')[1].split('"')[0])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
            lines = one.makefile("rwb")
            for text, answer in ((b"hi", b"Hello from the agent"), (b"more", b"And again")):
                lines.write(text + b"\n")
                lines.flush()
                assert lines.readline() == answer + b"\n"
            lines.close()
        with Line(daemon.socket) as line:  # the session is there for other protocols too
            sessions = line.ask("session/list")["sessions"]
            assert len(sessions) == 1
        assert daemon.stop() == 0


def test_an_app_guards_a_zeroclaw_session(tmp_path):
    guard = tmp_path / "guard.py"
    guard.write_text(GUARD)
    turns = [call("bash", command="echo forbidden"), say("darn it")]
    config = script(tmp_path, turns) + app_config("@test/guard", guard)
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        wait_for_app(daemon, "@test/guard")
        with App(daemon.data / "kernel.sock"), Line(daemon.socket) as line:
            session = line.ask("session/new", {"agentAlias": "default", "cwd": str(tmp_path)})[
                "sessionId"
            ]
            result = line.ask("session/prompt", {"sessionId": session, "prompt": "go"})
            assert result["content"] == "d*** it"
            told = json.dumps(line.seen)
            assert "Blocked: this host keeps its forbidden things" in told
            assert "darn" not in told
        assert daemon.stop() == 0


def test_a_route_is_served_by_the_gateway(tmp_path):
    guard = tmp_path / "guard.py"
    guard.write_text(GUARD)
    config = "[gateway]\nport = 0\n" + app_config("@test/guard", guard)
    with Daemon(tmp_path, config=config, gateway=True).wait_ready() as daemon:
        wait_for_app(daemon, "@test/guard")
        address = daemon.log().split("dialect=gateway address=")[1].split()[0].strip('"')
        url = f"http://{address.removeprefix('http://')}/apps/@test/guard/hello/you"
        asked = urllib.request.Request(url, data=b"there", method="POST")
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert answer.status == 202
            assert answer.read() == b"POST /hello/you there"
        assert daemon.stop() == 0
