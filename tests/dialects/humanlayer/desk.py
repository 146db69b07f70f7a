"""A desk over a host in memory, and a client that speaks the protocol, for the tests beside."""

import asyncio
import json

from dragoman.dialects.humanlayer import Desk, Settings
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted
from dragoman.transports import memory

HEALTH = b'{"jsonrpc":"2.0","method":"health","id":1}'
HEALTHY = b'{"jsonrpc":"2.0","result":{"status":"ok","version":"0.1.0"},"id":1}'


def make(script=(), tools=None, *, store=None, settings=None, **profile):
    """A door and a desk; heartbeats are off unless the settings say otherwise."""
    scripted = script if isinstance(script, Scripted) else Scripted(list(script))
    tools = [EchoTool()] if tools is None else tools
    door = memory_door(scripted, tools, store=store, **profile)
    return door, Desk(door, settings or Settings(heartbeat_secs=0))


class Client:
    """Calls methods one after the other over an in-process connection."""

    def __init__(self, desk):
        self.wire = memory.Client(desk.hearer)
        self.last = 0

    async def call(self, method, **params):
        """The result; raises Refused with the error."""
        self.last += 1
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": self.last}
        self.wire.send(json.dumps(request).encode())
        answer = json.loads(await self.wire.receive())
        assert answer["id"] == self.last
        if "error" in answer:
            raise Refused(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    async def subscribe(self, **params):
        result = await self.call("Subscribe", **params)
        assert result["subscription_id"].startswith("sub_")
        return result

    async def event(self, kind=None):
        """The next event, or the next one of a kind."""
        while True:
            event = json.loads(await self.wire.receive())["result"]["event"]
            if kind in (None, event["type"]):
                return event


class Refused(Exception):
    pass


async def pending(client, session_id=None):
    """The first approval that waits, waiting for one when there is none."""
    async with asyncio.timeout(60):
        while True:
            params = {"session_id": session_id} if session_id else {}
            found = (await client.call("fetchApprovals", **params))["approvals"]
            if found:
                return found[0]
            await asyncio.sleep(0.005)
