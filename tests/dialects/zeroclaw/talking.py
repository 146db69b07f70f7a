"""A small client for tests of single connections."""

import asyncio
import json

from dragoman.dialects.zeroclaw import Desk, Settings
from dragoman.testing.host import EchoTool, memory_door
from dragoman.transports.memory import Client

INIT = b'{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1},"id":0}'


def desk_of(script, tools=None, settings=None, **profile):
    door = memory_door(script, tools if tools is not None else [EchoTool()], **profile)
    return Desk(door, settings or Settings())


class Talker:
    """Says requests and reads what comes, in process."""

    def __init__(self, desk, init=INIT):
        self.client = Client(desk.hearer)
        self.seen = []
        self._id = 0
        if init:
            self.client.send(init)
            self.init = json.loads(self.client.received()[0])

    def say(self, method, params=None, *, id=True):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if id:
            self._id += 1
            message["id"] = self._id
        self.client.send(json.dumps(message).encode())
        return self._id

    async def answer(self, id, within=60.0):
        """The answer to this id; what comes before it is kept in `seen`."""
        while True:
            message = json.loads(await self.client.receive(within))
            if isinstance(message, dict) and message.get("id") == id and "method" not in message:
                return message
            self.seen.append(message)

    async def ask(self, method, params=None, within=60.0):
        message = await self.answer(self.say(method, params), within)
        assert "error" not in message, message
        return message["result"]

    async def refused(self, method, params=None):
        message = await self.answer(self.say(method, params))
        assert "error" in message, message
        return message["error"]

    async def new(self, session_id="s", **more):
        return await self.ask(
            "session/new", {"agentAlias": "default", "sessionId": session_id, **more}
        )

    async def until(self, kind, within=60.0):
        """The next update of this kind."""
        while True:
            message = json.loads(await self.client.receive(within))
            self.seen.append(message)
            if message.get("params", {}).get("type") == kind:
                return message["params"]

    async def leave(self, desk):
        """Break the connection and wait until the server knows."""
        gone = asyncio.Event()
        desk.door.visitors.on_change.append(gone.set)
        self.client.drop()
        await asyncio.wait_for(gone.wait(), 60)

    def kinds(self):
        return [one["params"]["type"] for one in self.seen if one.get("method") == "session/update"]
