"""Odd values in every field of every method: each request gets exactly one answer, on any link."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted
from dragoman.transports import memory, unix
from dragoman.wire.link import Opener

NAMES = ("zeroclaw", "humanlayer", "openclawos", "acp", "zot")
_DEEP: Any = []
for _ in range(90):
    _DEEP = [_DEEP]

TEXTS = [
    "", " ", "\x00", "a\x00b", "/a\x00b", "[", "]", "{}", "%s%d", "\ud800", "a\udfffb",
    "\U0001f600", "\u2028", "~", "~nobody/x", "..", "/", "-1", "null", "new", "default",
    "x" * 70_000, "\r\n", "file://[slug]/page.tsx", "file:///a%00b", "file://", "http://[::1", "://",
    "data:,%zz", "s1", "allow", "approve", "function_call", "2026-13-45T99:99:99Z", "1e999",
    "../../etc/passwd",
]  # fmt: skip
NUMBERS = [0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 2**200, 1e308, -0.0, 5e-324]
BLOCKS: list[Any] = [
    {"type": "resource_link", "uri": "file://[slug]/page.tsx", "name": "a[b"},
    {"type": "resource", "resource": {"uri": "file://[x", "text": 5}},
    {"type": "image", "data": "***", "mimeType": "\x00"},
    {"type": "text", "text": "\ud800"}, {"type": "text"}, {"type": 5}, {"type": "audio"}, [], None,
    {"name": "a", "command": "\x00", "args": [None], "env": [{"name": "\x00", "value": 1}]},
]  # fmt: skip


def value(dice: random.Random, depth: int = 0) -> Any:
    """Something that a client should not have sent."""
    kind = dice.randrange(8)
    if kind <= 2:
        return dice.choice(TEXTS)
    if kind == 3:
        return dice.choice(NUMBERS)
    if kind == 4:
        return dice.choice([None, True, False, _DEEP, {"": None}, {"\x00": "\x00"}, [], {}])
    if kind == 5:
        return [dice.choice(BLOCKS) for _ in range(dice.randint(1, 3))]
    if depth > 2:
        return "deep enough"
    if kind == 6:
        return [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return {dice.choice(TEXTS)[:20]: value(dice, depth + 1) for _ in range(dice.randrange(4))}


def fields(name: str) -> list[str]:
    """Every name of a field that the dialect's shapes have."""
    modules = [f"dragoman.dialects.{name}.shapes"]
    if name == "zeroclaw":
        modules += [f"dragoman.dialects.zeroclaw.verbs.{one}" for one in ("config", "memory")]
    found: set[str] = {"sessionId", "session_id", "cwd", "prompt", "env"}
    for module in modules:
        for one in vars(import_module(module)).values():
            if isinstance(one, type) and issubclass(one, msgspec.Struct):
                found |= {field.encode_name for field in msgspec.structs.fields(one)}
    return sorted(found)


def methods(name: str) -> list[str]:
    table = import_module(f"dragoman.dialects.{name}.verbs").VERBS
    left_out = {"Subscribe", "app.shutdown"}  # after those nobody is heard as before
    return sorted(set(table) - left_out)


def request(
    name: str, dice: random.Random, number: int, known: list[str], verbs: list[str], session: str
) -> Any:
    params = {key: value(dice) for key in dice.sample(known, dice.randrange(min(9, len(known))))}
    if dice.randrange(3):  # often of a session that is there
        params["sessionId" if name in ("acp", "zeroclaw") else "session_id"] = session
    method = dice.choice(verbs)
    if name == "zot":
        return {**params, "id": f"r{number}", "type": method}
    if name == "openclawos":
        made = {"id": f"r{number}", "type": "request", "timestamp": 1, "method": method}
        return {**made, "params": params}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def greeting(name: str) -> list[dict[str, Any]]:
    if name == "openclawos":
        manifest = {"id": "@x/y", "name": "y", "version": "1.0.0", "type": "app", "main": "x",
                    "protocol": {"version": "1.0"}, "capabilities": {"tools": ["t"]}}  # fmt: skip
        return [{"id": "hello", "type": "request", "timestamp": 1, "method": "app.register",
                 "params": {"manifest": manifest}}]  # fmt: skip
    if name in ("zeroclaw", "acp"):
        hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize"}
        params = {"agentAlias": "default", "sessionId": "s1", "cwd": "/"}
        opened = {"jsonrpc": "2.0", "id": "open", "method": "session/new", "params": params}
        return [{**hello, "params": {"protocolVersion": 1}}, opened]
    return []


def answered(message: dict[str, Any]) -> Any:
    """The id of the request that a line answers; None when it answers none."""
    if message.get("type") == "response":
        return message.get("requestId", message.get("id"))
    if "result" in message or "error" in message:
        return message.get("id")
    return None


Talk = tuple[Callable[[bytes], None], Callable[[], Awaitable[bytes]]]


@asynccontextmanager
async def over_memory(open: Opener, place: Path) -> AsyncIterator[Talk]:
    client = memory.Client(open)
    yield client.feed, lambda: client.receive(60)
    client.drop()


@asynccontextmanager
async def over_unix(open: Opener, place: Path) -> AsyncIterator[Talk]:
    listener = await unix.listen(str(place / "s"), open)
    reader, writer = await asyncio.open_unix_connection(str(place / "s"), limit=1 << 26)

    async def receive() -> bytes:
        async with asyncio.timeout(60):
            line = await reader.readline()
        if not line:
            raise EOFError("the server ended the connection")
        return line

    try:
        yield writer.write, receive
    finally:
        writer.close()
        await listener.close()


async def play(name: str, talk: Talk, seed: int, rounds: int, each: int) -> None:
    send, receive = talk
    dice = random.Random(seed)
    known, verbs = fields(name), methods(name)
    for one in greeting(name):
        send(json.dumps(one).encode() + b"\n")
    session, number = "s1", 0
    counts: dict[Any, int] = {}
    waiting = {one["id"] for one in greeting(name)}
    sent: dict[Any, Any] = {}
    while waiting:
        message = json.loads(await receive())
        waiting.discard(answered(message))
        session = (message.get("result") or {}).get("sessionId") or session
    for _ in range(rounds):
        lines = []
        for _ in range(each):
            number += 1
            made = request(name, dice, number, known, verbs, session)
            sent[made["id"]] = made
            waiting.add(made["id"])
            lines.append(json.dumps(made).encode())
        send(b"\n".join(lines) + b"\n")
        while waiting:
            try:
                id = answered(json.loads(await receive()))
            except (TimeoutError, EOFError) as trouble:
                lost = [str(sent.get(id, id))[:300] for id in list(waiting)[:5]]
                pytest.fail(f"{type(trouble).__name__}: {trouble}; no answer to {lost}")
            if id is not None:
                counts[id] = counts.get(id, 0) + 1
                waiting.discard(id)
    twice = {id: sent.get(id) for id, count in counts.items() if count > 1}
    assert not twice


@pytest.mark.parametrize("carry", [over_memory, over_unix])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.timeout(120)
async def test_every_request_gets_one_answer(name: str, carry: Any, tmp_path: Path) -> None:
    door = memory_door(Scripted(["hello"], loop=True), [EchoTool()])
    troubles: list[str] = []
    host_of(door).trouble = lambda what, error, **data: troubles.append(f"{what}: {error!r}")
    desk = import_module(f"dragoman.dialects.{name}").Desk(door)
    async with carry(desk.hearer, tmp_path) as talk:
        await play(name, talk, 4711, 30 if carry is over_memory else 8, 50)
    assert troubles == []
    await host_of(door).stop(0)
