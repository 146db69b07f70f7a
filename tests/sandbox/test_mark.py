"""Nobody approves himself, wherever his tool was started, and whatever is restarted meanwhile.

With Unix sockets opened and no pairing wanted, which is the weakest that can be configured without
giving trust to a program: the mark alone has to tell.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.daemon.running import Daemon, Line, call, say, script

from dragoman.sandbox.landlock import abi

TRY = """
import http.client, json, os, socket, sys, time
told = json.load(open(sys.argv[1]))
def line():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(told["socket"])
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\\n')
    return s.recv(100)
def http_of(method, path, body):
    c = http.client.HTTPConnection("127.0.0.1", told["port"], timeout=60)
    c.request(method, path, json.dumps(body), {"content-type": "application/json"})
    answer = c.getresponse()
    answer.read()
    return answer.status < 400
full = {"agents": {"default": {"mode": "full"}}}
found = []
for name, work in (
    ("socket", line),
    ("config", lambda: http_of("GET", "/api/config", None)),
    ("change", lambda: http_of("PUT", "/api/config", full)),
    ("session", lambda: http_of("POST", "/api/sessions", {})),
    ("code", lambda: http_of("GET", "/pair/code", None)),
    ("token", lambda: http_of("POST", "/api/tokens", {"name": "x"})),
):
    try:
        found.append(("HEARD " if work() else "refused ") + name)
    except OSError as problem:
        found.append("refused " + name + " " + str(problem))
print("; ".join(found), flush=True)
"""
# Left behind with an empty environment and a session of its own: it waits for the next daemon.
LATER = (
    "env -i setsid python3 -c 'import os, time\n"
    'while not os.path.exists("go"): time.sleep(0.02)\n'
    'os.system("python3 try.py again.json > said.new 2>&1; [ $? -gt 128 ] || mv said.new said")\' '
    "& echo $! > pid; sleep 360"
)


def backends() -> list[str]:
    return (["landlock"] if abi() else []) + (["bubblewrap"] if shutil.which("bwrap") else [])


class Trial:
    def __init__(self, top: Path, backend: str) -> None:
        self.top, self.work, self.home = top, top / "work", top / "d"
        self.work.mkdir()
        self.home.mkdir()
        (self.work / "try.py").write_text(TRY)
        python = os.path.dirname(os.path.realpath(sys.executable))
        self.env = {"PATH": f"{python}:{os.environ['PATH']}", "HOME": str(top)}
        self.rest = (
            'mode = "full"\n[gateway]\nport = 0\nrequire_pairing = false\n'
            f'[sandbox]\nbackend = "{backend}"\ntrust_unix_sockets = true\n'
        )

    def config(self, name: str, *commands: str) -> str:
        folder = self.top / name
        folder.mkdir(exist_ok=True)
        turns = [*(call("bash", command=one) for one in commands), say("done")]
        return script(folder, turns, loop=True) + self.rest

    def daemon(self, *commands: str) -> Daemon:
        config = self.config("scripts", *commands)
        return Daemon(self.home, config=config, env=self.env, gateway=True)

    def tell(self, daemon: Daemon, name: str) -> None:
        daemon.wait_ready()
        about = json.loads((daemon.data / "gateway.json").read_text())
        port = int(about["address"].rstrip("/").rpartition(":")[2])
        told = {"port": port, "socket": daemon.socket}
        (self.work / name).write_text(json.dumps(told))

    def beside(self, *words: str, said: str = "") -> str:
        """A program of ours with a host of its own, whose tool tries the daemon."""
        alone = self.top / "alone"
        if not alone.exists():
            alone.mkdir()
            config = self.config("alone", "python3 try.py told.json")
            (alone / "config.toml").write_text(config.replace("[gateway]\nport = 0\n", ""))
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *words], cwd=self.work, input=said, text=True,
            env={**os.environ, **self.env, "DRAGOMAN_CONFIG_DIR": str(alone)},
            capture_output=True, timeout=60,
        )  # fmt: skip
        return done.stdout + done.stderr


def refused(text: str) -> None:
    assert "HEARD" not in text.replace('HEARD " if', ""), text
    for name in ("socket", "config", "change", "session", "code", "token"):
        assert f"refused {name}" in text, text


@pytest.mark.parametrize("backend", backends())
def test_no_tool_has_a_say_from_anywhere(tmp_path: Path, backend: str) -> None:
    trial = Trial(tmp_path, backend)
    with trial.daemon("python3 try.py told.json", LATER) as daemon:
        trial.tell(daemon, "told.json")
        mine = subprocess.run(  # we ourselves are let in, so the trial is none for show
            [sys.executable, "try.py", "told.json"], cwd=trial.work, capture_output=True, text=True
        )
        assert "HEARD socket; HEARD config" in mine.stdout, mine
        refused(trial.beside("run", "--json", "go"))
        refused(trial.beside("rpc", said='{"type":"prompt","message":"go"}\n'))
        refused(_acp(trial))
        with Line(daemon.socket) as client:
            session = client.ask("session/new", {"agentAlias": "default", "cwd": str(trial.work)})
            client.say("session/prompt", {"sessionId": session["sessionId"], "prompt": "go"})
            refused(json.dumps(client.until("tool_result")))
            _appears(trial.work / "pid")
        daemon.signal(signal.SIGKILL)  # its commands have no time to be ended
        daemon.ended()
    with trial.daemon("true") as daemon:
        trial.tell(daemon, "again.json")
        (trial.work / "go").touch()
        said, limit = trial.work / "said", time.monotonic() + 60
        while _there(trial.work) and not said.exists():
            assert time.monotonic() < limit, "it neither tried nor was ended"
            time.sleep(0.02)
        if said.exists():  # else the new daemon, or its walls, ended it before it could try
            refused(said.read_text())


def _acp(trial: Trial) -> str:
    lines = [
        {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 1, "method": "session/new", "params": {"cwd": str(trial.work), "mcpServers": []}},
    ]
    alone = trial.top / "alone"
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "acp"], cwd=trial.work, text=True, bufsize=1,
        env={**os.environ, **trial.env, "DRAGOMAN_CONFIG_DIR": str(alone)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    found = ""
    with process.stdin as stdin, process.stdout as stdout:
        for one in lines:
            stdin.write(json.dumps({"jsonrpc": "2.0", **one}) + "\n")
        for line in stdout:
            found += line
            answer = json.loads(line)
            if answer.get("id") == 1:
                ask = {"sessionId": answer["result"]["sessionId"],
                       "prompt": [{"type": "text", "text": "go"}]}  # fmt: skip
                told = {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": ask}
                stdin.write(json.dumps(told) + "\n")
            if answer.get("id") == 2:
                break
    process.wait(60)
    return found


def _there(folder: Path) -> bool:
    """Whether a process of ours has this as its working directory."""
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(folder):
                return True
        except OSError:
            continue  # gone, or another user's
    return False


def _appears(path: Path) -> None:
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit, "the command did not start"
        time.sleep(0.02)
