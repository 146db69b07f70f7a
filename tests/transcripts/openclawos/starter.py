"""Starts the kernel dialect for its talks.

Options: `mode`, `require_token`, `invoke_timeout_ms`, `hook_timeout`. `! change PATH OLD NEW`
changes the configuration, `! stop` stops the kernel, `! nothing-ran`: no tool of ours was run.
"""

import ast
import asyncio

from tests.dialects.openclawos.talking import Config

from dragoman.dialects.openclawos import Desk, Settings
from dragoman.host.roster import Layers
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.play import Setup, Stage

TRANSPORTS = ("memory", "unix")
PROBE = '{"id":"probe","type":"request","timestamp":1,"method":"app.heartbeat","params":{}}'
ANSWER = {"requestId": "probe", "success": True, "...": "<more>"}
VALUES = {"channels": {"telegram": {"name": "bot", "token": "***"}}, "list": [1, 2]}


async def start(setup: Setup) -> Stage:
    options = dict(setup.options)
    tool = EchoTool()
    door = memory_door(setup.script, [tool], mode=options.pop("mode", "full"))
    door.hooks.timeout = options.pop("hook_timeout", 5.0)
    config = Config(VALUES)
    door.config = config  # type: ignore[assignment]
    agents = host_of(door).agents
    inner = agents.toolbox

    async def toolbox(profile, session):
        return Layers([await inner(profile, session)], door.offers, profile.tools)

    agents.toolbox = toolbox  # type: ignore[method-assign]
    desk = Desk(door, Settings(**options))

    async def change(rest: str) -> None:
        path, old, new = rest.split(" ", 2)
        config.change(path, ast.literal_eval(old), ast.literal_eval(new))
        await asyncio.sleep(0)

    async def nothing_ran(rest: str) -> None:
        assert tool.ran == []

    async def stop(rest: str) -> None:
        await desk.close()

    async def close() -> None:
        await desk.close()
        await host_of(door).stop(1.0)

    directions = {"change": change, "nothing-ran": nothing_ran, "stop": stop}
    return Stage(door, desk.hearer, (PROBE, ANSWER), directions=directions, close=close)
