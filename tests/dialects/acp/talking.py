"""A small ACP client for tests, on an in-process connection."""

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from dragoman.dialects.acp import Desk, Settings
from dragoman.engine.door import Door
from dragoman.transports.memory import Client
from dragoman.wire.link import Peer

from .oracle import check

Answer = Callable[[dict[str, Any]], Any]
JOIN = {"dragoman": {"join": True}}  # what another client has open, though nothing is kept


class Talker:
    """Sends requests, answers the agent's, and keeps everything in order."""

    check = staticmethod(check)  # of every line that comes

    def __init__(self, desk: Desk, label: str = "memory", transport: str = "memory") -> None:
        self.desk = desk
        self.end = self.connect(desk, Peer(label, transport))
        self.asked: dict[Any, str] = {}
        self.heard: list[dict[str, Any]] = []  # all that came, in order
        self.waiting: deque[dict[str, Any]] = deque()  # came while something else was waited for
        self.answers: dict[str, Answer] = {}
        self._next = 0
        self.version = "v1"

    def connect(self, desk: Desk, peer: Peer) -> Any:
        """The way to the agent."""
        return Client(desk.hearer, peer)

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).replace("Infinity", "1e999")  # as JSON may write it
        self.end.send(line.encode())

    def ask(self, method: str, params: Any = None, id: Any = None) -> Any:
        """Send a request without waiting; returns its id."""
        if id is None:
            self._next += 1
            id = self._next
        self.asked[id] = method
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return id

    def tell(self, method: str, params: Any = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    async def next(self, within: float = 30.0) -> dict[str, Any]:
        """The next line, whatever it is; requests are answered when an answer is known."""
        message = json.loads(await self.end.receive(within))
        self.check(message, self.asked, self.version)
        self.heard.append(message)
        if "method" in message and "id" in message:
            answer = self.answers.get(message["method"])
            if answer is not None:
                result = answer(message["params"])
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return message

    async def reply(self, id: Any, within: float = 30.0) -> dict[str, Any]:
        """The answer to a request; what comes before it is kept in `heard`."""
        for message in tuple(self.waiting):
            if message.get("id") == id and "method" not in message:
                self.waiting.remove(message)
                return message
        while True:
            message = await self.next(within)
            if "method" not in message:
                if message.get("id") == id:
                    return message
                self.waiting.append(message)

    async def call(self, method: str, params: Any = None) -> Any:
        """A request and its result."""
        message = await self.reply(self.ask(method, params))
        assert "result" in message, message
        return message["result"]

    async def refused(self, method: str, params: Any = None) -> dict[str, Any]:
        """A request and its error."""
        message = await self.reply(self.ask(method, params))
        assert "error" in message, message
        return message["error"]

    async def until(self, method: str) -> dict[str, Any]:
        """The next message with this method."""
        while True:
            message = await self.next()
            if message.get("method") == method:
                return message

    async def update(self, kind: str) -> dict[str, Any]:
        """The next update of this kind."""
        while True:
            message = await self.until("session/update")
            if message["params"]["update"]["sessionUpdate"] == kind:
                return message["params"]["update"]

    async def silence(self) -> None:
        """Assert that nothing was said; asks something harmless to be sure."""
        before = len(self.heard)
        await self.reply(self.ask("_test/barrier"))
        assert [m for m in self.heard[before:] if "method" in m] == []

    # --- short words ---

    async def greet(self, name: str = "", **capabilities: Any) -> dict[str, Any]:
        params: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": capabilities}
        if name:
            params["clientInfo"] = {"name": name, "version": "1"}
        return await self.call("initialize", params)

    async def greet2(self, **capabilities: Any) -> dict[str, Any]:
        """Choose version 2."""
        self.version = "v2"
        info = {"name": "tester", "version": "1"}
        params = {"protocolVersion": 2, "info": info, "capabilities": capabilities}
        return await self.call("initialize", params)

    async def new2(self, cwd: str = "/tmp") -> str:
        return (await self.call("session/new", {"cwd": cwd}))["sessionId"]

    async def state(self, wanted: str) -> dict[str, Any]:
        """Wait for a state of version 2."""
        while True:
            update = await self.update("state_update")
            if update["state"] == wanted:
                return update

    async def new(self, cwd: str = "/tmp", **more: Any) -> str:
        result = await self.call("session/new", {"cwd": cwd, "mcpServers": [], **more})
        await self.update("available_commands_update")
        return result["sessionId"]

    async def prompt(self, session: str, text: Any = "hello") -> dict[str, Any]:
        return await self.call("session/prompt", {"sessionId": session, "prompt": text})

    def updates(self, session: str = "") -> list[dict[str, Any]]:
        return [
            m["params"]["update"]
            for m in self.heard
            if m.get("method") == "session/update"
            and (not session or m["params"]["sessionId"] == session)
        ]

    def kinds(self) -> list[str]:
        return [update["sessionUpdate"] for update in self.updates()]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(u["content"]["text"] for u in self.updates() if u["sessionUpdate"] == kind)


def desk_of(door: Door, **settings: Any) -> Desk:
    return Desk(door, Settings(**settings))


def talker(door: Door, **settings: Any) -> Talker:
    return Talker(desk_of(door, **settings))


def select(option: str) -> Answer:
    return lambda params: {"outcome": {"outcome": "selected", "optionId": option}}


def dismiss(params: dict[str, Any]) -> Any:
    return {"outcome": {"outcome": "cancelled"}}
