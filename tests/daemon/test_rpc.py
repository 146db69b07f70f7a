"""`dragoman rpc` as a process: flags, exit codes, the ends of its life, its clients."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests import go_cache
from tests.timed import promised

from dragoman.stdio.zot_flags import parse

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "dragoman", "rpc"]
_KEYS = ("_API_KEY", "ZOTCORE_RPC_TOKEN", "DRAGOMAN_", "ZEROCLAW_", "OLLAMA_")


@pytest.fixture
def env(tmp_path):
    """An environment without keys, with a configuration directory of its own."""
    kept = {k: v for k, v in os.environ.items() if not any(part in k for part in _KEYS)}
    return kept | {
        "DRAGOMAN_CONFIG_DIR": str(tmp_path / "config"),
        "HOME": str(tmp_path),
        "OLLAMA_HOST": "127.0.0.1:9",  # nobody answers there
    }


def chosen(words):
    """The words, and the embedded model when they choose none: it is used by name only."""
    named = {"--provider", "--model", "--session", "--agent", "--api-key"} & set(words)
    return words if named else ("--provider", "demo", *words)


def run(env, *words, said="", within=60, cwd=None):
    done = subprocess.run(
        [*COMMAND, *chosen(words)], input=said.encode(), env=env, capture_output=True,
        timeout=within, cwd=cwd,
    )  # fmt: skip
    frames = [json.loads(line) for line in done.stdout.split(b"\n") if line]
    return done.returncode, frames, done.stderr.decode()


def script(tmp_path, turns):
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"turns": turns, "loop": True}))
    return ("--model", f"scripted/{path}")


def kinds(frames):
    return [frame["type"] for frame in frames]


class Process:
    """A running `dragoman rpc` with pipes."""

    def __init__(self, env, *words, cwd=None):
        self.process = subprocess.Popen(
            [*COMMAND, *chosen(words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=env, cwd=cwd,
        )  # fmt: skip

    def send(self, **command):
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def until(self, kind):
        frames = []
        while True:
            frame = self.receive()
            assert frame is not None, frames
            frames.append(frame)
            if frame["type"] == kind:
                return frames

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        code = self.process.wait(60)
        told = self.process.stderr.read().decode()
        self.process.stderr.close()
        return code, told


def test_a_prompt_and_the_end_of_input_give_the_whole_turn(env, tmp_path):
    code, frames, told = run(env, said='{"id":"1","type":"prompt","message":"run echo hi"}')
    assert (code, told) == (0, "")
    assert kinds(frames)[:4] == ["response", "user_message", "turn_start", "assistant_start"]
    assert kinds(frames)[-1] == "done" and kinds(frames).count("done") == 1
    result = next(frame for frame in frames if frame["type"] == "tool_result")
    assert not result["is_error"]
    assert result["content"][0]["text"].startswith("$ echo hi\n\nhi\n\n[exit 0]  Took ")
    progress = next(frame for frame in frames if frame["type"] == "tool_progress")
    assert progress["text"] == "hi\n"
    assert not list(tmp_path.rglob("*.db")), "sessions are off: nothing is stored"


def test_the_result_of_a_failing_command_is_an_error_and_the_turn_goes_on(env, tmp_path):
    turns = [
        {"parts": [{"type": "call", "name": "bash",
                    "args": {"command": "echo one; echo two >&2; exit 3"}}]},
        "done",
    ]  # fmt: skip
    said = '{"type":"prompt","message":"go"}\n'
    code, frames, _ = run(env, *script(tmp_path, turns), said=said)
    assert code == 0
    result = next(frame for frame in frames if frame["type"] == "tool_result")
    text = result["content"][0]["text"]
    assert result["is_error"] and "\n\none\ntwo\n\n[exit 3]  Took " in text
    order = [k for k in kinds(frames) if k in ("tool_call", "turn_end", "tool_result", "done")]
    assert order == ["tool_call", "turn_end", "tool_result", "turn_end", "done"]


def test_flags_reach_the_session(env, tmp_path):
    said = '{"type":"get_state"}\n{"type":"hello"}\n{"type":"get_models"}'
    words = ("--provider", "anthropic", "--model=claude-opus-4-5", "--api-key", "k", "--cwd", ".",
             "--reasoning", "high", "--max-steps", "3", "--no-tools", "--append-system-prompt",
             "a", "--append-system-prompt", "b", "--system-prompt", "c", "--base-url",
             "http://127.0.0.1:9", "stray", "--tools", "read")  # fmt: skip
    code, frames, told = run(env, *words, said=said, cwd=tmp_path)
    assert (code, told) == (0, "")
    state, hello, models = (frame["data"] for frame in frames)
    assert (state["provider"], state["model"]) == ("anthropic", "claude-opus-4-5")
    assert state["cwd"] == "."
    assert (hello["provider"], hello["model"]) == ("anthropic", "claude-opus-4-5")
    assert {model["provider"] for model in models["models"]} == {"anthropic"}
    fields = {"context_window", "id", "max_output", "provider", "reasoning"}
    assert all(set(model) == fields for model in models["models"])


@pytest.mark.parametrize(
    ("words", "lacks"), [(["--no-tools"], "bash"), (["--tools", "read,ls"], "bash")]
)
def test_tools_that_are_not_offered_are_not_called(env, words, lacks):
    said = '{"type":"prompt","message":"run echo hi"}'
    code, frames, _ = run(env, *words, said=said)
    text = "".join(frame["delta"] for frame in frames if frame["type"] == "text_delta")
    assert code == 0 and "tool_call" not in kinds(frames)
    assert f"offers no `{lacks}` tool" in text


class FakeModel:
    """A loopback server that answers like Anthropic's, and keeps what it was asked."""

    def __init__(self, status=200):
        self.bodies: list[dict] = []
        self.keys: list[str] = []
        fake = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers["content-length"])
                fake.bodies.append(json.loads(self.rfile.read(size)))
                fake.keys.append(self.headers["x-api-key"])
                self.send_response(status)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(_STREAM if status == 200 else b"the model is out")

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *trouble):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


