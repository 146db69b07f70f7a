"""A hosted agent is like any other: opened and watched in one protocol, approved from another."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.compose import Composed, compose
from dragoman.host.desks import Desks
from dragoman.transports import memory

AGENT = str(Path(__file__).with_name("hosted_agent.py"))


class Client:
    """Any JSON-RPC dialect over a link in memory."""

    def __init__(self, desks: Desks, dialect: str) -> None:
        self.wire = memory.Client(desks.opener(dialect))
        self.seen: list[dict[str, Any]] = []
        self._last = 0

    def send(self, method: str, **params: Any) -> int:
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self.wire.send(json.dumps(request).encode())
        return self._last

    async def until(self, wanted: Any) -> dict[str, Any]:
        """The next message for which this holds; the others are kept."""
        async with asyncio.timeout(60):
            while True:
                message = json.loads(await self.wire.receive(60))
                if wanted(message):
                    return message
                self.seen.append(message)

    async def reply(self, number: int) -> Any:
        message = await self.until(lambda m: m.get("id") == number and "method" not in m)
        assert "error" not in message, message
        return message["result"]

    async def call(self, method: str, **params: Any) -> Any:
        return await self.reply(self.send(method, **params))


def update(kind: str) -> Any:
    return lambda m: m.get("method") == "session/update" and m["params"].get("type") == kind


@pytest.fixture
async def host(tmp_path: Path):
    (tmp_path / "state").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "config.toml").write_text(
        f'[agents.other]\nbackend = "acp"\ncommand = "{sys.executable}"\n'
        f"args = {[AGENT, str(tmp_path / 'state')]!r}\n"
    )
    made: Composed = await compose(config_dir=str(tmp_path))
    yield made
    await made.close()


async def test_approved_from_humanlayer_and_watched_from_zeroclaw(
    host: Composed, tmp_path: Path
) -> None:
    desks = Desks(host.door, host.settings)
    watcher, approver = Client(desks, "zeroclaw"), Client(desks, "humanlayer")
    await watcher.call("initialize", protocolVersion=1)
    await approver.call("Subscribe", event_types=["new_approval", "approval_resolved"])
    opened = await watcher.call("session/new", agentAlias="other", cwd=str(tmp_path / "work"))
    session = opened["sessionId"]
    prompt = watcher.send("session/prompt", sessionId=session, prompt="tool a.txt")

    asked = await watcher.until(update("approval_request"))
    assert asked["params"]["toolName"] == "file_edit"  # as its terminal knows it
    other = Client(desks, "humanlayer")  # one connection listens, another acts
    (approval,) = (await other.call("fetchApprovals", session_id=session))["approvals"]
    spec = approval["function_call"]["spec"]
    assert (spec["fn"], spec["kwargs"]) == ("edit", {"path": "a.txt"})
    decided = await other.call(
        "sendDecision", call_id=approval["call_id"], type="function_call", decision="approve"
    )
    assert decided["success"] is True

    result = await watcher.reply(prompt)
    assert (result["stopReason"], result["content"]) == ("end_turn", "Answered: yes.")
    assert (tmp_path / "work/a.txt").read_text() == "touched"
    kinds = [m["params"].get("type") for m in watcher.seen if m.get("method") == "session/update"]
    assert [k for k in kinds if k in ("tool_call", "tool_result")] == ["tool_call", "tool_result"]
    assert "agent_message_chunk" in kinds
    events = []
    for _ in range(2):
        message = await approver.until(lambda m: "event" in m.get("result", {}))
        events.append(message["result"]["event"])
    assert [event["type"] for event in events] == ["new_approval", "approval_resolved"]
    assert events[1]["data"]["approved"] is True

    # And the whole conversation can be read there afterwards.
    told = await other.call("getConversation", session_id=session)
    kinds = [event["event_type"] for event in told["events"]]
    assert kinds == ["message", "message", "tool_call", "tool_result", "message"]
    await desks.close()


async def test_opened_in_acp_and_denied_from_zeroclaw(host: Composed, tmp_path: Path) -> None:
    desks = Desks(host.door, host.settings)
    editor, phone = Client(desks, "acp"), Client(desks, "zeroclaw")
    await editor.call("initialize", protocolVersion=1, clientCapabilities={})
    await phone.call("initialize", protocolVersion=1)
    new = await editor.call("session/new", cwd=str(tmp_path / "work"), mcpServers=[])
    session = new["sessionId"]
    text = [{"type": "text", "text": "tool a.txt"}]
    prompt = editor.send("session/prompt", sessionId=session, prompt=text)
    asked = await editor.until(lambda m: m.get("method") == "session/request_permission")
    assert asked["params"]["toolCall"]["kind"] == "edit"
    (row,) = await host.door.asks(session)
    await phone.call("session/approve", sessionId=session, requestId=row.ask.id, decision="reject")
    result = await editor.reply(prompt)
    assert result["content"] == "Answered: no." and not (tmp_path / "work/a.txt").exists()
    withdrawn = [m for m in editor.seen if m.get("method") == "$/cancel_request"]
    assert withdrawn[0]["params"]["requestId"] == asked["id"]
    updates = [m["params"]["update"] for m in editor.seen if m.get("method") == "session/update"]
    calls = [u for u in updates if u["sessionUpdate"].startswith("tool_call")]
    assert [u["status"] for u in calls] == ["pending", "failed"]
    await desks.close()
