"""A client that leaves while what it asked for is on its way is nowhere afterwards."""

import asyncio
import json
from typing import Any

import pytest

from dragoman.dialects.acp import Desk as AcpDesk
from dragoman.dialects.humanlayer import Desk as HumanlayerDesk
from dragoman.dialects.zeroclaw import Desk as ZeroclawDesk
from dragoman.dialects.zot import Desk as ZotDesk
from dragoman.dialects.zot import Settings as ZotSettings
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted
from dragoman.transports.memory import Client

JOIN = {"dragoman": {"join": True}}
INFO = {"protocolVersion": 2, "info": {"name": "x", "version": "1"}}
ACP = {"sessionId": "s", "cwd": "/", "mcpServers": [], "_meta": JOIN}
HELLO = ("initialize", {"protocolVersion": 1})
NEW = {"agentAlias": "default", "sessionId": "s"}
PROMPT = {"sessionId": "s", "prompt": "go"}

CASES: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "zeroclaw opens": ("zeroclaw", [HELLO, ("session/new", NEW)]),
    "zeroclaw prompts": ("zeroclaw", [HELLO, ("session/prompt", PROMPT)]),
    "our own watch": ("zeroclaw", [HELLO, ("dragoman/watch", {"sessionId": "s", "since": 0})]),
    "our own watch of all": ("zeroclaw", [HELLO, ("dragoman/watch", {"since": 0})]),
    "acp loads": ("acp", [HELLO, ("session/load", ACP)]),
    "acp 2 resumes": ("acp", [("initialize", INFO), ("session/resume", ACP)]),
    "zot opens": ("zot", [("open", {"session": "s"})]),
    "humanlayer subscribes": ("humanlayer", [("Subscribe", {"session_id": "s", "since": 0})]),
}  # fmt: skip


def line(dialect: str, number: int, method: str, params: dict[str, Any]) -> bytes:
    if dialect == "zot":
        return json.dumps({"id": str(number), "type": method, **params}).encode()
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode()


@pytest.mark.parametrize("name", CASES)
async def test_who_left_is_not_there(name: str) -> None:
    dialect, said = CASES[name]
    door = memory_door(Scripted(["done"], loop=True))
    host = host_of(door)
    desk: Any = {
        "zeroclaw": lambda: ZeroclawDesk(door),
        "acp": lambda: AcpDesk(door),
        "humanlayer": lambda: HumanlayerDesk(door),
        "zot": lambda: ZotDesk(door, ZotSettings(cwd="/", keeps=False)),
    }[dialect]()
    await door.open(OpenSpec(cwd="/", id="s"), Who("test", id="t"))
    held, go = asyncio.Event(), asyncio.Event()

    def gated(real: Any) -> Any:
        async def waiting(*args: Any, **fields: Any) -> Any:
            held.set()
            await go.wait()
            return await real(*args, **fields)

        return waiting

    client = Client(desk.hearer)
    *first, last = said
    for number, (method, params) in enumerate(first):
        client.send(line(dialect, number, method, params))
    for of, one in ((host, "get"), (host, "catch_up"), (door, "info")):
        setattr(of, one, gated(getattr(of, one)))
    client.send(line(dialect, 9, *last))
    async with asyncio.timeout(60):
        await held.wait()
    client.drop()
    go.set()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks, return_exceptions=True)
        await door.idle("s")
    for _ in range(3):
        await asyncio.sleep(0)
    assert door.present("s") == () and not host.hub.watches
    assert not door.visitors.clients
