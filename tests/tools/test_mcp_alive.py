"""The death of an idle MCP server over HTTP is noticed, whether it offers a stream or not."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.tools.test_mcp import SERVER, STDIO, Env, connect, listening, ready

from dragoman.engine.content import text_of
from dragoman.engine.faults import BadInput
from dragoman.tools import mcp_alive
from dragoman.tools.mcp import McpTools

Noted = asyncio.Queue[tuple[str, str]]
STUCK = {**STDIO, "name": "far", "args": [SERVER, "stuck"], "timeout_secs": 0.5}


class Plain:
    """A server on HTTP that answers each request in its response, without streams."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pings: asyncio.Queue[str] = asyncio.Queue()
        self.session = "one"
        self.ping: dict[str, Any] | None = {"result": {}}  # None: no answer at all
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def die(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._open):
            writer.transport.abort()
        await self._server.wait_closed()
        await asyncio.sleep(0.01)  # transports close their sockets in a later round

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._one(reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._open.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(lines.get("content-length", "0")))
        if not head.startswith("post"):
            writer.write(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
            return True
        request = json.loads(body)
        method = request["method"]
        self.asked.append(method)
        if method != "initialize" and lines.get("mcp-session-id") != self.session:
            writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            return True
        if "id" not in request:
            writer.write(b"HTTP/1.1 202 Yes\r\nContent-Length: 0\r\n\r\n")
            return True
        if method == "ping":
            self.pings.put_nowait(method)
            if self.ping is None:
                return True
            said = self.ping
        else:
            said = {"result": self._result(method, request.get("params") or {})}
        answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}).encode()
        writer.write(
            b"HTTP/1.1 200 Yes\r\nContent-Type: application/json\r\nMcp-Session-Id: "
            + self.session.encode()
            + b"\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer)
        )
        return True

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                about = {"name": "plain", "version": "1"}
                version = params["protocolVersion"]
                tools = {"capabilities": {"tools": {}}}
                return {"protocolVersion": version, "serverInfo": about, **tools}
            case "tools/list":
                return {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
            case _:
                return {"content": [{"type": "text", "text": "2"}]}


@asynccontextmanager
async def connected(server: Plain) -> AsyncIterator[tuple[McpTools, Noted]]:
    await server.listen()
    noted: Noted = asyncio.Queue()
    given = {"type": "http", "name": "far", "url": f"http://127.0.0.1:{server.port}/mcp"}
    tools = connect([given], lambda *note: noted.put_nowait(note))
    await ready(tools)
    assert tools.find("mcp__far__add") is not None
    try:
        yield tools, noted
    finally:
        await tools.close()
        await server.die()


async def add(tools: McpTools) -> str:
    found = tools.find("mcp__far__add")
    assert found is not None
    return text_of((await found.run({}, Env())).content)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_alive, "PING_SECONDS", 0.02)


async def lost(noted: Noted) -> str:
    title, text = await asyncio.wait_for(noted.get(), 60)  # though nobody called it
    assert title == "MCP server far was lost"
    return text


async def test_a_server_without_a_stream_is_asked_and_started_again_by_the_next_call() -> None:
    server = Plain()
    async with connected(server) as (tools, noted):
        await server.pings.get()
        await server.pings.get()
        assert noted.empty()
        await server.die()
        await lost(noted)
        await server.listen()
        assert await add(tools) == "2"  # still offered, and connected anew
        assert server.asked.count("initialize") == 2 and noted.empty()


async def test_a_server_that_was_started_again_meanwhile_does_not_know_us_any_more() -> None:
    server = Plain()
    async with connected(server) as (tools, noted):
        await server.pings.get()
        server.session = "two"
        await lost(noted)
        assert await add(tools) == "2"


async def test_a_call_to_one_that_does_not_know_us_makes_the_next_one_connect_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mcp_alive, "PING_SECONDS", 3600)
    server = Plain()
    async with connected(server) as (tools, noted):
        server.session = "two"
        with pytest.raises(BadInput):
            await add(tools)
        await lost(noted)
        assert await add(tools) == "2"


async def test_a_server_that_falls_silent_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_alive, "PATIENCE_SECONDS", 0.05)
    server = Plain()
    async with connected(server) as (_, noted):
        await server.pings.get()
        server.ping = None
        assert await lost(noted) == "it does not answer any more"


@pytest.mark.parametrize("code", [-32601, -32600, -32603])
async def test_a_server_that_knows_no_pings_is_left_in_peace(code: int) -> None:
    server = Plain()
    server.ping = {"error": {"code": code, "message": "what?"}}
    async with connected(server) as (tools, noted):
        for _ in range(3):
            await server.pings.get()
        assert await add(tools) == "2" and noted.empty()
        await server.die()
        await lost(noted)


async def test_the_end_of_its_stream_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_alive, "PING_SECONDS", 3600)
    noted: Noted = asyncio.Queue()
    async with listening("http") as (process, port):
        given = {"type": "http", "name": "far", "url": f"http://127.0.0.1:{port}/mcp"}
        tools = connect([given], lambda *note: noted.put_nowait(note))
        await ready(tools)
        assert tools.find("mcp__far__add") is not None
        process.kill()
        assert "Error" not in await lost(noted)  # in words, not by a class of the library
        await tools.close()


async def test_a_program_that_answers_no_call_and_no_ping_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It runs, so nothing else would ever tell."""
    monkeypatch.setattr(mcp_alive, "PATIENCE_SECONDS", 0.05)
    noted: Noted = asyncio.Queue()
    tools = connect([STUCK], lambda *note: noted.put_nowait(note))
    await ready(tools)
    try:
        hang = tools.find("mcp__far__hang")
        assert hang is not None
        with pytest.raises(BadInput, match="no answer"):
            await hang.run({}, Env())  # type: ignore[arg-type]
        assert await lost(noted) == "it does not answer any more"
    finally:
        await tools.close()


async def test_a_program_that_is_slow_and_answers_is_kept() -> None:
    noted: Noted = asyncio.Queue()
    tools = connect([STUCK], lambda *note: noted.put_nowait(note))
    await ready(tools)
    try:
        wait = tools.find("mcp__far__wait")
        add = tools.find("mcp__far__add")
        assert wait is not None and add is not None
        with pytest.raises(BadInput, match="no answer"):
            await wait.run({}, Env())  # type: ignore[arg-type]
        async with asyncio.timeout(60):
            while True:  # whatever a busy machine takes for one
                try:
                    said = await add.run({"a": 1, "b": 1}, Env())  # type: ignore[arg-type]
                    break
                except BadInput:
                    continue
        assert text_of(said.content) == "2" and noted.empty()
    finally:
        await tools.close()
