"""A client of pi's RPC mode, in memory."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from dragoman.engine.content import Text
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted
from dragoman.transports.memory import Client


class Slow:
    """A tool that says something and then runs until it is cancelled."""

    spec = ToolSpec("slow", "Take time.", {"type": "object"}, "execute")

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        env.progress("working\n")
        await asyncio.Event().wait()
        return Outcome((Text("never"),))

    def summary(self, args: dict[str, Any]) -> str:
        return "take time"


class Asking:
    """A tool that asks the human."""

    spec = ToolSpec("ask", "Ask.", {"type": "object"}, "think")

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        answer = await env.ask("Which colour?", ("red", "blue"))
        return Outcome((Text(f"{answer.answered}: {answer.text}"),))

    def summary(self, args: dict[str, Any]) -> str:
        return "ask"


class Pi:
    """Sends commands, and waits for what it needs to see."""

    def __init__(self, script: list[Any], *, mode: str = "full", **settings: Any) -> None:
        from dragoman_pi.desk import Desk, Settings

        self.echo = EchoTool()
        self.script = Scripted(script)
        self.door = memory_door(self.script, [self.echo, Slow(), Asking()], mode=mode)
        self.desk = Desk(self.door, Settings(cwd="/", **settings))
        self.client = Client(self.desk.hearer)
        self.seen: list[dict[str, Any]] = []
        self._number = 0

    def send(self, *commands: dict[str, Any]) -> None:
        self.client.send(*[json.dumps(one).encode() for one in commands])

    async def next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.client.receive())
        self.seen.append(message)
        return message

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = await self.next()
            if wanted(message):
                return message

    async def event(self, kind: str) -> dict[str, Any]:
        return await self.until(lambda message: message["type"] == kind)

    async def ask(self, command: str, **fields: Any) -> dict[str, Any]:
        """Send a command and wait for its response."""
        self._number += 1
        id = f"req_{self._number}"
        self.send({"type": command, "id": id, **fields})
        return await self.until(lambda message: message.get("id") == id)

    async def data(self, command: str, **fields: Any) -> Any:
        answer = await self.ask(command, **fields)
        assert answer["success"], answer
        return answer.get("data")

    async def refused(self, command: str, **fields: Any) -> str:
        answer = await self.ask(command, **fields)
        assert answer["success"] is False and answer["command"] == command, answer
        return str(answer["error"])

    async def run(self, text: str, **fields: Any) -> list[str]:
        """Prompt and wait for the end; the names of all events."""
        start = len(self.seen)
        await self.data("prompt", message=text, **fields)
        await self.event("agent_settled")
        return names(self.seen[start:])

    async def close(self) -> None:
        self.client.drop()
        await host_of(self.door).stop(1.0)


def names(seen: list[dict[str, Any]]) -> list[str]:
    """What events are, without the deltas' repetitions."""
    found: list[str] = []
    for one in seen:
        if one["type"] == "response":
            continue
        name = one["type"]
        if name == "message_update":
            name = one["assistantMessageEvent"]["type"]
        elif name in ("message_start", "message_end"):
            name = f"{name}:{one['message']['role']}"
        if not found or found[-1] != name:
            found.append(name)
    return found
