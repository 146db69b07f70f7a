"""Starts the humanlayer dialect for its talks.

Options: `mode` of the agent, `heartbeat_secs` and `max_message_bytes` of the protocol. Tools:
`echo` and `bash` say what they are given (and are asked about), `write` too (an edit), `read` gives
numbered lines, `ask_user` asks a human. The name `cwd` is the talk's own folder.
"""

import msgspec

from dragoman.dialects.humanlayer import Desk, Settings
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.play import Setup, Stage

HEALTH = '{"jsonrpc":"2.0","method":"health","id":"probe"}'
HEALTHY = {"jsonrpc": "2.0", "result": {"status": "ok", "version": "0.1.0"}, "id": "probe"}
TRANSPORTS = ("memory", "unix")


class AskTool:
    spec = ToolSpec("ask_user", "Ask a human.", {"type": "object"}, "think")

    async def run(self, args, env):
        answer = await env.ask(args["question"], args.get("choices", ()))
        return Outcome((Text(answer.text),), is_error=not answer.answered)

    def summary(self, args):
        return args["question"]


class ReadTool:
    spec = ToolSpec("read", "Read a file.", {"type": "object"}, "read")

    async def run(self, args, env):
        return Outcome((Text("     1\tone\n     2\ttwo"),))

    def summary(self, args):
        return args["path"]


async def start(setup: Setup) -> Stage:
    options = dict(setup.options)
    tools = [EchoTool(), EchoTool("bash"), EchoTool("write", "edit"), ReadTool(), AskTool()]
    door = memory_door(setup.script, tools, mode=options.pop("mode", "supervised"))
    desk = Desk(door, msgspec.convert({"heartbeat_secs": 0.0} | options, Settings))

    async def close():
        await desk.close()
        await host_of(door).stop(1.0)

    async def open_elsewhere(rest):
        await door.open(OpenSpec(cwd="/"), Who("elsewhere", id="e"))

    (setup.folder / "file.txt").write_text("no directory")
    names = {"cwd": str(setup.folder), "file": str(setup.folder / "file.txt")}
    directions = {"open-elsewhere": open_elsewhere}
    return Stage(door, desk.hearer, (HEALTH, HEALTHY), names, directions, close)
