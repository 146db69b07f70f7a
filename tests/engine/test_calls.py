"""The life of a tool call: looked at, denied, run side by side, and what hooks say of it."""

import asyncio
from typing import Any

from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text, ToolResult
from dragoman.engine.door import Door
from dragoman.engine.hooks import Executed, HookContext
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, turn


async def start(door: Door, **spec: Any) -> tuple[str, Tape]:
    info = await door.open(OpenSpec(cwd="/", **spec), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None)
    return info.id, tape


async def results(door: Door, sid: str) -> list[str]:
    """The texts of all tool results, in their order."""
    found = [block for one in await door.messages(sid) for block in one.content]
    return [
        " ".join(part.text for part in block.content if isinstance(part, Text))
        for block in found
        if isinstance(block, ToolResult)
    ]


async def test_what_a_hook_says_after_a_call_is_told_to_the_model() -> None:
    script = Scripted([turn(call("echo", text="a"), call("echo", text="b")), "ok"])
    door = memory_door(script, [EchoTool()], mode="full")
    heard: list[tuple[str, str, str]] = []

    async def after(told: Executed, context: HookContext) -> str:
        heard.append((told.tool, told.result, context.session))
        return "Format it." if told.result == "a" else ""

    host_of(door).hooks.after = after
    sid, _ = await start(door)
    await (await door.prompt(sid, (Text("go"),), ME)).done
    assert heard == [("echo", "a", sid), ("echo", "b", sid)]
    assert await results(door, sid) == ["a \nFormat it.", "b"]


class Waits(EchoTool):
    """Ends only when it is told to, the later one first."""

    def __init__(self) -> None:
        super().__init__("look", "read")
        self.gates: dict[str, asyncio.Event] = {}

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        name = str(args["text"])
        env.progress("")  # nothing: nobody is told
        env.progress(f"looking at {name}")
        await self.gates.setdefault(name, asyncio.Event()).wait()
        return Outcome((Text(name),))


async def test_calls_that_run_side_by_side_end_in_their_order() -> None:
    tool = Waits()
    script = Scripted([turn(call("look", text="a"), call("look", text="b")), "ok"])
    door = memory_door(script, [tool], mode="full")
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    await tape.until(ev.Progress, lambda e: "looking at b" in e.body.text)
    assert [body.text for body in tape.of(ev.Progress)] == ["looking at a", "looking at b"]
    tool.gates["b"].set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert tape.of(ev.CallEnded) == []  # it waits for the one before it
    tool.gates["a"].set()
    await work.done
    assert await results(door, sid) == ["a", "b"]
