"""Hooks: who hears what, who may change it, and what happens when an app says nothing."""

import asyncio
import time

import pytest

from dragoman.dialects.openclawos.speak import Voice
from dragoman.engine.content import Text
from dragoman.engine.events import Noted, Who
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import EchoTool
from dragoman.testing.script import call

from .talking import FULL, app, desk_of

ME = Who("test", id="me")
OWNER = (("channel", {"id": "telegram"}),)
MODERATOR = {"hooks": {"intercepts": ["message_sending"]}}


async def turn(desk, text="hi"):
    info = await desk.door.open(OpenSpec(cwd="/"), ME)
    return await desk.door.prompt(info.id, (Text(text),), ME)


async def test_subscribing_follows_the_manifest():
    talker = await app(desk_of(), **FULL)
    asked = {"events": ["message_received", "message_sending", "agent_end", "message_received"]}
    assert await talker.call("hook.subscribe", asked) == {
        "subscribed": ["message_received", "message_sending", "message_received"],
        "denied": ["agent_end"],
    }
    for params in ({}, {"events": "abc"}, {"events": [1]}, {"events": None}, [], 5):
        assert (await talker.refused("hook.subscribe", params))["code"] == "INVALID_PARAMS"
    named = {"events": ["tool_executing"]}
    assert await talker.call("hook.unsubscribe", named) == {"unsubscribed": ["tool_executing"]}


async def test_an_app_with_a_channel_hears_what_is_sent_though_it_declares_no_hooks():
    talker = await app(desk_of(), channels={"provides": ["telegram"]})
    told = await talker.call("hook.subscribe", {"events": ["message_sending", "tool_executing"]})
    assert told == {"subscribed": ["message_sending"], "denied": ["tool_executing"]}


async def test_all_six_hooks_and_their_other_names():
    names = ["message_received", "message_sending", "agent_starting", "agent_completed",
             "tool_executing", "tool_completed"]  # fmt: skip
    others = ["before_agent_start", "agent_end", "before_tool_call", "after_tool_call"]
    desk = desk_of([call("echo", text="x"), "done"], [EchoTool()], mode="full")
    seed = await app(desk, "@a/a", hears=tuple(names), hooks={"subscribes": names})
    real = await app(desk, "@b/b", hears=tuple(others), hooks={"subscribes": others})
    work = await turn(desk)
    await work.done
    seen = {}
    for _ in range(6):
        payload = await seed.event()
        assert set(payload) == {"eventId", "hookName", "data", "context"}
        assert payload["context"]["agentId"] == "default"
        assert payload["context"]["sessionKey"] and payload["context"]["timestamp"]
        seen[payload["hookName"]] = payload["data"]
    assert list(seen) == ["message_received", "agent_starting", "tool_executing",
                          "tool_completed", "message_sending", "agent_completed"]  # fmt: skip
    assert seen["message_received"]["content"] == "hi"
    assert seen["tool_executing"]["toolName"] == "echo"
    assert seen["tool_executing"]["params"] == {"text": "x"}
    assert seen["tool_completed"]["result"] == "x"
    assert seen["message_sending"]["content"] == "done"
    assert seen["agent_completed"]["runId"] == work.turn
    heard = [(await real.event())["hookName"] for _ in range(4)]
    assert heard == ["before_agent_start", "before_tool_call", "after_tool_call", "agent_end"]
    await seed.silence()


async def test_nothing_is_delivered_before_ready():
    desk = desk_of(["one", "two"])
    talker = await app(desk, ready=False, hears=("message_sending", "message_received"), **FULL)
    await (await turn(desk)).done
    await talker.silence()
    await talker.call("app.ready", {})
    work = await turn(desk)
    assert (await talker.event())["hookName"] == "message_received"
    await talker.result(await talker.event("hook:message_sending"), {})
    await work.done


async def test_a_dispatched_message_is_changed_on_its_way():
    desk = desk_of()
    owner = await app(desk, "@o/o", grant=OWNER, hears=("message_sending",), **FULL)
    first = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    second = await app(desk, "@b/b", hears=("message_sending",), **MODERATOR)
    sent = {"sessionKey": "telegram:1", "content": "hello", "metadata": {"chatId": 5}}
    answer = await second.call("message.dispatch", sent)
    assert answer["dispatchId"] and answer["queued"] is True
    event = await first.event("hook:message_sending")
    assert event["hookName"] == "message_sending"
    assert event["data"] == {
        "channelId": "telegram", "target": "1", "content": "hello", "metadata": {"chatId": 5},
    }  # fmt: skip
    assert event["context"]["sessionKey"] == "telegram:1"
    await owner.silence()  # it gets the message only when everybody has agreed
    assert await first.result(event, {"content": "HELLO"})
    event = await second.event("hook:message_sending")
    assert event["data"]["content"] == "HELLO"
    assert await second.result(event, {**event["data"], "content": "HELLO!"})
    assert (await owner.event("hook:message_sending"))["data"] == {
        "channelId": "telegram", "target": "1", "content": "HELLO!", "metadata": {"chatId": 5},
    }  # fmt: skip


