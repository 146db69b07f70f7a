"""Apps that change what passes: in order, all or nothing, and never half a message."""

import asyncio

import pytest
from msgspec.structs import replace
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.hooks import Block
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call, hang, say, turn


class Interceptor:
    def __init__(self, said, name="app"):
        self.name = name
        self.said = said
        self.seen = []

    def observe(self, hook, data, context):
        self.seen.append((hook, data))

    async def intercept(self, hook, data, context):
        self.seen.append((hook, data))
        return self.said(data) if callable(self.said) else self.said


async def start(door):
    info = await door.open(OpenSpec(cwd="/"), ME)
    tape = Tape()
    await door.watch(info.id, ME, tape, lambda said: None, exact=True)
    return info.id, tape


async def test_each_interceptor_sees_what_the_one_before_made():
    door = memory_door(Scripted([say("Hello", deltas=5)]))
    first = Interceptor(lambda data: replace(data, content=data.content + "!"), "a")
    second = Interceptor(lambda data: replace(data, content=data.content.upper()), "b")
    for one in (first, second):
        door.hooks.subscribe("message_sending", one, intercepts=True)
    sid, tape = await start(door)
    await (await door.prompt(sid, (Text("hi"),), ME)).done
    assert second.seen[0][1].content == "Hello!"
    assert tape.text() == "HELLO!"
    assert tape.of(ev.Spoke)[0].content == (Text("HELLO!"),)


async def test_a_blocked_message_never_leaves():
    door = memory_door(Scripted([say("secret", deltas=3)]))
    door.hooks.subscribe("message_sending", Interceptor(Block("not that")), intercepts=True)
    sid, tape = await start(door)
    await (await door.prompt(sid, (Text("hi"),), ME)).done
    assert "secret" not in tape.text()
    assert "not that" in tape.text()


@pytest.mark.parametrize("there_first", [True, False])
async def test_an_app_that_comes_or_goes_meanwhile_does_not_split_a_message(there_first):
    script = Scripted([turn(say("one "), hang(), say("two"))])
    door = memory_door(script)
    app = Interceptor(None)
    if there_first:
        door.hooks.subscribe("message_sending", app, intercepts=True)
    sid, tape = await start(door)
    work = await door.prompt(sid, (Text("hi"),), ME)
    await asyncio.wait_for(script.hanging.wait(), 60)
    if there_first:
        door.hooks.forget(app)
    else:
        door.hooks.subscribe("message_sending", app, intercepts=True)
    script.release()
    await work.done
    assert tape.text() == "one two"


async def test_a_blocked_call_does_not_run_and_says_why():
    tool = EchoTool()
    door = memory_door(Scripted([call("echo", text="rm"), "ok"]), [tool], mode="full")
    door.hooks.subscribe("tool_executing", Interceptor(Block("no rm")), intercepts=True)
    sid, tape = await start(door)
    await (await door.prompt(sid, (Text("hi"),), ME)).done
    assert tool.ran == []
    ended = tape.of(ev.CallEnded)[0]
    assert ended.outcome == "denied" and ended.content == (Text("Blocked: no rm"),)
