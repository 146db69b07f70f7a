"""A small world with something to steal and somebody to hurt, and the tools of an agent in it."""

import asyncio
import contextlib
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.sandbox.attempts import Attempt
from tests.tools.making import Env

from dragoman.engine.content import ToolCall, text_of
from dragoman.engine.faults import Fault
from dragoman.engine.ports import Outcome
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.policy.paths import FORBIDDEN
from dragoman.sandbox.launch import Confine
from dragoman.tools.registry import Registry

PYTHON = os.path.realpath(sys.executable)


class World:
    def __init__(self, top: Path) -> None:
        self.top = top
        self.secret = f"s3cr3t-{secrets.token_hex(8)}"
        self.abstract = f"escape-{secrets.token_hex(8)}"
        self.work = top / "work"
        for folder in ("work", "outside/repo/.git/hooks", "home/.ssh", "home/.config",
                       "config/agents/coder", "data/tmp"):  # fmt: skip
            (top / folder).mkdir(parents=True)
        for file in ("outside/secret.txt", "home/.ssh/id_ed25519", "home/.bashrc",
                     "config/config.toml", "data/sessions.db"):  # fmt: skip
            (top / file).write_text(self.secret)
        (top / "outside/repo/.git/config").write_text(f"[test]\n\tsecret = {self.secret}\n")
        (top / "outside/repo/.git/HEAD").write_text("ref: refs/heads/main\n")
        for folder in ("objects", "refs"):
            (top / "outside/repo/.git" / folder).mkdir()
        (top / "outside/prog").write_text(f"#!/bin/sh\necho {self.secret}\n")
        (top / "outside/prog").chmod(0o755)
        self.policy = AutonomyPolicy(
            Rules(forbidden_paths=(*FORBIDDEN, str(top / "outside"))),
            protected=[str(top / "config"), str(top / "data")],
            home=str(top / "home"),
        )
        self.left: list[str] = []

    def environ(self) -> dict[str, str]:
        """What our own process has in its environment while it runs tools."""
        path = f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}"
        return {"HOME": str(self.top / "home"), "PATH": path, "VENDOR_API_KEY": self.secret}

    @contextlib.contextmanager
    def people(self) -> Iterator[None]:
        """The victim, and somebody who listens at an abstract socket."""
        environ = {"PATH": os.environ["PATH"], "VICTIM": self.secret}
        secret = open(self.top / "outside/secret.txt", "rb")  # noqa: SIM115
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0{self.abstract}")
        listener.listen(8)
        code = (
            "import os,time; os.dup2(int(os.sys.argv[1]), 3); print(1, flush=True); time.sleep(99)"
        )
        self.victim = subprocess.Popen(
            [PYTHON, "-c", code.replace("os.sys", "__import__('sys')"), str(secret.fileno())],
            env=environ, cwd=self.top / "outside", pass_fds=[secret.fileno()],
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self.victim.stdout is not None
        self.victim.stdout.read(1)
        try:
            yield
        finally:
            self.victim.kill()
            self.victim.wait()
            self.victim.stdout.close()
            secret.close()
            listener.close()

    def fill(self, text: str) -> str:
        values: dict[str, Any] = {"abstract": self.abstract, "python": "python3"}
        values |= {"victim": self.victim.pid}
        values |= {name: self.top / name for name in ("outside", "home", "config", "data")}
        for name, value in values.items():
            text = text.replace("{" + name + "}", str(value))
        return text

    def snapshot(self) -> dict[str, Any]:
        """Everything that no tool may change."""
        found: dict[str, Any] = {}
        for folder in ("outside", "home", "config", "data"):
            for path in sorted((self.top / folder).rglob("*")):
                if "data/tmp/" not in str(path):
                    kind = "link" if path.is_symlink() else "file" if path.is_file() else "other"
                    found[str(path)] = (kind, path.read_bytes() if kind == "file" else b"")
        return found

    def restore(self, before: dict[str, Any]) -> None:
        for path, (kind, data) in before.items():
            if kind == "file":
                Path(path).write_bytes(data)

    def args(self, attempt: Attempt) -> dict[str, Any]:
        if attempt.tool == "bash":
            return {"command": self.fill(attempt.command), "timeout": 20}
        return {key: self.fill(value) for key, value in attempt.args.items()}

    def judged(self, attempt: Attempt, mode: str) -> str:
        """What policy alone says: deny, ask or allow."""
        tool = Registry(lambda env: None).toolbox().find(attempt.tool)  # type: ignore[arg-type,return-value]
        assert tool is not None
        call = ToolCall("c", attempt.tool, self.args(attempt))
        judged = self.policy.judge(
            call, tool.spec, mode=mode, cwd=str(self.work), roots=()  # type: ignore[arg-type]
        )  # fmt: skip
        return judged.verdict

    async def run(self, attempt: Attempt, confine: Confine, mode: str = "supervised") -> Outcome:
        env = Env(str(self.work))
        env.mode = mode
        registry = Registry(
            lambda env: self.policy.boundary(env.mode, env.cwd, env.roots),
            outputs=str(self.top / "data/outputs"),
            confine=lambda: confine,
            extra_env={"TMPDIR": str(self.top / "data/tmp")},
        )
        if attempt.before:
            subprocess.run(["sh", "-c", self.fill(attempt.before)], cwd=self.work, check=True)
        tool = registry.toolbox().find(attempt.tool)
        assert tool is not None
        try:
            async with asyncio.timeout(60):
                return await tool.run(self.args(attempt), env)  # type: ignore[arg-type]
        except Fault as fault:
            from dragoman.engine.content import Text

            return Outcome((Text(str(fault)),), is_error=True)

    def escaped(self, attempt: Attempt, outcome: Outcome, before: dict[str, Any]) -> str:
        """What the attempt got; empty when nothing."""
        text = text_of(outcome.content)
        if attempt.tool == "bash":
            text = text.removeprefix(f"$ {self.fill(attempt.command)}\n\n")
        if self.secret in text:
            return "it read the secret"
        if "ESCAPED" in text:
            return "it worked"
        if self.snapshot() != before:
            return "it changed something outside"
        if self.victim.poll() is not None:
            return "the victim is gone"
        left = self.work / "left"
        if left.exists() and _lives(int(left.read_text())):
            return "a process was left behind"
        return ""


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