@pytest.mark.parametrize("no", [None, {"cancel": True}, {"block": True, "blockReason": "x"}])
async def test_a_no_ends_the_chain(no):
    desk = desk_of()
    owner = await app(desk, "@o/o", grant=OWNER, hears=("message_sending",), **FULL)
    first = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    second = await app(desk, "@b/b", hears=("message_sending",), **MODERATOR)
    await owner.call("message.dispatch", {"sessionKey": "telegram:1", "content": "bad"})
    assert await first.result(await first.event(), no)
    await second.silence()
    await owner.silence()


async def test_a_late_result_changes_nothing():
    desk = desk_of()
    desk.door.hooks.timeout = 0.02
    owner = await app(desk, "@o/o", grant=OWNER, hears=("message_sending",), **FULL)
    slow = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    await owner.call("message.dispatch", {"sessionKey": "telegram:1", "content": "same"})
    event = await slow.event()
    assert (await owner.event())["data"]["content"] == "same"
    assert await slow.result(event, {"content": "changed"}) is False


@pytest.mark.parametrize("way", ["leaves", "unsubscribes", "closes"])
async def test_an_app_that_goes_does_not_hold_up_what_it_was_asked_about(way):
    desk = desk_of()
    desk.door.hooks.timeout = 60
    owner = await app(desk, "@o/o", grant=OWNER, hears=("message_sending",), **FULL)
    gone = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    await owner.call("message.dispatch", {"sessionKey": "telegram:1", "content": "on"})
    await gone.event()
    match way:
        case "leaves":
            await gone.leave()
        case "unsubscribes":
            await gone.call("hook.unsubscribe", {"events": ["message_sending"]})
        case "closes":
            gone.end.end()
    async with asyncio.timeout(60):
        assert (await owner.event())["data"]["content"] == "on"


async def test_results_of_observers_strangers_and_repeats_count_for_nothing():
    desk = desk_of()
    owner = await app(desk, "@o/o", grant=OWNER, **FULL)
    asked = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    looks = {"hooks": {"subscribes": ["message_sending"]}}
    observer = await app(desk, "@b/b", hears=("message_sending",), **looks)
    await owner.call("message.dispatch", {"sessionKey": "telegram:1", "content": "text"})
    event = await asked.event()
    assert await observer.result(event, {"content": "mine"}) is False
    assert await asked.result({"eventId": "nothing"}, {}) is False
    assert await asked.result(event, {"content": "TEXT"}) is True
    assert await asked.result(event, {"content": "again"}) is False
    seen = await observer.event()
    assert seen["data"]["content"] == "TEXT"
    assert await observer.result(seen, {"content": "mine"}) is False
    assert (await owner.event())["data"]["content"] == "TEXT"
    for params in ({}, {"eventId": 5}, {"result": {}}):
        assert (await asked.refused("hook.result", params))["code"] == "INVALID_PARAMS"


async def test_a_channel_app_is_never_asked_about_its_own_messages():
    desk = desk_of(["Hello!"])
    desk.door.hooks.timeout = 60
    talker = await app(desk, grant=OWNER, hears=("message_sending",), **FULL)
    await talker.call("agent.queue", {"sessionKey": "telegram:7", "text": "hi"})
    event = await talker.event("hook:message_sending")
    assert event["data"]["content"] == "Hello!" and event["data"]["target"] == "7"
    assert await talker.result(event, {"content": "x"}) is False
    await talker.silence()


async def test_a_channel_app_that_never_answers_is_waited_for_once():
    desk = desk_of(["said"])
    desk.door.hooks.timeout = 0.05
    talker = await app(desk, grant=OWNER, hears=("message_sending",), **FULL)
    await (await turn(desk)).done
    assert (await talker.event())["data"]["content"] == "said"
    desk.door.hooks.timeout = 60
    async with asyncio.timeout(60):
        await (await turn(desk)).done
    event = await talker.event()
    assert event["data"]["content"] == "said"
    assert await talker.result(event, {}) is False  # it answers after all: ask it again
    work = await turn(desk)
    assert await talker.result(await talker.event(), {"content": "THREE"})
    assert (await work.done).text == "THREE"


