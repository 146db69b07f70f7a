"""Other projects' clients through the gateway: the TypeScript SDK, and acpx by the bridge."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.daemon.running import Daemon

from .acp_agent import AGENT, NODE, Scene, needs_node

pytestmark = [pytest.mark.interop, needs_node]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    folder = tmp_path / "config"
    folder.mkdir()
    with Daemon(folder, config="[gateway]\nport = 0\n", gateway=True) as running:
        yield running.wait_ready()


def new_token(folder: Path) -> str:
    made = subprocess.run(
        [AGENT, "token", "new", "--config-dir", str(folder)],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    return made.stdout.split()[-1]


def test_the_typescript_sdk_speaks_over_the_websocket(daemon: Daemon, tmp_path: Path) -> None:
    address = json.loads((daemon.data / "gateway.json").read_text())["address"]
    url = f"{address.replace('http', 'ws')}/acp?token={new_token(daemon.folder)}"
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [str(NODE / "node_modules/.bin/node"), str(NODE / "ts_ws_client.mjs"), str(work), url],
        capture_output=True, timeout=50,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["version"] == 1 and found["stop"] == "end_turn"
    assert found["asked"] == ["Approve bash?"] and (work / "made.txt").exists()
    assert {"agent_message_chunk", "tool_call", "tool_call_update"} <= set(found["updates"])


class Bridged(Scene):
    """The same scene, with the bridge in the agent's place."""

    @property
    def command(self) -> list[str]:
        recorder = str(Path(__file__).with_name("recorder.py"))
        return [sys.executable, recorder, str(self.log), AGENT, "acp-bridge"]


def test_acpx_works_through_the_bridge(daemon: Daemon, tmp_path: Path) -> None:
    from .test_acp_acpx import Acpx

    scene = Bridged(tmp_path)
    acpx = Acpx(scene)
    acpx.run("--format", "json", "--approve-all", "exec", "run touch made.txt")
    assert (scene.work / "made.txt").exists()
    acpx.run("sessions", "new", "--name", "w1")
    acpx.run("--approve-all", "--ttl", "1", "prompt", "-s", "w1", "say the first word")
    acpx.run("--approve-all", "--ttl", "1", "prompt", "-s", "w1", "say the second word")
    opened = [m for mark, m in scene.lines() if mark == "C" and m.get("method") == "session/new"]
    assert len(opened) == 2  # one for exec, one for the named session
    scene.judge()
    assert not [code for code in scene.exits() if code]
