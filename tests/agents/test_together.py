"""Calls of one step that only look run side by side; results come in order."""

import asyncio
from typing import Any

from tests.engine.tape import ME

from dragoman.engine.content import Text, ToolResult
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call, hang, say, turn


class Meeting(EchoTool):
    """Each waits until as many as `together` are there; the last to come ends first."""

    def __init__(self, name: str, kind: Any, together: int) -> None:
        super().__init__(name, kind)
        self.together = together
        self.here = 0
        self.most = 0
        self.all_here = asyncio.Event()
        self.third = asyncio.Event()

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        self.here += 1
        self.most = max(self.most, self.here)
        if self.here == 3:
            self.third.set()
        if self.here >= self.together:
            self.all_here.set()
        else:
            await self.all_here.wait()
        if args["text"] == "bad":
            raise ValueError("broken")
        self.here -= 1
        return await super().run(args, env)


def results(door: Any, session: str) -> list[str]:
    messages = door.live(session).messages
    blocks = [b for m in messages for b in m.content if isinstance(b, ToolResult)]
    return [b.content[0].text for b in blocks]


async def test_they_run_together_and_answer_in_order() -> None:
    looks = Meeting("look", "read", 3)
    script = Scripted([turn(*(call("look", text=t) for t in ("a", "bad", "c"))), say("done")])
    door = memory_door(script, [looks], mode="full")
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    async with asyncio.timeout(60):
        await (await door.prompt(session, (Text("go"),), ME)).done
    assert looks.most == 3
    assert [text[:4] for text in results(door, session)] == ["a", "look", "c"]


async def test_at_most_eight_and_none_beside_what_acts() -> None:
    looks = Meeting("look", "search", 1)
    acts = Meeting("act", "execute", 1)
    calls = [call("look", text=str(n)) for n in range(11)]
    calls[4:4] = [call("act", text="x"), call("act", text="y")]
    script = Scripted([turn(*calls), say("done")])
    door = memory_door(script, [looks, acts], mode="full")
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    await (await door.prompt(session, (Text("go"),), ME)).done
    assert results(door, session) == [*"0123", "x", "y", *(str(n) for n in range(4, 11))]
    assert looks.most <= 8 and acts.most == 1


async def test_cancelling_ends_them_all_with_a_result_each() -> None:
    looks = Meeting("look", "read", 99)
    script = Scripted([turn(*(call("look", text=t) for t in "abc")), turn(hang())])
    door = memory_door(script, [looks], mode="full")
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    work = await door.prompt(session, (Text("go"),), ME)
    await looks.third.wait()
    door.cancel(session)
    assert (await work.done).outcome == "cancelled"
    assert len(results(door, session)) == 3 and not door.live(session).journal
