"""Signing in to an MCP server: a browser that follows the redirects of a little server."""

import asyncio
import http.client
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.tools.test_mcp_auth import TOKEN, Office

from dragoman.engine.faults import BadInput, ProviderFailed
from dragoman.tools.mcp import McpConnection, McpTools, read_server
from dragoman.tools.mcp_auth import login


class Desk(Office):
    """An office that registers clients and gives codes to humans."""

    refuse = False

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Any:
        asked = urlsplit(path)
        if "oauth-authorization-server" in path or "openid" in path:
            return 200, "", {
                "issuer": self.base, "token_endpoint": f"{self.base}/token",
                "authorization_endpoint": f"{self.base}/authorize",
                "registration_endpoint": f"{self.base}/register",
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
            }  # fmt: skip
        if asked.path == "/register":
            import json

            return 201, "", {**json.loads(body), "client_id": "c-1"}
        if asked.path == "/authorize":
            given = {name: values[0] for name, values in parse_qs(asked.query).items()}
            said = "error=access_denied" if self.refuse else "code=the-code"
            where = f"{given['redirect_uri']}?{said}&state={given['state']}"
            return 302, f"location: {where}\r\n", {}
        return super().answer(method, path, headers, body)


@pytest.fixture
async def desk():
    made = Desk()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()


def browse(address: str) -> None:
    """Follow an address and its redirect, as a browser does."""
    for _ in range(2):
        parts = urlsplit(address)
        link = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        link.request("GET", f"{parts.path}?{parts.query}")
        answer = link.getresponse()
        answer.read()
        address = answer.headers.get("location", "")
        link.close()
        if not address:
            return


def human(address: str) -> None:
    asyncio.get_running_loop().run_in_executor(None, browse, address)


async def test_a_human_signs_in_once_and_the_host_goes_on_with_it(desk: Desk, tmp_path: Path):
    tokens = str(tmp_path / "tokens")
    assert await login("desk", f"{desk.base}/mcp", tokens, human) == 1
    (grant,) = desk.grants
    assert grant["code"] == ["the-code"] and "code_verifier" in grant
    assert all(file.stat().st_mode & 0o077 == 0 for file in Path(tokens).iterdir())
    notes: list[Any] = []
    server = read_server({"name": "desk", "url": f"{desk.base}/mcp"})
    one = McpConnection(server, lambda *note: notes.append(note), tokens=tokens)
    tools = McpTools([one], None)
    try:
        await tools.ready(60)
        assert [spec.name for spec in tools.specs()] == ["mcp__desk__hello"], notes
    finally:
        await tools.close()
    assert len(desk.grants) == 1


async def test_a_token_that_went_bad_asks_for_a_human(desk: Desk, tmp_path: Path):
    tokens = str(tmp_path / "tokens")
    await login("desk", f"{desk.base}/mcp", tokens, human)
    for file in Path(tokens).glob("*.json"):
        file.write_text(file.read_text().replace(TOKEN, "stale"))
    notes: list[Any] = []
    server = read_server({"name": "desk", "url": f"{desk.base}/mcp"})
    one = McpConnection(server, lambda *note: notes.append(note), tokens=tokens)
    tools = McpTools([one], None)
    try:
        await tools.ready(60)
        assert tools.specs() == [] and "dragoman mcp login desk" in notes[0][1]
    finally:
        await tools.close()


async def test_a_refusal_and_a_server_without_an_address_are_told(desk: Desk, tmp_path: Path):
    desk.refuse = True
    with pytest.raises(ProviderFailed, match="access_denied"):
        await login("desk", f"{desk.base}/mcp", str(tmp_path), human)
    with pytest.raises(BadInput, match="not on the network"):
        await login("desk", "", str(tmp_path), human)


async def test_a_sign_in_that_is_interrupted_ends_at_once(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is connected yet, so there is nobody to say goodbye to."""
    monkeypatch.setattr("dragoman.tools.mcp._GOODBYE_SECONDS", 120.0)
    shown = asyncio.Event()
    signing = asyncio.ensure_future(
        login("desk", f"{desk.base}/mcp", str(tmp_path), lambda _: shown.set())
    )
    async with asyncio.timeout(60):
        await shown.wait()
        signing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await signing
