"""MCP servers that an ACP client lends, with the real library on our side."""

import json
from pathlib import Path
from typing import Any

from tests.dialects.acp.talking import Talker

from dragoman.dialects.acp import Desk
from dragoman.dialects.acp.mcp import LentMessage, lend, message
from dragoman.host.compose import compose
from dragoman.tools.mcp_lent import lent

SAY = {"type": "say", "text": "done"}
TOOL = {"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}


class Lender:
    """Answers as an MCP server would; what it was asked is kept."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        method = params["method"]
        self.asked.append(method)
        if method == "initialize":
            version = params["params"]["protocolVersion"]
            info = {"name": "lent", "version": "1"}
            made = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            return {"result": made}
        if method == "tools/list":
            return {"result": {"tools": [TOOL]}}
        if method == "tools/call":
            return {"result": {"content": [{"type": "text", "text": "hello from the editor"}]}}
        return {"error": {"code": -32601, "message": "no such method"}}


async def test_a_tool_of_a_lent_server_is_used(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    parts = [{"type": "call", "name": "mcp__ed__greet", "args": {}}]
    script.write_text(json.dumps({"turns": [{"parts": parts}, {"parts": [SAY]}]}))
    (tmp_path / "config.toml").write_text(
        f'[agents.default]\nmodel = "scripted/{script}"\nmode = "full"\n'
    )
    host = await compose(config_dir=str(tmp_path))
    try:
        client = Talker(Desk(host.door, host.settings.acp))
        said = await client.greet("editor", fs={})
        assert said["agentCapabilities"]["mcpCapabilities"]["acp"] is True
        lender = Lender()
        client.answers["mcp/message"] = lender
        server = {"type": "acp", "name": "ed", "serverId": "s1"}
        made = await client.call("session/new", {"cwd": str(tmp_path), "mcpServers": [server]})
        while "tools/list" not in lender.asked:
            await client.next()
        found = host.door.live(made["sessionId"])
        assert found is not None
        await client.prompt(made["sessionId"])
        assert lender.asked == ["initialize", "tools/list", "tools/call"]
        last = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"][-1]
        assert last["rawOutput"] == {"output": "hello from the editor"}
        wrong = {"cwd": str(tmp_path), "mcpServers": [{"type": "acp", "name": "x"}]}
        assert (await client.refused("session/new", wrong))["code"] == -32602
    finally:
        await host.close()


def test_a_server_that_nobody_lent_is_heard_by_nobody() -> None:
    class Conn:
        lent: dict[str, Any] = {}

    heard: list[str] = []
    conn: Any = Conn()
    made = lend(conn, [{"type": "acp", "name": "a", "serverId": "1"}, {"name": "b", "url": "u"}])
    assert made[0]["type"] == "acp" and made[0]["channel"] and made[1] == {"name": "b", "url": "u"}
    conn.lent["1"].on_told(lambda method, params: heard.append(method))
    message(conn, LentMessage("1", "r", "notifications/x"))
    message(conn, LentMessage("2", "r", "notifications/y"))
    assert heard == ["notifications/x"]


async def test_what_the_server_says_beside_reaches_us_and_failures_are_told() -> None:
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCRequest

    class Gone:
        told: Any = None

        def on_told(self, told: Any) -> None:
            self.told = told

        async def ask(self, id: str, method: str, params: Any) -> dict[str, Any]:
            raise ConnectionError("the client is gone")

    channel = Gone()
    async with lent(channel) as (heard, said):
        channel.told("notifications/tools/list_changed", None)
        first = (await heard.receive()).message
        assert first.method == "notifications/tools/list_changed"
        await said.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")))
        answer = (await heard.receive()).message
        assert answer.error.message == "the client is gone"
    assert channel.told is None