_STREAM = b"".join(
    b"event: %s\ndata: %s\n\n" % (part["type"].encode(), json.dumps(part).encode())  # type: ignore[attr-defined]
    for part in (
        {"type": "message_start", "message": {"id": "m", "usage": {
            "input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 30}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    )
)  # fmt: skip


def test_the_model_is_asked_as_the_flags_say(env, tmp_path):
    said = '{"type":"prompt","message":"hi"}'
    words = ("--provider", "anthropic", "--model", "claude-sonnet-4-5", "--api-key", "secret",
             "--system-prompt", "You are a stone.", "--append-system-prompt", "Be grey.",
             "--append-system-prompt", "Be still.", "--no-tools", "--cwd", ".")  # fmt: skip
    with FakeModel() as model:
        code, frames, told = run(env, *words, "--base-url", model.url, said=said, cwd=tmp_path)
    assert (code, told) == (0, "")
    body = model.bodies[0]
    assert model.keys == ["secret"] and body["model"] == "claude-sonnet-4-5"
    system = json.dumps(body["system"])
    assert "You are a stone." in system and "Be grey." in system and "Be still." in system
    assert "Current working directory: " in system and not body.get("tools")
    usage = next(frame for frame in frames if frame["type"] == "usage")
    assert abs(usage["cost_usd"] - 0.0005685) < 1e-12
    assert (usage["input"], usage["output"]) == (100, 10)
    assert (usage["cache_read"], usage["cache_write"]) == (20, 30)
    assert kinds(frames)[-3:] == ["assistant_message", "turn_end", "done"]


def test_a_model_that_refuses_is_an_error_and_done(env):
    said = '{"type":"prompt","message":"hi"}\n'
    words = ("--provider", "anthropic", "--api-key", "secret")
    with FakeModel(status=400) as model:
        code, frames, told = run(env, *words, "--base-url", model.url, said=said)
    assert (code, told) == (0, "")
    assert kinds(frames) == ["response", "user_message", "turn_start", "turn_end", "error", "done"]
    assert frames[3]["stop"] == "error" and frames[3]["error"] == frames[4]["message"]
    assert "400" in frames[4]["message"]


def test_files_as_input_and_output(env, tmp_path):
    (tmp_path / "in").write_text('{"id":"1","type":"prompt","message":"say hello"}\n')
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as sink:
        done = subprocess.run(
            [*COMMAND, *chosen(())], stdin=source, stdout=sink, env=env, timeout=60
        )
    lines = (tmp_path / "out").read_text().splitlines()
    assert done.returncode == 0 and lines[-1] == '{"type":"done"}'


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--frob"], 'zot: unknown flag "--frob"'),
        (["--provider"], "zot: --provider requires a value"),
        (["--max-steps", "0"], "zot: --max-steps must be a positive integer"),
        (["--max-steps", "many"], "zot: --max-steps must be a positive integer"),
        (["--reasoning", "very"], "zot: --reasoning must be off|minimum|low|medium|high|xhigh|max"),
        (["--provider", "anthropic"], "zot: no credential for anthropic"),
        (["--provider", "anthropic", "--api-key", "k", "--model", "x"],
         'zot: unknown model "x" (provider="anthropic")'),
        (["--provider", "nobody"], "zot: "),
        (["--provider", "demo", "--session", "nowhere"], "zot: Session not found: nowhere"),
    ],
)  # fmt: skip
def test_what_cannot_be_started_says_why_and_answers_nothing(env, words, reason):
    code, frames, told = run(env, *words, said='{"type":"ping"}')
    assert (code, frames) == (1, [])
    assert told.strip().split("\n")[-1].startswith(reason)
    assert "Traceback" not in told


def test_the_levels_of_reasoning_are_the_same_everywhere(env):
    levels = "off, minimum, low, medium, high, xhigh, max"
    done = subprocess.run([*COMMAND, "--help"], env=env, capture_output=True, text=True)
    assert f"({levels})" in done.stdout + done.stderr
    guide = ROOT / "docs" / "protocols" / "zot.md"
    assert f"| `--reasoning LEVEL` | {levels};" in guide.read_text()
    for level in (*levels.split(", "), "minimal", "maximum"):
        assert parse(["--reasoning", level]).reasoning in levels.split(", ")
    code, _, told = run(env, "--reasoning", "very")
    assert code == 1 and told.strip().endswith(f"must be {levels.replace(', ', '|')}")


def test_a_wrong_flag_shows_the_usage_and_then_one_line(env):
    code, frames, told = run(env, "--max-steps", "0")
    rows = told.strip().split("\n")
    assert (code, frames) == (1, []) and rows[0].startswith("Usage: ")
    assert [row for row in rows if row.startswith("zot: ")] == rows[-1:]
    assert rows[-1] == "zot: --max-steps must be a positive integer"


def test_version_and_help(env):
    done = subprocess.run([*COMMAND, "--version"], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("zot ")
    done = subprocess.run([*COMMAND, "--help"], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "--append-system-prompt" in done.stdout + done.stderr


def test_the_token_is_wanted_and_hidden_from_tools(env):
    env["ZOTCORE_RPC_TOKEN"] = "sesame"
    said = (
        '{"id":"0","type":"hello","token":"sesame"}\n'
        '{"id":"1","type":"prompt","message":"run echo [$ZOTCORE_RPC_TOKEN]"}\n'
    )
    code, frames, _ = run(env, said=said)
    result = next(frame for frame in frames if frame["type"] == "tool_result")
    assert code == 0 and "\n[]\n" in result["content"][0]["text"]
    for first in ('{"id":"0","type":"hello","token":"open"}', '{"id":"0","type":"ping"}'):
        code, frames, told = run(env, said=first + '\n{"type":"ping"}\n')
        assert code == 1 and told == "zot: rpc: bad auth token\n"
        assert [frame["success"] for frame in frames] == [False]


def test_long_lines(env):
    fill = "x" * (15 * 1024 * 1024)
    said = json.dumps({"id": "long", "type": "ping", "fill": fill}) + "\n"
    said += json.dumps({"id": "over", "type": "ping", "fill": fill + fill[: 2 * 1024 * 1024]})
    said += '\n{"id":"after","type":"ping"}\n'
    code, frames, _ = run(env, said=said)
    assert code == 0
    assert [frame.get("id") for frame in frames] == ["long", "over", "after"]
    assert frames[1]["success"] is False and frames[1]["error"].startswith("line too long")


def test_an_open_input_is_answered_while_a_tool_runs_and_abort_stops_it(env, tmp_path):
    turns = [
        {"parts": [
            {"type": "call", "name": "bash", "args": {"command": "echo on; sleep 300"}},
            {"type": "call", "name": "write", "args": {"path": "f", "content": "x"}},
            {"type": "call", "name": "bash", "args": {"command": "touch g"}},
        ]},
        "never",
    ]  # fmt: skip
    process = Process(env, *script(tmp_path, turns), cwd=tmp_path)
    process.send(id="1", type="prompt", message="go")
    process.until("tool_progress")
    process.send(id="p", type="ping")
    assert process.receive()["id"] == "p"
    began = time.monotonic()
    process.send(id="2", type="abort")
    rest = process.until("done")
    assert time.monotonic() - began < 60  # it sleeps for 300
    assert kinds(rest) == ["response", "tool_result", "tool_result", "tool_result", "done"]
    assert all(frame["is_error"] for frame in rest[1:4])
    process.send(id="3", type="get_messages")
    roles = [m["role"] for m in process.receive()["data"]["messages"]]
    assert roles == ["user", "assistant", "tool"]
    assert process.close() == (0, "")
    assert not (tmp_path / "f").exists() and not (tmp_path / "g").exists()


BESIDE = {
    "tool": [{"type": "call", "name": "bash", "args": {"command": "echo on; sleep 300"}}],
    "noisy tool": [{"type": "call", "name": "bash",
                    "args": {"command": "while sleep 0.005; do echo on; done"}}],
    "model": [{"type": "say", "text": "word " * 90_000, "deltas": 90_000, "delay": 0.001}],
}  # fmt: skip


@pytest.mark.parametrize("beside", BESIDE)
@promised(0.010)
def test_questions_are_answered_beside(beside, env, tmp_path, within):
    """Nine of ten: one may meet what else the machine does. Measured: 0.04 to 0.12 ms."""
    process = Process(env, *script(tmp_path, [{"parts": BESIDE[beside]}]), cwd=tmp_path)
    process.send(id="1", type="prompt", message="go")
    process.until("text_delta" if beside == "model" else "tool_progress")
    for kind in ("ping", "get_state", "get_messages", "get_models"):
        times = []
        for number in range(20):
            began = time.perf_counter()
            process.send(id=f"{kind}{number}", type=kind)
            while process.receive().get("id") != f"{kind}{number}":
                pass
            times.append(time.perf_counter() - began)
        assert sorted(times)[17] < within, (kind, sorted(times))
    process.send(id="2", type="abort")
    process.until("done")
    assert process.close()[0] == 0


def test_a_reader_that_goes_away_ends_the_process_quietly(env):
    process = Process(env)
    process.send(id="1", type="prompt", message="count slowly to 1000")
    process.until("text_delta")
    process.process.stdout.close()
    code = process.process.wait(60)
    told = process.process.stderr.read().decode()
    process.process.stdin.close()
    process.process.stderr.close()
    assert (code, told) == (0, "")


def test_sigterm_ends_the_tools_too(env, tmp_path):
    turns = [{"parts": [{"type": "call", "name": "bash",
                         "args": {"command": "echo $$; exec sleep 360"}}]}]  # fmt: skip
    process = Process(env, *script(tmp_path, turns))
    process.send(id="1", type="prompt", message="go")
    pid = int(process.until("tool_progress")[-1]["text"])
    process.process.send_signal(signal.SIGTERM)
    code, told = process.close()
    assert (code, told) == (-signal.SIGTERM, "")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_kept_session_is_found_again(env, tmp_path):
    model = script(tmp_path, ["one", "two"])
    said = '{"type":"prompt","message":"first"}\n'
    process = Process(env, "--session", "new", *model)
    process.send(type="get_state")
    session = process.receive()["data"]["session"]
    process.send(type="prompt", message="first")
    process.until("done")
    assert process.close() == (0, "")
    said = '{"type":"list_sessions"}\n{"type":"get_messages"}\n{"type":"hello"}\n'
    code, frames, told = run(env, "--session", session, *model, said=said)
    assert (code, told) == (0, "")
    assert [row["id"] for row in frames[0]["data"]["sessions"]] == [session]
    texts = [m["content"][0]["text"] for m in frames[1]["data"]["messages"]]
    assert texts == ["first", "one"]


def test_supervised_asks_and_the_default_does_not(env, tmp_path):
    turns = [{"parts": [{"type": "call", "name": "write",
                         "args": {"path": "made.txt", "content": "x"}}]}, "ok"]  # fmt: skip
    model = script(tmp_path, turns)
    process = Process(env, "--supervised", *model, cwd=tmp_path)
    process.send(id="1", type="prompt", message="go")
    asked = process.until("approval_request")[-1]
    assert asked["name"] == "write" and not (tmp_path / "made.txt").exists()
    process.send(id="2", type="approve", approval=asked["approval"], decision="allow")
    process.until("done")
    assert process.close() == (0, "") and (tmp_path / "made.txt").exists()
    (tmp_path / "made.txt").unlink()
    code, frames, _ = run(env, *model, said='{"type":"prompt","message":"go"}', cwd=tmp_path)
    assert code == 0 and "approval_request" not in kinds(frames)
    assert (tmp_path / "made.txt").exists()
    config = Path(env["DRAGOMAN_CONFIG_DIR"])
    config.mkdir(exist_ok=True)
    (config / "config.toml").write_text('[autonomy]\nlevel = "readonly"\n')
    (tmp_path / "made.txt").unlink()
    code, frames, _ = run(env, *model, said='{"type":"prompt","message":"go"}', cwd=tmp_path)
    assert code == 0 and not (tmp_path / "made.txt").exists(), "an explicit choice is kept"


def test_a_socket_as_standard_input_and_output_works(env):
    ours, theirs = socket.socketpair()
    with ours:
        process = subprocess.Popen([*COMMAND, *chosen(())], stdin=theirs, stdout=theirs, env=env)  # type: ignore[call-overload]
        theirs.close()
        ours.sendall(b'{"id":"1","type":"ping"}\n')
        assert json.loads(ours.recv(4096))["data"] == {"pong": True}
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(60) == 0


# --- clients ---------------------------------------------------------------------------------


@pytest.fixture
def zot(env, tmp_path):
    """A program called `zot` early on PATH, as the published samples look for it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "zot"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
    program.chmod(0o755)
    return configured(env) | {"PATH": f"{folder}:{env['PATH']}"}


def configured(env):
    """With a configuration that names the model, for clients that give no flags."""
    folder = Path(env["DRAGOMAN_CONFIG_DIR"])
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[agents.default]\nmodel = "demo/demo"\n')
    return env


def test_a_client_that_looks_for_zot_and_does_not_wait_for_hello(zot):
    """The habits of the published samples: `zot rpc`, hello unawaited, done, leave within 5 s."""
    zot["ZOTCORE_RPC_TOKEN"] = "t"
    process = subprocess.Popen(
        ["zot", "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=zot, text=True
    )
    for command in (
        {"type": "hello", "token": "t", "id": "0a1b2c3d"},
        {"type": "prompt", "message": "run echo hi", "id": "4e5f6071"},
    ):
        process.stdin.write(json.dumps(command, separators=(", ", ": ")) + "\n")
        process.stdin.flush()
    text, tools, cost = "", [], None
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == "text_delta":
            text += event["delta"]
        elif event["type"] == "tool_call":
            tools.append((event["name"], event["args"]))
        elif event["type"] == "usage":
            cost = f"{event['cumulative']['cost_usd']:.4f}"
        elif event["type"] == "done":
            break
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()
    assert "hi" in text and tools == [("bash", {"command": "echo hi"})] and cost == "0.0000"


def test_a_shell_pipe_with_a_closed_input_gets_the_whole_answer_and_status_zero(zot):
    line = '{"id":"1","type":"prompt","message":"say hello"}'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; echo '{line}' | zot rpc | tail -n 1"],
        env=zot, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, '{"type":"done"}\n')


CLIENTS = {
    "shell": (["bash", "ask.sh"], ("bash", "jq")),
    "python": ([sys.executable, "ask.py"], ()),
    "node": (["node", "ask.mjs"], ("node",)),
    "go": (["go", "run", "."], ("go",)),
}


@pytest.mark.slow  # a compiler that has compiled nothing yet takes its time
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CLIENTS)
def test_our_own_clients(name, env, tmp_path):
    words, needed = CLIENTS[name]
    folder = ROOT / "examples" / "rpc" / name
    for file in folder.iterdir():
        assert len(file.read_text().splitlines()) < 60, f"{file} is to be short"
    missing = [tool for tool in needed if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} here")
    env = configured(env) | {"DRAGOMAN": f"{sys.executable} -m dragoman", "ZOTCORE_RPC_TOKEN": "t"}
    env |= {"GOCACHE": go_cache.place(), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        [*words, "run echo hi"], cwd=folder, env=env, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert "hi\n" in done.stdout and "bash" in done.stderr
    failed = subprocess.run(
        [*words, "fail"], cwd=folder, env=env, capture_output=True, text=True, timeout=60
    )
    assert failed.returncode == 1 and "error:" in failed.stderr
