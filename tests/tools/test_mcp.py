"""Tools of real MCP servers, over stdio and HTTP, and servers that are not there."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.content import text_of
from dragoman.engine.faults import BadInput
from dragoman.tools.mcp import McpTools, Note, connections, read_server, tool_name

SERVER = str(Path(__file__).with_name("mcp_server.py"))
STDIO = {"name": "sums", "command": sys.executable, "args": [SERVER], "env": []}


def connect(servers: list[dict[str, Any]], note: Note) -> McpTools:
    """Begin to connect to all of a session's servers."""
    return McpTools(connections(servers, note), None)


class Env:
    """Nothing of a tool's environment is used."""


async def ready(tools: McpTools) -> None:
    async with asyncio.timeout(90):
        await tools.ready(60)


async def test_a_server_on_stdio() -> None:
    notes: list[tuple[str, str]] = []
    tools = connect([STDIO], lambda *note: notes.append(note))
    assert tools.specs() == []  # nobody waited
    await ready(tools)
    try:
        assert [spec.name for spec in tools.specs()] == ["mcp__sums__add", "mcp__sums__fail"]
        add = tools.find("mcp__sums__add")
        assert add is not None and add.spec.schema["required"] == ["a", "b"]
        result = await add.run({"a": 2, "b": 3}, Env())  # type: ignore[arg-type]
        assert text_of(result.content) == "5" and not result.is_error
        broken = tools.find("mcp__sums__fail")
        assert broken is not None
        result = await broken.run({}, Env())  # type: ignore[arg-type]
        assert result.is_error and text_of(result.content)
    finally:
        await tools.close()
    assert notes == [] and tools.specs() == []


async def test_a_broken_server_costs_its_own_tools_only() -> None:
    notes: list[tuple[str, str]] = []
    broken = {"name": "gone", "command": "/does/not/exist", "args": [], "env": []}
    odd = {"name": "odd", "type": "pigeon"}
    mute = {"name": "mute", "command": sys.executable, "args": ["-c", "pass"], "env": []}
    script = "import sys; sys.exit('x' * 70000 + ' no file\\nsettings.json')"
    loud = {"name": "loud", "command": sys.executable, "args": ["-c", script], "env": []}
    tools = connect([broken, odd, mute, loud, STDIO], lambda *note: notes.append(note))
    await ready(tools)
    try:
        assert "mcp__sums__add" in [spec.name for spec in tools.specs()]
        told = {title.split()[2]: text for title, text in notes}
        assert set(told) == {"gone", "odd", "mute", "loud"}
        assert "; it said: xxx" in told["loud"]
        assert told["loud"].endswith("xxx no file settings.json") and len(told["loud"]) < 500
        assert "it said" not in told["mute"]
    finally:
        await tools.close()


@asynccontextmanager
async def listening(way: str) -> AsyncIterator[tuple[subprocess.Popen[bytes], int]]:
    """The server on a port of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, SERVER, way, str(port)])
    try:
        async with asyncio.timeout(150):  # it loads a whole web server
            while True:
                assert process.poll() is None, "it ended, another has its port perhaps"
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        yield process, port
    finally:
        process.terminate()
        process.wait(60)


async def test_a_server_over_http() -> None:
    async with listening("http") as (_, port):
        given = {"type": "http", "name": "far", "url": f"http://127.0.0.1:{port}/mcp",
                 "headers": [{"name": "X-Test", "value": "1"}]}  # fmt: skip
        notes: list[tuple[str, str]] = []
        tools = connect([given], lambda *note: notes.append(note))
        await ready(tools)
        add = tools.find("mcp__far__add")
        assert add is not None, notes
        assert text_of((await add.run({"a": 1, "b": 1}, Env())).content) == "2"  # type: ignore[arg-type]
        await tools.close()


async def test_the_death_of_an_idle_server_of_events_is_noticed_at_once() -> None:
    noted: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    async with listening("sse") as (process, port):
        given = {"type": "sse", "name": "far", "url": f"http://127.0.0.1:{port}/sse"}
        tools = connect([given], lambda *note: noted.put_nowait(note))
        await ready(tools)
        assert tools.find("mcp__far__add") is not None
        process.kill()
        title, _ = await asyncio.wait_for(noted.get(), 60)  # though nobody called it
        assert title == "MCP server far was lost"
        await tools.close()


@pytest.mark.parametrize(
    ("given", "transport"),
    [
        ({"name": "a", "command": "x"}, "stdio"),
        ({"name": "a", "url": "http://x"}, "http"),
        ({"name": "a", "type": "sse", "url": "http://x"}, "sse"),
        ({"name": "a", "command": "x", "env": {"A": "1"}, "transport": "auto"}, "stdio"),
    ],
)
def test_all_spellings_of_a_server(given: dict[str, Any], transport: str) -> None:
    assert read_server(given).transport == transport


@pytest.mark.parametrize("given", [{"name": "a"}, {"name": "a", "type": "http"}, {"type": "acp"}])
def test_servers_that_cannot_be_reached_at_all(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        read_server(given)


def test_names_that_providers_accept() -> None:
    assert tool_name("my server", "do.it") == "mcp__my_server__do_it"
    long = tool_name("s" * 50, "t" * 50)
    assert len(long) == 64 and long != tool_name("s" * 50, "t" * 51)


async def test_the_death_of_an_idle_server_is_noticed_at_once_and_the_next_call_starts_it_again(
    tmp_path: Path,
) -> None:
    noted: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    pid = tmp_path / "pid"
    start = f"import os, runpy; open({str(pid)!r}, 'w').write(str(os.getpid())); "
    start += f"runpy.run_path({SERVER!r}, run_name='__main__')"
    server = {**STDIO, "args": ["-c", start]}
    tools = connect([server], lambda *note: noted.put_nowait(note))
    await ready(tools)
    try:
        add = tools.find("mcp__sums__add")
        assert add is not None
        first = int(pid.read_text())
        os.kill(first, signal.SIGKILL)
        title, _ = await asyncio.wait_for(noted.get(), 60)  # though nobody called it
        assert title == "MCP server sums was lost"
        again = tools.find("mcp__sums__add")
        assert again is not None, "it is still offered"
        result = await again.run({"a": 2, "b": 3}, Env())  # type: ignore[arg-type]
        assert text_of(result.content) == "5" and int(pid.read_text()) != first
    finally:
        await tools.close()
    assert tools.specs() == [] and noted.empty()
