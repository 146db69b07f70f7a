"""A small app for tests, on an in-process connection."""

import asyncio
import json
from collections import deque
from typing import Any

from dragoman.dialects.openclawos import Desk, Settings
from dragoman.engine.door import Door
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted
from dragoman.transports.memory import Client


def manifest(id: str = "@test/app", **capabilities: Any) -> dict[str, Any]:
    return {
        "id": id,
        "name": "Test",
        "version": "1.0.0",
        "type": "app",
        "main": "dist/index.js",
        "protocol": {"version": "1.0"},
        "capabilities": capabilities,
    }


FULL = {
    "channels": {"provides": ["telegram"]},
    "tools": {"provides": ["t1"]},
    "hooks": {"subscribes": ["message_received"], "intercepts": ["message_sending"]},
    "gateway": {"methods": ["m.x"], "httpRoutes": ["/a/*"]},
    "providers": {"provides": ["p1"]},
}


class Config:
    """`door.ConfigPort` over plain values."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.told: list[Any] = []

    def get(self, path: str = "") -> Any:
        value: Any = self.values
        for part in [part for part in path.split(".") if part]:
            if isinstance(value, list):
                value = value[int(part)] if part.isdigit() and int(part) < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return value

    def clear(self, path: tuple[str, ...]) -> Any:
        value: Any = self.values
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def watch(self, callback: Any, *, clear: bool = False) -> Any:
        self.told.append(callback)
        return lambda: self.told.remove(callback)

    def change(self, path: str, old: Any, new: Any) -> None:
        for told in tuple(self.told):
            told(path, old, new)


def desk_of(
    script: list[Any] | Scripted | None = None,
    tools: Any = (),
    config: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    **profile: Any,
) -> Desk:
    scripted = script if isinstance(script, Scripted) else Scripted(script or [])
    door: Door = memory_door(scripted, tools, **profile)
    if config is not None:
        door.config = Config(config)  # type: ignore[assignment]
    return Desk(door, Settings(**(settings or {})))


class Talker:
    """Sends requests and sorts what comes back."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.end = Client(desk.hearer)
        self.token: str | None = None
        self.events: deque[dict[str, Any]] = deque()
        self.chunks: deque[dict[str, Any]] = deque()
        self.answers: dict[Any, dict[str, Any]] = {}
        self._next = 0

    def ask(self, method: str, params: Any = None, *, id: Any = None, **more: Any) -> Any:
        """Send a request without waiting; returns its id."""
        if id is None:
            self._next += 1
            id = f"r{self._next}"
        message = {"id": id, "type": "request", "timestamp": 1, "method": method, "params": params}
        message |= more
        self.end.send(json.dumps(message).encode())
        return id

    async def _take(self, within: float = 60.0) -> None:
        line = await self.end.receive(within)
        assert line.isascii()
        message = json.loads(line)
        match message["type"]:
            case "event":
                self.events.append(message)
            case "stream":
                self.chunks.append(message)
            case _:
                assert set(message) - {"result", "error"} == {
                    "id", "type", "timestamp", "requestId", "success",
                }  # fmt: skip
                assert ("result" in message) is message["success"]
                assert ("error" in message) is not message["success"]
                self.answers[message["requestId"]] = message

    async def answer(self, id: Any) -> dict[str, Any]:
        while id not in self.answers:
            await self._take()
        return self.answers.pop(id)

    async def call(self, method: str, params: Any = None, **more: Any) -> Any:
        message = await self.answer(self.ask(method, params, **more))
        assert message["success"], message
        return message["result"]

    async def refused(self, method: str, params: Any = None, **more: Any) -> dict[str, Any]:
        message = await self.answer(self.ask(method, params, **more))
        assert not message["success"], message
        return message["error"]

    async def event(self, name: str = "") -> dict[str, Any]:
        """The payload of the next event."""
        while not self.events:
            await self._take()
        message = self.events.popleft()
        assert not name or message["event"] == name, message
        return message["payload"]

    async def chunk(self) -> dict[str, Any]:
        while not self.chunks:
            await self._take()
        return self.chunks.popleft()

    async def silence(self) -> None:
        """Nothing but the answer to this came."""
        await self.call("app.heartbeat", {})
        assert not self.events and not self.chunks

    async def leave(self) -> None:
        """Break the connection, and let the other side hear of it."""
        self.end.drop()
        await asyncio.sleep(0)

    async def result(self, event: dict[str, Any], value: Any) -> bool:
        asked = {"eventId": event["eventId"], "result": value}
        return (await self.call("hook.result", asked))["ok"]


async def app(
    desk: Desk,
    id: str = "@test/app",
    *,
    ready: bool = True,
    hears: tuple[str, ...] = (),
    grant: tuple[tuple[str, dict[str, Any]], ...] = (),
    **capabilities: Any,
) -> Talker:
    """A registered app, with its capabilities and subscriptions in place."""
    talker = Talker(desk)
    answer = await talker.call("app.register", {"manifest": manifest(id, **capabilities)})
    talker.token = answer["token"]
    for kind, config in grant:
        granted = await talker.call("capability.register", {"type": kind, "config": config})
        assert granted["granted"], granted
    if hears:
        told = await talker.call("hook.subscribe", {"events": list(hears)})
        assert told["denied"] == []
    if ready:
        await talker.call("app.ready", {})
    return talker
