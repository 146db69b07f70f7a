"""A wide tour of `dragoman acp`, in both versions: every line by the strict published schemas.

Strict: nothing that the schemas do not name, at any depth, but for what the older family's document
asks for.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.dialects.acp.oracle import check_strictly
from tests.dialects.acp.talking import Talker, select

from .acp_agent import AGENT, Scene, needs_node

pytestmark = [pytest.mark.interop, needs_node]


class Pipe:
    """The way to a process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")

    async def receive(self, within: float) -> bytes:
        assert self._process.stdout is not None
        return await asyncio.wait_for(self._process.stdout.readline(), within * 4)


class Visitor(Talker):
    check = staticmethod(check_strictly)

    def connect(self, desk: Any, peer: Any) -> Any:
        return desk


@contextlib.asynccontextmanager
async def visiting(scene: Scene) -> AsyncIterator[Visitor]:
    process = await asyncio.create_subprocess_exec(
        AGENT, "acp", env=scene.env, cwd=scene.work, limit=64 << 20,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        visitor = Visitor(Pipe(process))  # type: ignore[arg-type]
        visitor.answers["session/request_permission"] = select("allow-once")
        visitor.answers["elicitation/create"] = lambda params: {
            "action": "accept", "content": {"answer": "red"},
        }  # fmt: skip
        yield visitor
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 60) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


SAID = (
    "count to 20", "think about the weather", "plan: read the notes, write a summary",
    'write "hello" to notes.txt', "edit notes.txt replace hello with goodbye", "read notes.txt",
    "run printf 'a\\377b\\n' && exit 3", "list the files", "search goodbye in .", "find *.txt",
    "read /etc/shadow-of-nothing", "ask me which colour: red, green or blue", "/status", "/compact",
    "/model demo/demo", "/nothing", "say once more",
)  # fmt: skip
CAN = {
    "fs": {"readTextFile": False}, "terminal": False, "plan": {}, "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
    "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
}  # fmt: skip


def kinds(visitor: Visitor) -> set[str]:
    return set(visitor.kinds())


@pytest.mark.parametrize("can", [{}, CAN])
async def test_version_1(tmp_path: Path, can: dict[str, Any]) -> None:
    scene = Scene(tmp_path)
    scene.folder.joinpath("other").mkdir()
    async with visiting(scene) as client:
        hello = await client.greet("tour", **can)
        assert bool(hello["authMethods"]) is bool(can)
        await client.call("auth/status")
        session = await client.new(str(scene.work))
        at = {"sessionId": session}
        for text in SAID:
            await client.prompt(session, [{"type": "text", "text": text}])
        failed = {**at, "prompt": [{"type": "text", "text": "fail"}]}
        assert (await client.refused("session/prompt", failed))["code"] == -32603
        waiting = client.ask("session/prompt", {**at, "prompt": "count slowly to 5000"})
        await client.update("agent_message_chunk")
        client.tell("session/cancel", at)
        assert (await client.reply(waiting))["result"]["stopReason"] == "cancelled"
        options = hello and await client.call("session/set_mode", {**at, "modeId": "full"})
        assert options == {}
        change = {**at, "configId": "mode", "value": "supervised"}
        await client.call("session/set_config_option", change)
        if can:
            flag = {**at, "configId": "auto_accept_edits", "type": "boolean", "value": True}
            await client.call("session/set_config_option", flag)
        await _care(client, session, scene)
        await client.call("session/close", at)
        there = {**at, "cwd": str(scene.work), "mcpServers": []}
        await client.call("session/load", there)
        await client.call("session/close", at)
        await client.call("session/resume", there)
        await _refusals(client)
        await client.call("session/delete", at)
        await client.call("logout")
        assert (await client.refused("session/new", {"cwd": "/"}))["code"] == -32000
        told = kinds(client)
        assert {"tool_call", "tool_call_update", "agent_thought_chunk", "usage_update",
                "session_info_update", "current_mode_update", "config_option_update",
                "user_message_chunk"} <= told  # fmt: skip
        more = {"plan_update", "compaction_update", "compaction_summary_chunk"}
        assert more <= told if can else not more & told
        assert len(client.heard) > 150