async def test_an_app_that_does_not_answer_twice_is_passed_over_until_it_does():
    tool = EchoTool()
    desk = desk_of([call("echo", text="a"), "done"] * 4, [tool], mode="full")
    desk.door.hooks.timeout = 0.05
    hooks = {"hooks": {"intercepts": ["tool_executing"]}}
    talker = await app(desk, hears=("tool_executing",), **hooks)
    info = await desk.door.open(OpenSpec(cwd="/"), ME)

    async def go():
        await (await desk.door.prompt(info.id, (Text("hi"),), ME)).done
        return await talker.event("hook:tool_executing")

    await go()
    assert not desk.status()[0]["passed_over"], "once may happen"
    late = await go()
    desk.door.hooks.timeout = 60
    async with asyncio.timeout(60):
        await go()
    assert desk.status()[0]["passed_over"] and len(tool.ran) == 3
    notes = [e.body for e in await desk.door.history(info.id) if isinstance(e.body, Noted)]
    assert [note.level for note in notes] == ["warning"] and "passed over" in notes[0].title

    assert await talker.result(late, {}) is False  # it answers after all: it is asked again
    work = await desk.door.prompt(info.id, (Text("hi"),), ME)
    event = await talker.event("hook:tool_executing")
    assert await talker.result(event, {"params": {"text": "changed"}})
    await work.done
    assert tool.ran[-1] == {"text": "changed"} and not desk.status()[0]["passed_over"]


async def test_what_telling_an_app_takes_is_not_its_own_silence(monkeypatch):
    tool = EchoTool()
    desk = desk_of([call("echo", text="a"), "done"] * 2, [tool], mode="full")
    desk.door.hooks.timeout = 0.05
    hooks = {"hooks": {"intercepts": ["tool_executing"]}}
    await app(desk, hears=("tool_executing",), **hooks)
    write = Voice.event

    def slowly(*words):
        time.sleep(0.04)  # a busy machine
        return write(*words)

    monkeypatch.setattr(Voice, "event", slowly)
    info = await desk.door.open(OpenSpec(cwd="/"), ME)
    for _ in range(2):
        await (await desk.door.prompt(info.id, (Text("hi"),), ME)).done
    assert desk.status()[0]["passed_over"] and len(tool.ran) == 2


async def test_whoever_leaves_midway_has_not_waited_in_vain():
    """A turn that is cancelled while the app thinks says nothing of the app."""
    desk = desk_of([call("echo", text="a")] * 3, [EchoTool()], mode="full")
    desk.door.hooks.timeout = 60.0
    hooks = {"hooks": {"intercepts": ["tool_executing"]}}
    talker = await app(desk, hears=("tool_executing",), **hooks)
    info = await desk.door.open(OpenSpec(cwd="/"), ME)
    for _ in range(3):
        work = await desk.door.prompt(info.id, (Text("hi"),), ME)
        await talker.event("hook:tool_executing")
        desk.door.cancel(info.id)
        await work.done
    assert not desk.status()[0]["passed_over"]


async def test_an_app_rewrites_what_a_session_says():
    desk = desk_of(["my key is 123"])
    talker = await app(desk, hears=("message_sending",), **MODERATOR)
    work = await turn(desk)
    event = await talker.event()
    assert await talker.result(event, {"content": "my key is ***"})
    assert (await work.done).text == "my key is ***"


async def test_an_app_changes_and_blocks_tool_calls():
    tool = EchoTool()
    desk = desk_of([call("echo", text="a"), call("echo", text="b"), "done"], [tool], mode="full")
    hooks = {"hooks": {"intercepts": ["before_tool_call"]}}
    talker = await app(desk, hears=("before_tool_call",), **hooks)
    work = await turn(desk)
    event = await talker.event("hook:before_tool_call")
    assert await talker.result(event, {"params": {"text": "A"}})
    event = await talker.event()
    assert await talker.result(event, {"block": True, "blockReason": "no b here"})
    await work.done
    assert tool.ran == [{"text": "A"}]
    messages = await desk.door.messages((await desk.door.list()).sessions[0].id)
    assert "Blocked: no b here" in str(messages)


async def test_tool_calls_can_be_made_to_fail_closed():
    tool = EchoTool()
    desk = desk_of([call("echo", text="a"), "done"], [tool], mode="full")
    desk.door.hooks.timeouts["tool_executing"] = 0.02
    desk.door.hooks.fail_closed = frozenset({"tool_executing"})
    hooks = {"hooks": {"intercepts": ["tool_executing"]}}
    talker = await app(desk, hears=("tool_executing",), **hooks)
    await (await turn(desk)).done
    await talker.event()
    assert tool.ran == []


async def test_what_a_subscription_is_like():
    desk = desk_of(["x"])
    desk.door.hooks.timeouts["message_sending"] = 2.5
    talker = await app(desk, hears=("message_sending",), **MODERATOR)
    work = await turn(desk)
    await talker.result(await talker.event(), {})
    await work.done
    assert await talker.call("hook.info", {"event": "message_sending"}) == {
        "event": "message_sending", "hook": "message_sending", "intercepts": True,
        "timeoutMs": 2500, "delivered": 1, "answered": 1,
    }  # fmt: skip
    error = await talker.refused("hook.info", {"event": "tool_executing"})
    assert error["code"] == "HOOK_NOT_SUBSCRIBED"
