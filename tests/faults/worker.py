"""A process that takes turns for ever in one stored session, to be killed by a test.

Every turn calls a tool that writes its call's number to a file before it answers, and every event
that was committed is acknowledged on stdout.
"""

import asyncio
import os
import sys

from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call_with, say, turn

ME = Who("test", id="worker")


class Marker(EchoTool):
    def __init__(self, path: str) -> None:
        super().__init__("mark")
        self._path = path

    async def run(self, args, env):
        with open(self._path, "a") as file:
            file.write(f"{env.call_id}\n")
        return Outcome((Text("marked"),))


class Acks:
    def speak(self, events):
        for event in events:
            if event.seq:
                os.write(1, f"{event.seq} {type(event.body).__name__}\n".encode())


async def work(folder: str, session: str, life: str) -> None:
    store, notices = open_store(os.path.join(folder, "sessions.db"))
    assert not notices, notices
    steps = []
    for n in range(1000):
        steps.append(turn(say("I mark."), call_with("mark", {}, id=f"{life}-{n}")))
        steps.append(say("Marked. " * 20, deltas=20))
    tool = Marker(os.path.join(folder, "marks"))
    door = memory_door(Scripted(steps), [tool], store=store, mode="full")
    host_of(door).owner = life
    if await store.info(session) is None:
        await door.open(OpenSpec(cwd="/", id=session), ME)
    await host_of(door).recover()
    await door.watch(session, ME, Acks(), lambda said: None)
    while True:
        await (await door.prompt(session, (Text("go"),), ME)).done


asyncio.run(work(*sys.argv[1:]))