async def test_version_2(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.folder.joinpath("other").mkdir()
    async with visiting(scene) as client:
        await client.greet2(auth={"terminal": {}}, elicitation={"form": {}, "url": {}})
        await client.call("auth/status")
        session = await client.new2(str(scene.work))
        at = {"sessionId": session}

        async def say(text: str) -> dict[str, Any]:
            params = {**at, "prompt": [{"type": "text", "text": text}]}
            before = len(client.heard)
            await client.call("session/prompt", params)
            for message in client.heard[before:]:
                update = message.get("params", {}).get("update", {})
                if update.get("state") == "idle":
                    return update
            return await client.state("idle")

        for text in SAID:
            assert (await say(text))["stopReason"] == "end_turn", text
        assert (await say("fail"))["stopReason"] == "error"
        params = {**at, "prompt": [{"type": "text", "text": "count slowly to 5000"}]}
        await client.call("session/prompt", params)
        held = client.ask("session/prompt", params)
        client.tell("session/cancel", at)
        assert (await client.reply(held))["error"]["code"] == -32800
        change = {**at, "configId": "mode", "type": "id", "value": "readonly"}
        await client.call("session/set_config_option", change)
        await _care(client, session, scene)
        await client.call("session/close", at)
        there = {**at, "cwd": str(scene.work)}
        await client.call("session/resume", {**there, "replayFrom": {"type": "start"}})
        await client.call("session/close", at)
        await client.call("session/resume", there)
        await _refusals(client)
        await client.call("session/delete", at)
        await client.call("auth/logout")
        assert (await client.refused("session/new", {"cwd": "/"}))["code"] == -32000
        assert {"user_message", "agent_message", "agent_message_chunk", "agent_thought_chunk",
                "tool_call_update", "terminal_update", "terminal_output_chunk", "plan_update",
                "state_update", "usage_update", "session_info_update", "config_option_update",
                "compaction_update", "compaction_summary_chunk"} <= kinds(client)  # fmt: skip
        assert len(client.heard) > 150


async def _care(client: Visitor, session: str, scene: Scene) -> None:
    """What both versions can do with sessions that need not be active."""
    at = {"sessionId": session}
    made = await client.call("session/fork", {**at, "cwd": str(scene.work), "mcpServers": []})
    assert made["sessionId"] != session
    assert await client.call("session/set_title", {**at, "title": " A  name "}) == {
        "title": "A name"
    }
    assert (await client.call("session/status", at))["status"] == "open"
    other = {"sessionId": made["sessionId"]}
    await client.call("session/archive", other)
    for archived, count in (("exclude", 1), ("include", 2), ("only", 1)):
        found = await client.call("session/list", {"archived": archived})
        assert len(found["sessions"]) == count, archived
    await client.call("session/unarchive", other)
    assert await client.call("session/status", other) == {"status": "saved"}
    assert (await client.call("session/list", {"cwd": "/nowhere"}))["sessions"] == []


async def _refusals(client: Visitor) -> None:
    for method, params in (
        ("session/prompt", {"sessionId": "ghost", "prompt": []}), ("session/new", {"cwd": 5}),
        ("session/list", {"cursor": "x"}), ("session/list", {"archived": "x"}), ("_x/y", {}),
        ("session/set_config_option", {"sessionId": "ghost"}), ("session/set_title", {}),
        ("session/resume", {"sessionId": "ghost", "cwd": "/"}), ("session/status", {}),
        ("session/fork", {"sessionId": "ghost"}), ("nothing/such", None),
    ):  # fmt: skip
        assert (await client.refused(method, params))["code"] < 0
    client.end.send(b"{")
    assert (await client.next())["error"]["code"] == -32700
    client.end.send(json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "session/list"}]).encode())
    assert (await client.next())["error"]["code"] == -32600


FAMILY: list[Any] = [
    # A child plays the same script: its first call fails, since children have no children.
    {"parts": [{"type": "call", "name": "task", "args": {"prompt": "look", "title": "Looker"}}]},
    {"parts": [{"type": "say", "text": "I run it."},
               {"type": "call", "name": "bash", "args": {"command": "printf 'a\\377b\\n'"}}]},
    "done",
]  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
async def test_a_child_of_the_real_program(tmp_path: Path, version: int) -> None:
    scene = Scene(tmp_path)
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": FAMILY}))
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text(f'[agents.default]\nmodel = "scripted/{script}"\n')
    async with visiting(scene) as client:
        if version == 1:
            await client.greet("tour", subagents={})
            session = await client.new(str(scene.work))
            await client.prompt(session, [{"type": "text", "text": "go"}])
        else:
            await client.greet2()
            session = await client.new2(str(scene.work))
            prompt = [{"type": "text", "text": "go"}]
            await client.call("session/prompt", {"sessionId": session, "prompt": prompt})
            while not any(u.get("state") == "idle" for u in client.updates(session)):
                await client.next()
        told = [u for u in client.updates(session) if u["sessionUpdate"] == "subagent_update"]
        child = told[0]["sessionId"]
        assert told[0]["title"] == "Looker" and told[-1]["state"]["stopReason"] == "end_turn"
        kinds = [u["sessionUpdate"] for u in client.updates(child)]
        # Who is told late, on a busy machine, gets a message as a whole.
        assert kinds[0] == "session_message" and {"agent_message_chunk", "agent_message"} & {*kinds}
        await client.call("session/close", {"sessionId": session})
        before = len(client.heard)
        there = {"sessionId": session, "cwd": str(scene.work), "mcpServers": []}
        if version == 1:
            await client.call("session/load", there)
        else:
            await client.call("session/resume", {**there, "replayFrom": {"type": "start"}})
        again = [m["params"] for m in client.heard[before:] if m.get("method") == "session/update"]
        assert {one["sessionId"] for one in again} == {session, child}
