"""A daemon for tests of commands, and the commands as their users run them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

WITHIN = 90


class Living:
    """One daemon process with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config"
        self.work = folder / "work"
        self.config.mkdir()
        self.work.mkdir()
        self.env = {k: v for k, v in os.environ.items() if "API_KEY" not in k}
        self.env |= {"DRAGOMAN_agents__default__model": "demo/demo", "NO_COLOR": "1"}
        self.env |= {"HOME": str(folder), "DRAGOMAN_CONFIG_DIR": str(self.config)}
        self.process: subprocess.Popen[str] | None = None

    @property
    def socket(self) -> str:
        return str(self.config / "data" / "daemon.sock")

    def start(self) -> None:
        self.process = self.spawn("daemon", "--no-gateway")
        assert self.process.stderr is not None
        while (line := self.process.stderr.readline()).strip() != "ready":
            assert line, "the daemon did not start"

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.communicate(timeout=WITHIN)
            self.process = None

    def spawn(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "dragoman", *words], env=self.env, cwd=self.work, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(
        self, *words: str, cwd: Path | None = None, within: float = WITHIN
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dragoman", *words], env=self.env, cwd=cwd or self.work,
            text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=within,
        )  # fmt: skip

    def says(self, *words: str) -> str:
        """What a command prints; it must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.says(*words, "--json"))
