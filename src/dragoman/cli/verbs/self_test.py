"""`dragoman self-test`: everything once, in a folder of its own, without a network."""

import errno
import json
import os
import shlex
import site
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

from dragoman.dialects.descriptor import REGISTRY
from dragoman.leaving import leaving_in_order, undisturbed

from .. import say
from ..parse import Args
from ..places import short_folder

_WITHIN = 30.0
# In a file: with settings in the environment, commands would not take their turns in the daemon.
_SETTINGS = '[agents.default]\nmodel = "demo/demo"\n[gateway]\nport = 0\n'


class Failed(Exception):
    """What did not go as it should."""


def _request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


class Trial:
    """A daemon of our own, and what is asked of it."""

    def __init__(self, folder: str) -> None:
        self.work = os.path.join(folder, "work")
        self.config = os.path.join(folder, "config")
        os.mkdir(self.work)
        os.mkdir(self.config, 0o700)
        home = os.path.join(folder, "home")  # the sandbox makes caches in it, for what is installed
        os.mkdir(home)
        with open(os.path.join(self.config, "config.toml"), "w", encoding="utf-8") as file:
            file.write(_SETTINGS)
        self.env = _without_ours() | {"DRAGOMAN_CONFIG_DIR": self.config, "NO_COLOR": "1"}
        # Another home, and yet what `pip install --user` has put into the real one: us, perhaps.
        self.env |= {"HOME": home, "PYTHONUSERBASE": site.getuserbase()}
        self.process: subprocess.Popen[str] | None = None
        self.status: dict[str, Any] = {}
        self.session = ""

    def command(self, *words: str, text: str | None = None, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "dragoman", *words],
            input=text, stdin=None if text is not None else subprocess.DEVNULL,
            env=self.env, cwd=self.work, text=True, capture_output=True, timeout=_WITHIN,
        )  # fmt: skip
        if done.returncode != code:
            said = (done.stderr or done.stdout).strip()[-500:]
            raise Failed(f"dragoman {' '.join(words)} ended with {done.returncode}: {said}")
        return done.stdout

    def talk(self, dialect: str, *said: dict[str, Any]) -> list[dict[str, Any]]:
        """Say lines on a dialect's socket; one answer each."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_WITHIN)
            line.connect(self.status["endpoints"][dialect])
            heard = line.makefile("rb")
            answers = []
            for message in said:
                line.sendall(json.dumps(message).encode() + b"\n")
                answers.append(json.loads(heard.readline() or b"null"))
        for answer in answers:
            if not isinstance(answer, dict) or answer.get("error"):
                raise Failed(f"{dialect} answered {json.dumps(answer)[:300]}")
        return answers

    def start(self) -> None:
        with undisturbed():
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dragoman", "daemon"],
                env=self.env, cwd=self.work, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
        assert self.process.stderr is not None
        said = []
        with _ended_after(_WITHIN, self.process):
            for row in self.process.stderr:
                if row.strip() == "ready":
                    break
                said.append(row)
            else:
                self.end("kill")
                why = "".join(said)[-500:].strip() or f"it says nothing, also after {_WITHIN:.0f} s"
                raise Failed(f"the daemon does not start: {why}")
        self.status = json.loads(self.command("status", "--json"))

    def end(self, how: str) -> None:
        if self.process is None:
            return
        getattr(self.process, how)()
        self.process.wait(_WITHIN)
        assert self.process.stderr is not None
        self.process.stderr.close()
        self.process = None

    # What is tried, in this order.

    def demo(self) -> None:
        said = self.command("run", "run echo works-here", "--approve", "all")
        if "works-here" not in said:
            raise Failed(f"the demo did not run its command: {said[-300:]}")

    def sessions(self) -> None:
        found = json.loads(self.command("sessions", "--json"))["sessions"]
        if not found:
            raise Failed("the session of the turn is not in the list")
        self.session = found[0]["id"]

    def zeroclaw(self) -> None:
        hello = _request(1, "initialize", {"protocolVersion": 1})
        self.talk("zeroclaw", hello, _request(2, "session/list", {}))

    def acp(self) -> None:
        hello = {"protocolVersion": 1, "clientCapabilities": {}}
        new = {"cwd": self.work, "mcpServers": []}
        rows = _request(1, "initialize", hello), _request(2, "session/new", new)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        answers = [json.loads(row) for row in self.command("acp", text=text).splitlines()]
        if not any(one.get("id") == 2 and "sessionId" in one.get("result", {}) for one in answers):
            raise Failed(f"acp answered {str(answers)[:300]}")

    def zot(self) -> None:
        prompt = json.dumps({"id": "1", "type": "prompt", "message": "what is dragoman"}) + "\n"
        said = self.command("rpc", "--provider", "demo", text=prompt)
        if json.loads(said.splitlines()[-1])["type"] != "done":
            raise Failed(f"zot ended with {said.splitlines()[-1][:300]}")

    def humanlayer(self) -> None:
        call = _request(1, "listSessions", {})
        found = self.talk("humanlayer", call)[0]["result"]["sessions"]
        if self.session not in [one["id"] for one in found]:
            raise Failed("humanlayer does not list the session that another client began")

    def openclawos(self) -> None:
        manifest: dict[str, Any] = {
            "id": "@self/test", "name": "Self-test", "version": "1.0.0", "type": "app",
            "main": "none", "protocol": {"version": "1.0"}, "capabilities": {},
        }  # fmt: skip
        params = {"manifest": manifest}
        message = {"type": "request", "id": "1", "method": "app.register", "params": params}
        answer = self.talk("openclawos", message)[0]
        if answer.get("requestId") != "1":
            raise Failed(f"openclawos answered {json.dumps(answer)[:300]}")

    def gateway(self) -> None:
        from http.client import HTTPConnection
        from urllib.parse import urlsplit

        found = urlsplit(str(self.status["gateway"] or ""))
        if not found.hostname:
            raise Failed("the gateway does not listen")
        asked = HTTPConnection(found.hostname, found.port, timeout=_WITHIN)
        try:
            asked.request("GET", "/readyz")
            code = asked.getresponse().status
        except OSError as problem:
            if problem.errno != errno.ENETUNREACH:
                raise
            raise Failed(
                f"{found.hostname} cannot be reached: the loopback interface is down. "
                "Bring it up (ip link set lo up), or do without: dragoman daemon --no-gateway"
            ) from problem
        finally:
            asked.close()
        if code != 200:
            raise Failed(f"the gateway answered {code}")

    def sandbox(self) -> None:
        place = os.path.join(self.config, "written-by-a-tool")
        said = self.command(
            "run", f"run echo x > inside; echo x > {shlex.quote(place)}", "--approve", "all"
        )
        if not os.path.exists(os.path.join(self.work, "inside")):
            raise Failed(f"a command of the agent cannot write in its folder: {said[-300:]}")
        if os.path.exists(place):
            raise Failed("a command of the agent wrote outside its folder; see: dragoman doctor")

    def kill(self) -> None:
        self.end("kill")
        self.start()
        found = json.loads(self.command("sessions", "--json"))["sessions"]
        if self.session not in [one["id"] for one in found]:
            raise Failed("a session is gone after the daemon was killed")

    def stop(self) -> None:
        if self.process is None:
            raise Failed("it does not run")
        self.command("stop")
        self.end("wait")


def run(args: Args) -> int:
    """One row per part; goes on after a failure."""
    rows: list[dict[str, Any]] = []
    with leaving_in_order(), short_folder() as folder:
        trial = Trial(os.path.realpath(folder))
        steps: list[tuple[str, Callable[[], None]]] = [
            ("the daemon starts", trial.start),
            ("a turn with a tool", trial.demo),
            ("the session is kept", trial.sessions),
            ("ZeroClaw", trial.zeroclaw),
            ("ACP", trial.acp),
            ("zot", trial.zot),
            ("HumanLayer sees the same session", trial.humanlayer),
            ("OpenClawOS", trial.openclawos),
            ("the gateway", trial.gateway),
            ("the sandbox holds", trial.sandbox),
            ("nothing is lost by a kill", trial.kill),
            ("the daemon ends", trial.stop),
        ]
        try:
            for name, step in steps:
                rows.append(_try(name, step))
                if not args.json:
                    _show(rows[-1])
                if trial.process is None and name == steps[0][0]:
                    break
        finally:
            trial.end("kill")
    good = all(row["ok"] for row in rows)
    if args.json:
        say.plain_json({"ok": good, "rows": rows})
    else:
        say.out("Everything works here." if good else "Something does not work: dragoman doctor")
    return 0 if good else 1


def _without_ours() -> dict[str, str]:
    """The environment without what would lead a host, or one of its clients, elsewhere."""
    places = {name for one in REGISTRY.all() for name in one.env}
    return {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(("DRAGOMAN_", "ZEROCLAW_")) and name not in places
    }


@contextmanager
def _ended_after(seconds: float, process: "subprocess.Popen[str]") -> "Iterator[None]":
    """A process that takes longer is ended, so that nobody reads from it for ever."""
    timer = Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _try(name: str, step: Callable[[], None]) -> dict[str, Any]:
    began = time.monotonic()
    problem = ""
    try:
        step()
    except (Failed, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as found:
        problem = str(found) or type(found).__name__
    seconds = round(time.monotonic() - began, 2)
    return {"part": name, "ok": not problem, "seconds": seconds, "problem": problem}


def _show(row: dict[str, Any]) -> None:
    mark = say.style("ok   ", "green") if row["ok"] else say.style("FAIL ", "red")
    say.out(f"{mark} {row['part']} ({row['seconds']} s)")
    if row["problem"]:
        say.out(f"      {say.clean(row['problem'])}")
    sys.stdout.flush()  # the rest takes its time
