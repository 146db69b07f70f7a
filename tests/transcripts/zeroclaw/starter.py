"""Starts the zeroclaw dialect for its talks.

Options: `mode` of the agent, `approval_timeout` of the agent, and the keys of `[zeroclaw]`.
Tools: `echo` says what it is given and is asked about in mode supervised, `look` is not,
`slow` runs until it is released or cancelled, `ask` puts a question to the human.
"""

import asyncio

import msgspec

from dragoman.dialects.zeroclaw import Desk, Settings
from dragoman.engine.content import PlanEntry, Text
from dragoman.engine.ports import AgentProfile, Outcome, ToolSpec
from dragoman.testing.host import MODEL, EchoTool, host_of, memory_door
from dragoman.testing.play import Setup, Stage

PROBE = '{"jsonrpc":"2.0","method":"no/such","id":"probe"}'
ANSWER = {
    "jsonrpc": "2.0",
    "error": {"code": -32601, "message": "Unknown method: no/such"},
    "id": "probe",
}
_PROFILE = ("mode", "approval_timeout", "max_steps")


class SlowTool:
    spec = ToolSpec("slow", "Take time.", {"type": "object"}, "read")

    def __init__(self):
        self.gate = asyncio.Event()
        self.running = asyncio.Event()

    async def run(self, args, env):
        self.running.set()
        await self.gate.wait()
        return Outcome((Text("rested"),))

    def summary(self, args):
        return "take time"


class AskTool:
    spec = ToolSpec("ask", "Ask the human.", {"type": "object"}, "think")

    async def run(self, args, env):
        answer = await env.ask(args["question"], tuple(args.get("choices", ())))
        return Outcome((Text(answer.text if answer.answered else "no answer"),))

    def summary(self, args):
        return args["question"]


class PlanTool:
    spec = ToolSpec("todo", "Make a plan.", {"type": "object"}, "think")

    async def run(self, args, env):
        await env.plan([PlanEntry("one", "high", "in_progress"), PlanEntry("two")])
        return Outcome((Text("planned"),))

    def summary(self, args):
        return "plan"


async def start(setup: Setup) -> Stage:
    options = dict(setup.options)
    slow = SlowTool()
    base = AgentProfile("main", model=MODEL.ref, context_files=False, auto_compact=0.0)
    given = {key: options.pop(key) for key in _PROFILE if key in options}
    agent = msgspec.structs.replace(base, **given)
    other = msgspec.structs.replace(agent, alias="other")
    door = memory_door(
        setup.script,
        [EchoTool(), EchoTool("look", "read"), slow, AskTool(), PlanTool()],
        profiles=[agent, other],
    )
    more = msgspec.structs.replace(MODEL, id="more")
    host_of(door).models.more = {more.ref: more}  # type: ignore[attr-defined]
    door.facts.version = "9.9.9"
    door.facts.addresses = {"zeroclaw": "/run/daemon.sock"}
    settings = msgspec.convert(options, Settings)
    desk = Desk(door, settings)

    async def release_tool(rest):
        slow.gate.set()

    async def wait_tool(rest):
        async with asyncio.timeout(60):
            await slow.running.wait()

    async def close():
        await host_of(door).stop(1.0)

    directions = {"release-tool": release_tool, "wait-tool": wait_tool}
    names = {"folder": str(setup.folder)}
    return Stage(
        door, desk.hearer, (PROBE, ANSWER), names=names, directions=directions, close=close
    )
