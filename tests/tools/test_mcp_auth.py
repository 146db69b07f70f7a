"""OAuth for MCP servers: client credentials against a real little authorization server."""

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.tools.test_mcp import connect

from dragoman.engine.faults import BadInput
from dragoman.tools.mcp import read_server
from dragoman.tools.mcp_auth import TokenFile, auth_of

TOKEN = "tok-123"


class Office:
    """An authorization server and a guarded MCP server in one, as little as will do."""

    def __init__(self) -> None:
        self.grants: list[dict[str, list[str]]] = []
        self.base = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                method, path, _ = line.decode().split(" ", 2)
                headers: dict[str, str] = {}
                while (more := (await reader.readline()).decode().strip()) != "":
                    name, _, value = more.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                code, extra, answer = self.answer(method, path, headers, body)
                data = json.dumps(answer).encode() if answer is not None else b""
                head = f"HTTP/1.1 {code} X\r\ncontent-type: application/json\r\n{extra}"
                writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Any:
        if "oauth-protected-resource" in path:
            said: Any = {"resource": f"{self.base}/mcp", "authorization_servers": [self.base]}
            return 200, "", {**said, "scopes_supported": ["mcp.read"]}
        if "well-known" in path:
            return 200, "", {
                "issuer": self.base, "token_endpoint": f"{self.base}/token",
                "authorization_endpoint": f"{self.base}/authorize",
                "response_types_supported": ["code"],
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            }  # fmt: skip
        if path == "/token":
            self.grants.append(parse_qs(body.decode()))
            return 200, "", {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}
        if headers.get("authorization") != f"Bearer {TOKEN}":
            where = f"{self.base}/.well-known/oauth-protected-resource/mcp"
            return 401, f'www-authenticate: Bearer resource_metadata="{where}"\r\n', {}
        return self.mcp(method, body)

    def mcp(self, method: str, body: bytes) -> Any:
        if method != "POST":
            return 405, "", {}
        asked = json.loads(body)
        if "id" not in asked:
            return 202, "", None
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": asked.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}}, "serverInfo": {"name": "o", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]},
        }  # fmt: skip
        if asked["method"] not in results:
            error = {"code": -32601, "message": "no"}
            return 200, "", {"jsonrpc": "2.0", "id": asked["id"], "error": error}
        return 200, "", {"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}


@pytest.fixture
async def office():
    made = Office()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()


async def test_a_token_is_fetched_kept_and_used_again(office: Office, tmp_path: Path) -> None:
    from dragoman.tools.mcp import McpConnection, McpTools

    given = {"name": "office", "url": f"{office.base}/mcp", "oauth_client_id": "me",
             "oauth_client_secret": "s3cret", "oauth_issuer": office.base}  # fmt: skip
    tokens = str(tmp_path / "tokens")
    notes: list[Any] = []
    for _ in range(2):
        one = McpConnection(read_server(given), lambda *note: notes.append(note), tokens=tokens)
        tools = McpTools([one], None)
        try:
            await tools.ready(60)
            assert [spec.name for spec in tools.specs()] == ["mcp__office__hello"], notes
        finally:
            await tools.close()
    (grant,) = office.grants  # the second connection used what the first had kept
    assert grant["grant_type"] == ["client_credentials"] and grant["scope"] == ["mcp.read"]
    (file,) = os.listdir(tokens)
    mode = stat.S_IMODE(os.stat(os.path.join(tokens, file)).st_mode)
    assert mode == 0o600 and stat.S_IMODE(os.stat(tokens).st_mode) == 0o700


async def test_without_a_client_the_door_stays_shut_and_it_is_noted(office: Office) -> None:
    notes: list[Any] = []
    tools = connect([{"name": "office", "url": f"{office.base}/mcp"}],
                    lambda *note: notes.append(note))  # fmt: skip
    try:
        await tools.ready(60)
        assert tools.specs() == [] and "office could not be reached" in notes[0][0]
    finally:
        await tools.close()


async def test_odd_token_files_and_settings(tmp_path: Path) -> None:
    store = TokenFile(str(tmp_path), "a", "http://x")
    assert await store.get_tokens() is None
    Path(store._path).write_text("{broken")
    assert await store.get_tokens() is None
    given = {"name": "a", "url": "http://x", "oauth_client_id": "me"}
    with pytest.raises(BadInput, match="oauth_issuer"):
        auth_of(read_server(given), str(tmp_path))
