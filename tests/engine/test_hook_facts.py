"""Apps are told of every call that ran and every turn, whoever ended it and however."""

import asyncio

import pytest
from tests.engine.tape import ME
from tests.engine.test_recovery import begin, kill, reopen  # noqa: F401

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, turn


class Observer:
    name = "app"

    def __init__(self, *hooks):
        self.seen = []
        self.hooks = hooks

    def listen(self, door):
        for hook in self.hooks:
            door.hooks.subscribe(hook, self, intercepts=False)
        return self

    def observe(self, hook, data, context):
        self.seen.append((hook, context.turn, data))

    def of(self, hook):
        return [(turn, data) for name, turn, data in self.seen if name == hook]


class Hanging:
    """A tool that never comes to its end."""

    spec = ToolSpec("stuck", "hangs", {"type": "object"}, "read")

    def __init__(self):
        self.running = asyncio.Event()

    def summary(self, args):
        return "stuck"

    async def run(self, args, env) -> Outcome:
        self.running.set()
        await asyncio.Event().wait()
        raise AssertionError


def observer():
    return Observer("agent_completed", "tool_completed")


async def test_a_call_and_a_turn_that_end_by_themselves_are_told_once():
    door = memory_door(Scripted([call("echo", text="x"), "done"]), [EchoTool()], mode="full")
    app = observer().listen(door)
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, (Text("go"),), ME)).done
    ((_, tool),) = app.of("tool_completed")
    assert tool.tool == "echo" and tool.args == {"text": "x"} and not tool.is_error
    ((_, agent),) = app.of("agent_completed")
    assert (agent.outcome, agent.text) == ("completed", "done")


@pytest.mark.parametrize("end", ["cancel", "interrupt", "close", "stop"])
async def test_a_tool_that_is_stopped_is_told_of(end):
    tool = Hanging()
    door = memory_door(Scripted([call("stuck", a=1)]), [tool], mode="full")
    app = observer().listen(door)
    info = await door.open(OpenSpec(cwd="/"), ME)
    await door.prompt(info.id, (Text("go"),), ME)
    await asyncio.wait_for(tool.running.wait(), 60)
    match end:
        case "cancel":
            door.cancel(info.id)
            await door.idle(info.id)
        case "interrupt":
            await door.interrupt(info.id)
            await door.idle(info.id)
        case "close":
            await door.close(info.id)
        case _:
            await host_of(door).stop()
    ((_, tool_data),) = app.of("tool_completed")
    assert tool_data.is_error and tool_data.args == {"a": 1} and "cancelled" in tool_data.result
    ((_, agent),) = app.of("agent_completed")
    assert agent.outcome in ("cancelled", "interrupted")


async def test_a_call_that_was_never_run_is_no_completed_tool():
    door = memory_door(Scripted([call("none"), "done"]), mode="full")
    app = observer().listen(door)
    info = await door.open(OpenSpec(cwd="/"), ME)
    await (await door.prompt(info.id, (Text("go"),), ME)).done
    assert not app.of("tool_completed")


async def waiting(reopen):  # noqa: F811
    """A session whose turn waits for an answer since before a restart."""
    script = [call("echo", text="x"), "after"]
    door = await reopen(Scripted(script), [EchoTool()], mode="supervised")
    sid, tape = await begin(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    await tape.until(ev.Asked)
    await kill(door)
    door = await reopen(Scripted(["next"]), [EchoTool()], mode="supervised")
    return door, sid, work.turn


@pytest.mark.parametrize("end", ["cancel", "interrupt"])
async def test_a_turn_that_a_restart_left_and_somebody_ended_is_told_of(reopen, end):  # noqa: F811
    door, sid, left = await waiting(reopen)
    app = observer().listen(door)
    await door.load(sid)
    if end == "cancel":
        door.cancel(sid)
    else:
        await door.interrupt(sid)
    await door.messages(sid)
    await host_of(door).live[sid].ledger.told()
    assert [turn for turn, _ in app.of("agent_completed")] == [left]


async def test_a_turn_that_the_start_itself_ended_is_told_to_apps_that_come_then(reopen):  # noqa: F811
    tool = Hanging()
    door = await reopen(Scripted([call("stuck", a=1)]), [tool], mode="full")
    sid, _ = await begin(door)
    work = await door.prompt(sid, (Text("go"),), ME)
    await asyncio.wait_for(tool.running.wait(), 60)
    await kill(door)
    door = await reopen(Scripted([turn(hang())]), [tool], mode="full")
    assert await host_of(door).recover() == 1
    app = observer().listen(door)
    assert not app.seen
    door.hooks.recall(app)
    assert [turn for turn, _ in app.of("agent_completed")] == [work.turn]
    ((_, data),) = app.of("tool_completed")
    assert data.args == {"a": 1} and data.is_error
    late = Observer("agent_completed").listen(door)
    door.hooks.recall(late)
    assert len(late.of("agent_completed")) == 1 and not late.of("tool_completed")
