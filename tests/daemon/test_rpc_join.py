"""`dragoman rpc --session ID` joins a running daemon."""

import json
import os
import subprocess
import sys

from tests.daemon.running import Daemon

from dragoman.client.plain import Plain

COMMAND = [sys.executable, "-m", "dragoman", "rpc"]


def rpc(folder, *words, said=""):
    env = {name: value for name, value in os.environ.items() if "DRAGOMAN" not in name}
    done = subprocess.run(
        [*COMMAND, "--config-dir", str(folder), *words], input=said.encode(), env=env,
        capture_output=True, timeout=60,
    )  # fmt: skip
    return (
        done.returncode,
        [json.loads(line) for line in done.stdout.split(b"\n") if line],
        (done.stderr.decode()),
    )


def test_it_joins_the_session_of_a_running_daemon(tmp_path):
    config = '[agents.default]\nmodel = "demo/demo"\n'
    with (
        Daemon(tmp_path, config=config).wait_ready() as daemon,
        Plain(daemon.socket, "another") as other,
    ):
        id = other.call("dragoman/open", {"cwd": str(tmp_path)})["session"]["id"]
        other.call("dragoman/watch", {"session_id": id})
        prompt = json.dumps({"id": "1", "type": "prompt", "message": "say joined"})
        code, frames, said = rpc(tmp_path, "--session", id, said=f"{prompt}\n")
        assert (code, said) == (0, "")
        assert frames[0]["id"] == "1" and frames[0]["success"], "nothing of ours is shown"
        assert frames[-1] == {"type": "done"}
        live = other.call("dragoman/session", {"session_id": id})
        assert live["live"] and live["session"]["messages"] == 2, "it is the daemon's session"

        code, frames, said = rpc(tmp_path, "--session", "no-such-session")
        assert code == 1 and not frames and "no-such-session" in said
        # What only this process knows keeps it apart, and then the daemon has the session.
        code, _, said = rpc(tmp_path, "--session", id, "--model", "demo/demo")
        assert code == 1 and said
        assert daemon.stop() == 0
    code, frames, said = rpc(tmp_path, "--session", id, said='{"id":"1","type":"get_messages"}\n')
    assert code == 0 and len(frames[0]["data"]["messages"]) == 2, said


def test_a_daemon_that_dies_leaves_no_command_and_no_turn_without_an_end(tmp_path):
    config = '[agents.default]\nmodel = "demo/demo"\n'
    env = {name: value for name, value in os.environ.items() if "DRAGOMAN" not in name}
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        with Plain(daemon.socket, "another") as other:
            id = other.call("dragoman/open", {"cwd": str(tmp_path)})["session"]["id"]
        words = [*COMMAND, "--config-dir", str(tmp_path), "--session", id]
        process = subprocess.Popen(
            words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdin and process.stdout
        for number, text in enumerate(("count slowly to 500", "say never"), 1):
            command = {"id": str(number), "type": "prompt", "message": text}
            process.stdin.write(json.dumps(command).encode() + b"\n")
        process.stdin.flush()
        while b'"text_delta"' not in process.stdout.readline():
            pass
        daemon.process.kill()
        out, said = process.communicate(timeout=60)
    assert process.returncode == 1 and b"the daemon ended the connection" in said
    frames = [json.loads(line) for line in out.split(b"\n") if line]
    refused, problem, done = frames[-3:]
    assert refused["id"] == "2" and refused["type"] == "response" and not refused["success"]
    assert problem["type"] == "error" and done == {"type": "done"}
