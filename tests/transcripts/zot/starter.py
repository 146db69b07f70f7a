"""Starts the zot dialect for its talks.

Options: `mode`, `token`, `max_steps`, `sole`, `session`, and `cwd` for the agent and the desk.
Tools: `echo` says what it is given, `slow` runs until it is released or cancelled, `write` notes
that it ran, `picture` gives an image, `ask` asks the human.
"""

import asyncio

import msgspec

from dragoman.dialects.zot import Desk, Settings
from dragoman.engine.content import Image, Text
from dragoman.engine.ports import ModelInfo, Outcome, ToolSpec
from dragoman.testing.host import MODEL, EchoTool, host_of, memory_door
from dragoman.testing.play import Setup, Stage
from dragoman.testing.talk import TalkError

PING = '{"id":"probe","type":"ping"}'
PONG = {
    "command": "ping",
    "data": {"pong": True},
    "id": "probe",
    "success": True,
    "type": "response",
}


class SlowTool:
    """Says `working`, then runs until it is released or cancelled."""

    spec = ToolSpec("slow", "Take time.", {"type": "object"}, "execute")

    def __init__(self):
        self.gate = asyncio.Event()

    async def run(self, args, env):
        env.progress("working\n")
        await self.gate.wait()
        return Outcome((Text("rested"),))

    def summary(self, args):
        return "take time"


class PictureTool:
    spec = ToolSpec("picture", "Make a picture.", {"type": "object"}, "read")

    async def run(self, args, env):
        return Outcome((Text("here"), Image("image/png", b"12345")))

    def summary(self, args):
        return "make a picture"


class AskTool:
    spec = ToolSpec("ask", "Ask the human.", {"type": "object"}, "think")

    async def run(self, args, env):
        answer = await env.ask("Which colour?", ("red", "blue"))
        return Outcome((Text(f"{answer.answered}: {answer.text}"),))

    def summary(self, args):
        return "ask"


async def start(setup: Setup) -> Stage:
    options = dict(setup.options)
    slow, echo, write = SlowTool(), EchoTool(), EchoTool("write", "edit")
    profile = {key: options.pop(key) for key in ("max_steps",) if key in options}
    door = memory_door(
        setup.script,
        [echo, slow, write, PictureTool(), AskTool()],
        mode=options.pop("mode", "full"),
        **profile,
    )
    other = msgspec.structs.replace(MODEL, id="other", reasoning=True)
    host_of(door).models.more = {other.ref: other, "elsewhere/m": ModelInfo("elsewhere", "m")}  # type: ignore[attr-defined]
    settings = msgspec.convert({"cwd": "/", "keeps": False} | options, Settings)
    desk = Desk(door, settings)

    async def release_tool(rest):
        slow.gate.set()

    async def nothing_written(rest):
        if write.ran:
            raise TalkError(f"the write tool ran: {write.ran}")

    async def failed(rest):
        if desk.failure != rest:
            raise TalkError(f"expected the failure {rest!r}, got {desk.failure!r}")

    async def close():
        await host_of(door).stop(1.0)

    directions = {
        "release-tool": release_tool,
        "nothing-written": nothing_written,
        "failed": failed,
    }
    return Stage(door, desk.hearer, (PING, PONG), directions=directions, close=close)
