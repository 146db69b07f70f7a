"""`any.sock`: the first line decides, and from then on it is that protocol, nothing else."""

import asyncio
import json
from typing import Any

import pytest
from tests.cross.house import House, Speaker


async def test_all_five_protocols_on_one_socket_in_one_session(house: House) -> None:
    acp = await house.acp("any")
    made = await acp.call("session/new", {"cwd": str(house.work), "mcpServers": []})
    session = made["sessionId"]
    zeroclaw = await house.zeroclaw("any")
    listed = await zeroclaw.call("session/list", {})
    assert session in str(listed)
    zot = await house.zot(session, "any")
    humanlayer = await house.speaker("any")
    assert (await humanlayer.call("health"))["status"] == "ok"
    rows = (await humanlayer.call("listSessions"))["sessions"]
    assert [row["id"] for row in rows] == [session]
    app = await house.app("any", hooks={"subscribes": ["agent_completed"]})
    assert (await app.request("session.get", {"key": session}))["session"]["key"] == session
    await zot.command("prompt", message="what is dragoman")
    told = await app.until(lambda m: m.get("type") == "event")
    assert told["event"] == "hook:agent_completed"
    clients = (await zeroclaw.call("dragoman/clients"))["clients"]
    assert {one["dialect"] for one in clients} == {
        "acp", "zeroclaw", "zot", "humanlayer", "openclawos",
    }  # fmt: skip


FIRST_LINES: list[tuple[str, Any, Any]] = [
    ("zeroclaw", {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                  "params": {"protocolVersion": 1}}, "serverVersion"),
    ("zeroclaw", {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                  "params": {"protocol_version": 1, "env": {}}}, "server_version"),
    ("acp", {"jsonrpc": "2.0", "id": 1, "method": "initialize",
             "params": {"protocolVersion": 1, "clientCapabilities": {}}}, "agentCapabilities"),
    ("acp", {"jsonrpc": "2.0", "id": 1, "method": "initialize"}, "agentCapabilities"),
    ("acp", {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {}}, "workspaceDir"),
    ("humanlayer", {"jsonrpc": "2.0", "id": 1, "method": "health"}, "version"),
    ("zot", {"id": "1", "type": "ping"}, "pong"),
    ("zot", {"id": "1", "type": "hello"}, "protocol_version"),
    ("openclawos", {"id": "1", "type": "request", "timestamp": 1, "method": "app.heartbeat",
                    "params": {}}, "requestId"),
    ("zeroclaw", {"jsonrpc": "2.0", "id": 1, "method": "status"}, "initialize"),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", FIRST_LINES, ids=lambda case: f"{case[0]}-{case[1].get('method', case[1].get('type'))}"
)
async def test_first_lines(house: House, case: tuple[str, Any, Any]) -> None:
    _, line, sign = case
    speaker = await house.speaker("any")
    speaker.send(line)
    answer = await speaker.until(lambda m: True)
    assert sign in str(answer), answer


@pytest.mark.parametrize("line", [b"nonsense", b"5", b"[]", b"\xff\xfe", b'{"a":'])
async def test_what_is_no_message_is_answered_and_the_connection_goes_on(
    house: House, line: bytes
) -> None:
    reader, writer = await asyncio.open_unix_connection(house.socket("any"))
    hello = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": 1}}
    try:
        writer.write(line + b"\n" + json.dumps(hello).encode() + b"\n")
        async with asyncio.timeout(60):
            refused = json.loads(await reader.readline())
            greeted = json.loads(await reader.readline())
    finally:
        writer.close()
        await writer.wait_closed()
    assert refused["error"]["code"] in (-32700, -32600) and refused["id"] is None
    assert greeted["id"] == 7 and "result" in greeted


async def test_a_connection_stays_what_it_was_taken_for(house: House) -> None:
    speaker: Speaker = await house.speaker("any")
    await speaker.command("hello")
    speaker.send({"jsonrpc": "2.0", "id": 1, "method": "health"})
    answer = await speaker.until(lambda m: m.get("type") == "response" and not m["success"])
    assert "jsonrpc" not in answer
