"""A command in its sandbox against the daemon of its user: it gets no say in it, and no harm done.

Over HTTP, which a command may use: no code, no pairing, no change of settings. By the kernel: no
limit of the daemon's process is lowered.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.daemon.running import Daemon, Line, call, say, script

ATTACK = """
import http.client, json, resource
told = json.load(open("told.json"))
full = {"agents": {"default": {"mode": "full"}}, "sandbox": {"backend": "none"}}
for method, path, body in (
    ("GET", "/pair/code", None), ("GET", "/api/pair-codes", None), ("POST", "/api/pair-codes", {}),
    ("POST", "/pair", {}), ("POST", "/pair", {"code": "000000"}), ("POST", "/api/pair", {}),
    ("PUT", "/api/config", full), ("PATCH", "/api/config", full), ("POST", "/api/config", full),
    ("POST", "/api/tokens", {"name": "mine"}), ("GET", "/api/config", None),
):
    c = http.client.HTTPConnection("127.0.0.1", told["port"], timeout=60)
    c.request(method, path, json.dumps(body), {"content-type": "application/json"})
    answer = c.getresponse()
    answer.read()
    print("GOT" if answer.status < 400 else "no:", method, path, answer.status)
for name in ("CPU", "NOFILE", "AS", "RTTIME"):
    try:
        resource.prlimit(told["pid"], getattr(resource, "RLIMIT_" + name), (0, 0))
        print("GOT", name)
    except OSError as problem:
        print("no:", name, problem.strerror)
print("all tried")
"""
TRIES = 15


def prepared(tmp_path: Path, backend: str) -> tuple[Path, Path, str, dict[str, str]]:
    work, home = tmp_path / "work", tmp_path / "d"
    work.mkdir()
    home.mkdir()
    (work / "attack.py").write_text(ATTACK)
    config = script(tmp_path, [call("bash", command="python3 attack.py"), say("done")])
    config += f'mode = "full"\n[gateway]\nport = 0\n[sandbox]\nbackend = "{backend}"\n'
    python = os.path.dirname(os.path.realpath(sys.executable))
    return work, home, config, {"PATH": f"{python}:{os.environ['PATH']}"}


def tell(work: Path, daemon: Daemon) -> bytes:
    """Where the daemon is; gives its settings as they are before."""
    found = re.search(rb"http://127\.0\.0\.1:(\d+)", daemon.said)
    assert found, daemon.said
    pid = daemon.process.pid
    (work / "told.json").write_text(f'{{"port": {int(found[1])}, "pid": {pid}}}')
    return daemon.config.read_bytes() + Path(f"/proc/{pid}/limits").read_bytes()


def unharmed(daemon: Daemon, before: bytes, shown: str) -> None:
    assert "GOT" not in shown and "all tried" in shown, shown
    assert shown.count("no: ") == TRIES, shown
    limits = Path(f"/proc/{daemon.process.pid}/limits").read_bytes()
    assert daemon.config.read_bytes() + limits == before
    assert daemon.process.poll() is None
    with Line(daemon.socket) as client:
        assert client.ask("session/new", {"agentAlias": "default", "cwd": "/"})["sessionId"]


@pytest.mark.parametrize("backend", ["landlock", "bubblewrap"])
def test_a_command_of_the_daemon_cannot_change_it(tmp_path: Path, backend: str) -> None:
    work, home, config, env = prepared(tmp_path, backend)
    with Daemon(home, config=config, env=env, gateway=True) as daemon:
        daemon.wait_ready()
        before = tell(work, daemon)
        with Line(daemon.socket) as client:
            session = client.ask("session/new", {"agentAlias": "default", "cwd": str(work)})
            client.ask("session/prompt", {"sessionId": session["sessionId"], "prompt": "go"})
            (result,) = [
                m["params"] for m in client.seen if m["params"].get("type") == "tool_result"
            ]
        unharmed(daemon, before, str(result.get("rawOutput") or result.get("raw_output")))


@pytest.mark.parametrize("backend", ["landlock", "bubblewrap"])
def test_nor_can_a_command_of_a_run_beside_it(tmp_path: Path, backend: str) -> None:
    work, home, config, env = prepared(tmp_path, backend)
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "config.toml").write_text(config)
    with Daemon(home, config=config, env=env, gateway=True) as daemon:
        daemon.wait_ready()
        before = tell(work, daemon)
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "run", "--config-dir", str(alone), "--json", "go"],
            cwd=work, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        ends = done.stdout[done.stdout.index("no: GET") :]
        unharmed(daemon, before, ends[: ends.index("all tried") + len("all tried")])
