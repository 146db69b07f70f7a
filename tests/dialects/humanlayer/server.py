"""A server in a process of its own, to be killed: `server.py DATABASE SOCKET DIRECTORY`.

Its only tool makes the file `made`; while there is a file `hold` it waits instead.
"""

import asyncio
import os
import sys

from dragoman.dialects.humanlayer import Desk
from dragoman.engine.content import Text
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.store.sqlite import open_store
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, call, turn
from dragoman.transports import unix


class MakeTool:
    spec = ToolSpec("make", "Make a file.", {"type": "object"}, "execute")

    async def run(self, args, env):
        if os.path.exists(os.path.join(env.cwd, "hold")):
            await asyncio.Event().wait()
        with open(os.path.join(env.cwd, "made"), "a") as made:
            made.write("x")
        return Outcome((Text("made it"),))

    def summary(self, args):
        return "make a file"


async def main(database, path):
    store, notices = open_store(database)
    script = Scripted([turn("I make it.", call("make")), "all done"], resume=True)
    door = memory_door(script, [MakeTool()], store=store)
    await host_of(door).recover()
    desk = Desk(door)
    await unix.listen(path, desk.hearer)
    print("ready", *notices, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
