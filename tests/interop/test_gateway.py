"""Other projects' clients through the gateway: the TypeScript SDK, and acpx by the bridge."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return made.stdout.split()[-1]


def talk(*words: str, client: str = "ts_ws_client.mjs") -> dict[str, Any]:
    done = subprocess.run(
        [str(NODE / "node_modules/.bin/node"), str(NODE / client), *words],
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("scheme", ["ws", "http"])
def test_the_typescript_sdk_speaks_to_the_gateway(
    daemon: Daemon, tmp_path: Path, scheme: str
) -> None:
    address = json.loads((daemon.data / "gateway.json").read_text())["address"]
    url = f"{address.replace('http', scheme)}/acp?token={new_token(daemon.folder)}"
    work = tmp_path / "work"
    work.mkdir()
    found = talk(str(work), url)
    assert found["version"] == 1 and found["stop"] == "end_turn"
    assert found["asked"] == ["Approve bash?"] and (work / "made.txt").exists()
    assert {"agent_message_chunk", "tool_call", "tool_call_update"} <= set(found["updates"])
    later = talk(str(work), url, found["session"])
    assert later["updates"].count("user_message_chunk") == 2
    assert {"tool_call", "tool_call_update"} <= set(later["updates"])


needs_editor = pytest.mark.skipif(
    not (NODE / "node_modules/use-acp").exists() and os.environ.get("CI") != "true",
    reason="needs make setup-node",
)


@needs_editor
def test_a_notebook_editor_works_over_the_websocket(daemon: Daemon, tmp_path: Path) -> None:
    """marimo's own client, which has an SDK of a year ago and refuses what that did not know."""
    address = json.loads((daemon.data / "gateway.json").read_text())["address"]
    url = f"{address.replace('http', 'ws')}/acp?token={new_token(daemon.folder)}"
    work = tmp_path / "work"
    work.mkdir()
    found = talk(str(work), url, client="editor_client.mjs")
    assert found["stop"] == "end_turn" and found["load"] is True and not found["errors"]
    assert found["asked"] == ["Approve bash?"] and (work / "made.txt").exists()
    assert [one["status"] for one in found["calls"]].count("completed") >= 1
    assert "20" in found["text"] and found["mode"] == "readonly"
    assert {"compact", "status"} <= set(found["commands"]) and "plan" in found["kinds"]
    later = talk(str(work), url, found["session"], client="editor_client.mjs")
    assert "20" in later["text"] and later["mode"] == "readonly" and not later["errors"]
    assert {"tool_call", "tool_call_update", "plan"} <= set(later["kinds"])


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
