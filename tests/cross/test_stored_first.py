"""No dialect acknowledges what the store does not have: a crash after the answer loses nothing.

Every request here changes something. The store holds its writes back: until it lets them go, the
request has no answer.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.dialects import acp, humanlayer, openclawos, zeroclaw, zot
from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call
from dragoman.transports.memory import Client

ME = Who("test", id="me")
_ROUNDS = 40  # of the loop, in which a hasty answer would come


class Held(MemoryStore):
    """Keeps writes back while it is told to."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()
        self.may.set()
        self.held = 0
        self._last: asyncio.Future[Any] | None = None

    def hold(self) -> None:
        self.may.clear()

    def post(self, batch: Any, *, patient: bool = False) -> "asyncio.Future[int]":
        if self.may.is_set() and (self._last is None or self._last.done()):
            return super().post(batch, patient=patient)
        self.held += 1
        before = self._last

        async def later() -> int:
            await self.may.wait()
            if before is not None:
                await asyncio.wait({before})
            return await super(Held, self).post(batch, patient=patient)

        self._last = asyncio.ensure_future(later())
        return self._last

    async def _let(self) -> None:
        if not self.may.is_set():
            self.held += 1
            await self.may.wait()

    async def put(self, space: str, key: str, value: bytes | None) -> None:
        await self._let()
        await super().put(space, key, value)

    async def create(self, info: Any, owner: str) -> int:
        await self._let()
        return await super().create(info, owner)

    async def delete(self, session: str) -> bool:
        await self._let()
        return await super().delete(session)


