"""Our agent as other projects' clients start it, and what they said to each other."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.dialects.acp.oracle import SCHEMAS, check

NODE = Path(__file__).parent / "node"
AGENT = str(Path(sys.executable).with_name("dragoman"))

needs_node = pytest.mark.skipif(
    not SCHEMAS.exists() and os.environ.get("CI") != "true", reason="needs make setup-node"
)


class Scene:
    """A home of its own, a project, and the log of everything that was said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.log = folder / "lines.log"

    @property
    def command(self) -> list[str]:
        recorder = str(Path(__file__).with_name("recorder.py"))
        return [sys.executable, recorder, str(self.log), AGENT, "acp"]

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "DRAGOMAN_CONFIG_DIR": str(self.folder / "config"),
        }

    def lines(self) -> list[tuple[str, dict[str, Any]]]:
        """Who said what: ("A" or "C", message)."""
        found = []
        for line in self.log.read_text().splitlines():
            mark, _, text = line.partition(" ")
            if mark in "AC":
                found.append((mark, json.loads(text)))
        return found

    def exits(self) -> list[int]:
        rows = self.log.read_text().splitlines()
        return [int(row[2:]) for row in rows if row.startswith("X ")]

    def judge(self, version: str = "v1") -> None:
        """Every line of ours is valid by the official schema."""
        asked: dict[Any, str] = {}
        count = 0
        for mark, message in self.lines():
            if mark == "C":
                if "method" in message and "id" in message:
                    asked[message["id"]] = message["method"]
            else:
                check(message, asked, version)
                count += 1
        assert count > 3

    def updates(self) -> list[dict[str, Any]]:
        return [
            message["params"]["update"]
            for mark, message in self.lines()
            if mark == "A" and message.get("method") == "session/update"
        ]
