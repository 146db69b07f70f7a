"""acpx, a command line client of another project, drives `dragoman acp`."""

import json
import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from .acp_agent import NODE, Scene, needs_node

pytestmark = [pytest.mark.interop, needs_node]


class Acpx:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def words(self, *words: str) -> list[str]:
        program = [
            str(NODE / "node_modules/.bin/node"),
            str(NODE / "node_modules/acpx/dist/cli.js"),
        ]
        return [*program, "--agent", shlex.join(self.scene.command), *words]

    @property
    def env(self) -> dict[str, str]:
        bin = str(NODE / "node_modules/.bin")
        return {**self.scene.env, "PATH": f"{bin}:{os.environ['PATH']}"}

    def run(self, *words: str, code: int = 0) -> str:
        if words[0] != "cancel":
            self.wait_alone()
        done = subprocess.run(
            self.words(*words), env=self.env, cwd=self.scene.work, capture_output=True,
            text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def wait_alone(self) -> None:
        """Until its background process has left: one that is leaving may drop what it is asked."""
        queues = Path(self.env["HOME"]) / ".acpx" / "queues"
        deadline = time.monotonic() + 60
        while list(queues.glob("*.lock")):
            assert time.monotonic() < deadline, "its background process does not leave"
            time.sleep(0.05)


def test_one_shot_with_permission_allowed_and_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    acpx = Acpx(scene)
    acpx.run("--format", "json", "--approve-all", "exec", "run touch made.txt")
    assert (scene.work / "made.txt").exists()
    acpx.run("--format", "json", "--deny-all", "exec", "run touch other.txt", code=5)
    assert not (scene.work / "other.txt").exists()
    acpx.run("--format", "json", "exec", "count to 20")
    assert any("20" in json.dumps(update) for update in scene.updates())
    scene.judge()


@pytest.mark.alone  # acpx gives its own helper a few seconds to begin
def test_a_named_session_over_several_processes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    acpx = Acpx(scene)
    acpx.run("sessions", "new", "--name", "w1")
    acpx.run("--approve-all", "--ttl", "1", "prompt", "-s", "w1", "say the first word")
    acpx.run("--approve-all", "--ttl", "1", "prompt", "-s", "w1", "say the second word")
    said = [message for mark, message in scene.lines() if mark == "C"]
    opened = [one for one in said if one.get("method") == "session/new"]
    assert len(opened) == 1  # every later process took the session up again
    assert any(one.get("method") in ("session/resume", "session/load") for one in said)
    acpx.run("set-mode", "-s", "w1", "full")
    acpx.run("set", "-s", "w1", "model", "demo/demo")
    acpx.run("sessions", "list")
    long = subprocess.Popen(
        acpx.words("--ttl", "1", "prompt", "-s", "w1", "count slowly to 5000"),
        env=acpx.env, cwd=scene.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert long.stdout is not None and long.stdout.read(1)
        deadline = time.monotonic() + 60
        while '"count slowly' not in scene.log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        acpx.run("cancel", "-s", "w1")
        out, _ = long.communicate(timeout=60)
        assert b"cancelled" in out and long.returncode == 0
    finally:
        if long.poll() is None:
            long.kill()
    acpx.run("sessions", "close", "w1")
    scene.judge()