class Scene:
    """A session whose turn waits for an answer, one that rests, and a client of one dialect."""

    def __init__(self) -> None:
        self.store = Held()
        script = Scripted([call("echo", text="x"), "done", "done", "done"])
        self.door: Door = memory_door(script, [EchoTool()], store=self.store)
        self.ask = self.asking = self.resting = ""  # what requests call them
        self.client: Client
        self.lines: list[dict[str, Any]] = []

    async def begin(self) -> None:
        self.asking = (await self.door.open(OpenSpec(cwd="/"), ME)).id
        asked = asyncio.Event()

        class Shape:
            def speak(self, events: Any) -> None:
                if any(isinstance(event.body, ev.Asked) for event in events):
                    asked.set()

        await self.door.watch(self.asking, ME, Shape(), lambda told: None)
        await self.door.prompt(self.asking, (Text("go"),), ME)
        await asyncio.wait_for(asked.wait(), 60)
        (row,) = await self.door.asks(self.asking)
        self.ask = row.ask.id
        self.resting = (await self.door.open(OpenSpec(cwd="/", mode="full"), ME)).id
        await (await self.door.prompt(self.resting, (Text("hi"),), ME)).done
        await self.door.idle(self.resting)

    def filled(self, params: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(params)
        for name in ("ask", "asking", "resting"):
            text = text.replace(f"<{name}>", getattr(self, name))
        filled: dict[str, Any] = json.loads(text)
        return filled

    def hear(self) -> None:
        self.lines += [json.loads(line) for line in self.client.received()]

    async def answer(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            self.hear()
            for line in self.lines:
                if fits(line):
                    return line
            self.lines.append(json.loads(await self.client.receive(60)))


# One dialect: how its client comes in, how it asks, and which line is the answer.


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 77, "method": method, "params": params}


def kernel(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"id": "77", "type": "request", "timestamp": 1, "method": method, "params": params}


def command(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"id": "77", "type": method, **params}


def answers(line: dict[str, Any]) -> bool:
    if line.get("type") == "response":
        return "77" in (line.get("id"), line.get("requestId"))
    return line.get("id") == 77 and "method" not in line


def good(line: dict[str, Any]) -> bool:
    return "error" not in line and line.get("success", True) is not False


MANIFEST = {
    "id": "@t/t", "name": "T", "version": "1.0.0", "type": "app", "main": "m",
    "protocol": {"version": "1.0"}, "capabilities": {"channels": {"provides": ["tele"]}},
}  # fmt: skip
CHANNEL = {"type": "channel", "config": {"id": "tele"}}
LOAD = {"cwd": "/", "mcpServers": []}
DIALECTS: dict[str, tuple[Any, Any, list[tuple[str, dict[str, Any]]]]] = {
    "zeroclaw": (
        zeroclaw, rpc,
        [("initialize", {"protocolVersion": 1}),
         ("session/new", {"agentAlias": "default", "sessionId": "<asking>"}),
         ("session/new", {"agentAlias": "default", "sessionId": "<resting>"})],
    ),
    "acp": (
        acp, rpc,
        [("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
         ("session/load", {"sessionId": "<asking>", **LOAD}),
         ("session/load", {"sessionId": "<resting>", **LOAD})],
    ),
    "zot": (zot, command, [("open", {"session": "<asking>"})]),
    "zot at rest": (zot, command, [("open", {"session": "<resting>"})]),
    "humanlayer": (humanlayer, rpc, []),
    "openclawos": (
        openclawos, kernel,
        [("app.register", {"manifest": MANIFEST}), ("capability.register", CHANNEL),
         ("app.ready", {})],
    ),
}  # fmt: skip

ASKING, RESTING = {"session_id": "<asking>"}, {"session_id": "<resting>"}
ASKING_CAMEL, RESTING_CAMEL = {"sessionId": "<asking>"}, {"sessionId": "<resting>"}
DECISION = {"call_id": "<ask>", "type": "function_call", "decision": "approve"}
LAUNCH = {"query": "hi", "working_dir": "/"}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    # our own protocol
    ("zeroclaw", "dragoman/open", {"cwd": "/"}),
    ("zeroclaw", "dragoman/prompt", {**ASKING, "text": "more", "detach": True}),
    ("zeroclaw", "dragoman/prompt", {**RESTING, "text": "more", "detach": True}),
    ("zeroclaw", "dragoman/steer", {**ASKING, "text": "a word"}),
    ("zeroclaw", "dragoman/cancel", ASKING),
    ("zeroclaw", "dragoman/answer", {"id": "<ask>", "verdict": "deny"}),
    ("zeroclaw", "dragoman/rename", {**RESTING, "title": "T"}),
    ("zeroclaw", "dragoman/archive", {**RESTING, "archived": True}),
    ("zeroclaw", "dragoman/setMode", {**RESTING, "mode": "plan"}),
    ("zeroclaw", "dragoman/setReasoning", {**RESTING, "effort": "high"}),
    ("zeroclaw", "dragoman/clear", RESTING),
    ("zeroclaw", "dragoman/fork", RESTING),
    ("zeroclaw", "dragoman/close", ASKING),
    ("zeroclaw", "dragoman/delete", RESTING),
    # zeroclaw
    ("zeroclaw", "session/cancel", ASKING),
    ("zeroclaw", "session/approve", {**ASKING, "request_id": "<ask>", "decision": "reject"}),
    ("zeroclaw", "session/new", {"agentAlias": "default", "sessionId": "fresh"}),
    ("zeroclaw", "session/close", RESTING),
    ("zeroclaw", "session/kill", ASKING),
    ("zeroclaw", "session/delete", RESTING),
    # ACP
    ("acp", "session/cancel", ASKING_CAMEL),
    ("acp", "session/new", LOAD),
    ("acp", "session/set_mode", {**RESTING_CAMEL, "modeId": "plan"}),
    ("acp", "session/set_title", {**RESTING_CAMEL, "title": "T"}),
    ("acp", "session/archive", RESTING_CAMEL),
    ("acp", "session/event", {**RESTING_CAMEL, "type": "told"}),
    ("acp", "session/fork", {**RESTING_CAMEL, **LOAD}),
    ("acp", "session/delete", RESTING_CAMEL),
    # zot
    ("zot", "steer", {"message": "a word"}),
    ("zot", "abort", {}),
    ("zot", "approve", {"approval": "<ask>", "decision": "deny"}),
    ("zot", "set_mode", {"mode": "plan"}),
    ("zot at rest", "prompt", {"message": "hi"}),
    ("zot at rest", "clear", {}),
    ("zot at rest", "compact", {}),
    ("zot at rest", "set_reasoning", {"reasoning": "high"}),
    ("zot at rest", "open", {"session": "new", "cwd": "/"}),
    # humanlayer
    ("humanlayer", "launchSession", LAUNCH),
    ("humanlayer", "continueSession", {**RESTING, "query": "go on"}),
    ("humanlayer", "continueSession", {**ASKING, "query": "go on"}),
    ("humanlayer", "interruptSession", ASKING),
    ("humanlayer", "updateSessionSettings", {**RESTING, "auto_accept_edits": True}),
    ("humanlayer", "updateSessionTitle", {**RESTING, "title": "T"}),
    ("humanlayer", "archiveSession", {**RESTING, "archived": True}),
    ("humanlayer", "bulkArchiveSessions", {"session_ids": ["<resting>"], "archived": True}),
    ("humanlayer", "sendDecision", DECISION),
    # openclawos
    ("openclawos", "agent.queue", {"sessionKey": "tele:1", "text": "hi"}),
    ("openclawos", "agent.queue", {"sessionKey": "<asking>", "text": "hi"}),
    ("openclawos", "message.dispatch", {"sessionKey": "tele:1", "content": "hi"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "method", "params"), CASES, ids=[f"{one[0]}-{one[1]}" for one in CASES]
)
async def test_the_answer_waits_for_the_store(
    dialect: str, method: str, params: dict[str, Any]
) -> None:
    scene = Scene()
    await scene.begin()
    module, line, before = DIALECTS[dialect]
    scene.client = Client(module.Desk(scene.door).hearer)
    for first, given in before:
        scene.client.send(json.dumps(line(first, scene.filled(given))).encode())
        assert good(told := await scene.answer(answers)), told
        scene.lines.clear()
    scene.store.hold()
    try:
        scene.client.send(json.dumps(line(method, scene.filled(params))).encode())
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
        scene.hear()
        hasty = [told for told in scene.lines if answers(told)]
    finally:
        scene.store.may.set()
    assert not hasty, f"acknowledged before it was stored: {hasty}"
    assert scene.store.held, "it was to change something"
    assert good(told := await scene.answer(answers)), told
    scene.client.drop()
