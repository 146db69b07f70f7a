"""The official TypeScript SDK's client holds whole conversations with `dragoman acp`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .acp_agent import NODE, Scene, needs_node

pytestmark = [pytest.mark.interop, needs_node]


def talk(scene: Scene, *words: str, client: str = "ts_client.mjs") -> dict[str, Any]:
    done = subprocess.run(
        [str(NODE / "node_modules/.bin/node"), str(NODE / client), str(scene.work),
         *words, "--", *scene.command],
        env={**scene.env, "PATH": os.environ["PATH"]}, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def last(updates: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return [one for one in updates if one["sessionUpdate"] == kind][-1]


def test_a_whole_day_with_the_typescript_client(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    found = talk(scene)
    assert found["version"] == 1
    chunks = [
        u for u in found["streamed"]["updates"] if u["sessionUpdate"] == "agent_message_chunk"
    ]
    assert found["streamed"]["stop"] == "end_turn" and len(chunks) >= 2
    assert found["asked"] == ["Approve bash?", "Approve bash?"]
    assert last(found["allowed"]["updates"], "tool_call_update")["status"] == "completed"
    assert last(found["refused"]["updates"], "tool_call_update")["status"] == "failed"
    assert found["cancelled"] == "cancelled"
    assert [one["sessionId"] for one in found["listed"]["sessions"]] == [found["session"]]
    assert found["exit"] == 0
    later = talk(scene, found["session"])
    kinds = [one["sessionUpdate"] for one in later["replayed"]]
    assert kinds[:2] == ["user_message_chunk", "agent_message_chunk"]
    assert kinds.count("tool_call") == kinds.count("tool_call_update") == 2
    assert later["again"]["stop"] == "end_turn"
    scene.judge()
    assert scene.exits() == [0, 0]


def test_version_2_with_the_typescript_client(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    found = talk(scene, client="ts_client2.mjs")
    assert found["version"] == 2
    assert found["counted"]["stop"] == found["ran"]["stop"] == "end_turn"
    ids = [one["messageId"] for one in found["users"]]
    assert ids == [found["counted"]["id"], found["ran"]["id"]]
    assert found["asked"] == ["command"]
    assert {"terminal_update", "tool_call_update", "agent_message_chunk"} <= set(found["kinds"])
    assert found["replayed"].count("user_message") == 2 and found["exit"] == 0
    scene.judge("v2")
