"""Sessions by key: queued, listed, answered through their channel."""

import pytest

from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Correspondent
from dragoman.testing.host import host_of
from dragoman.testing.script import Scripted, hang

from .talking import FULL, app, desk_of

ME = Who("test", id="me")


async def test_nothing_is_there_at_first():
    talker = await app(desk_of())
    assert await talker.call("session.get", {"key": "telegram:1"}) == {"session": None}
    assert await talker.call("session.list", None) == {"sessions": [], "total": 0}
    assert (await talker.refused("session.get", {}))["code"] == "INVALID_PARAMS"


async def test_a_queued_message_makes_its_session_and_is_answered():
    desk = desk_of(["Hello!", "Again!"])
    talker = await app(desk, grant=(("channel", {"id": "telegram"}),), **FULL)
    meta = {"channelId": "telegram", "from": "123456", "chatId": 9, "accountId": "acc"}
    asked = {"sessionKey": "telegram:123456", "text": "hi", "metadata": meta}
    answer = await talker.call("agent.queue", asked)
    assert answer["queued"] is True and answer["runId"]
    event = await talker.event("hook:message_sending")
    assert event["data"] == {
        "channelId": "telegram", "target": "123456", "content": "Hello!", "metadata": meta,
    }  # fmt: skip
    assert event["context"]["sessionKey"] == "telegram:123456"
    assert event["context"]["channelId"] == "telegram" and event["context"]["accountId"] == "acc"
    await talker.call("agent.queue", {**asked, "metadata": {**meta, "chatId": 10}})
    assert (await talker.event())["data"]["metadata"]["chatId"] == 10
    await desk.door.idle((await desk.door.find(Correspondent, key="telegram:123456")).id)
    found = (await talker.call("session.get", {"key": "telegram:123456"}))["session"]
    assert set(found) == {"key", "agentId", "channelId", "accountId", "createdAt",
                          "lastActiveAt", "messageCount"}  # fmt: skip
    assert found["key"] == "telegram:123456" and found["channelId"] == "telegram"
    assert found["createdAt"] <= found["lastActiveAt"] and found["messageCount"] == 4
    sent = {"sessionKey": "telegram:123456", "content": "by the way"}
    assert (await talker.call("message.dispatch", sent))["queued"] is True
    data = (await talker.event())["data"]
    assert data["content"] == "by the way" and data["metadata"]["chatId"] == 10
    assert data["target"] == "123456"


async def test_two_first_messages_make_one_session():
    script = Scripted(["one", "two"])
    desk = desk_of(script)
    talker = await app(desk)
    ids = [talker.ask("agent.queue", {"sessionKey": "k", "text": str(n)}) for n in range(2)]
    runs = [(await talker.answer(id))["result"]["runId"] for id in ids]
    assert len(set(runs)) == 2
    page = await desk.door.list()
    assert len(page.sessions) == 1
    await desk.door.idle(page.sessions[0].id)
    assert [request.messages[-1].content[0].text for request in script.requests] == ["0", "1"]


async def test_lists_filters_and_pages():
    desk = desk_of(["a", "b", "c"])
    talker = await app(desk)
    for key in ("telegram:1", "telegram:2", "irc:1"):
        await talker.call("agent.queue", {"sessionKey": key, "text": "x"})
    for info in desk.door.live_infos():
        await desk.door.idle(info.id)

    async def listed(filter=None, **more):
        result = await talker.call("session.list", {"filter": filter, **more})
        return sorted(s["key"] for s in result["sessions"]), result["total"]

    everything = ["irc:1", "telegram:1", "telegram:2"]
    assert await listed() == (everything, 3)
    assert await listed({"channelId": "irc"}) == (["irc:1"], 1)
    assert await listed({"channelId": "none"}) == ([], 0)
    assert await listed({"agentId": "default"}) == (everything, 3)
    assert await listed({"agentId": "x"}) == ([], 0)
    assert await listed({"active": True}) == ([], 0)
    assert await listed({"active": False}) == (everything, 3)
    assert await listed(limit=0) == (everything, 3)
    for offset, count in ((0, 1), (1, 1), (2, 1), (3, 0)):
        keys, total = await listed(limit=1, offset=offset)
        assert (len(keys), total) == (count, 3)
    assert (await talker.refused("session.list", {"limit": -1}))["code"] == "INVALID_PARAMS"
    assert (await talker.refused("session.list", {"limit": "x"}))["code"] == "INVALID_PARAMS"


async def test_a_sub_agent_is_seen_with_its_parent():
    desk = desk_of(["one"])
    talker = await app(desk)
    info = await desk.door.open(OpenSpec(cwd="/"), ME)
    child = await desk.door.open(OpenSpec(cwd="/", parent=info.id), ME)
    assert (await talker.call("session.get", {"key": child.id}))["session"]["parent"] == info.id


async def test_sessions_of_other_protocols_are_seen_and_driven():
    desk = desk_of(["one", "two"])
    talker = await app(desk)
    info = await desk.door.open(OpenSpec(cwd="/"), ME)
    await (await desk.door.prompt(info.id, (Text("hi"),), ME)).done
    found = (await talker.call("session.get", {"key": info.id}))["session"]
    assert found["messageCount"] == 2 and not {"mode", "parent"} & {*found}
    await desk.door.set_mode(info.id, "plan")
    assert (await talker.call("session.get", {"key": info.id}))["session"]["mode"] == "plan"
    await talker.call("agent.queue", {"sessionKey": info.id, "text": "more"})
    await desk.door.idle(info.id)
    assert (await desk.door.info(info.id)).messages == 4
    assert len((await desk.door.list()).sessions) == 1


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("agent.queue", {}),
        ("agent.queue", None),
        ("agent.queue", {"sessionKey": "k"}),
        ("agent.queue", {"sessionKey": "", "text": "x"}),
        ("agent.queue", {"sessionKey": "k", "text": " "}),
        ("agent.queue", {"sessionKey": "k", "text": "x", "metadata": 5}),
        ("agent.queue", {"sessionKey": "k" * 2000, "text": "x"}),
        ("message.dispatch", {"content": "x"}),
        ("message.dispatch", {"sessionKey": "k"}),
        ("message.dispatch", {"sessionKey": 5, "content": "x"}),
    ],
)
async def test_bad_parameters(method, params):
    talker = await app(desk_of())
    assert (await talker.refused(method, params))["code"] == "INVALID_PARAMS"


async def test_nobody_brings_messages_in_another_apps_name():
    desk = desk_of(["x"])
    owner = await app(desk, "@o/o", grant=(("channel", {"id": "telegram"}),), **FULL)
    other = await app(desk, "@b/b")
    named = {"sessionKey": "k", "text": "x", "metadata": {"channelId": "telegram"}}
    keyed = {"sessionKey": "telegram:1", "text": "x"}
    for asked in (named, keyed, {**keyed, "metadata": {"channelId": 5}}):
        error = await other.refused("agent.queue", asked)
        assert error["code"] == "CAPABILITY_DENIED" and '"@o/o"' in error["message"]
    assert not (await desk.door.list()).sessions
    await owner.leave()
    assert (await other.call("agent.queue", keyed))["queued"]  # nobody's channel is everybody's


async def test_a_full_queue_is_a_conflict():
    script = Scripted([hang(), *["x"] * 70])
    desk = desk_of(script)
    talker = await app(desk)
    ids = [talker.ask("agent.queue", {"sessionKey": "k", "text": "x"}) for _ in range(70)]
    answers = [await talker.answer(id) for id in ids]
    refused = [a["error"]["code"] for a in answers if not a["success"]]
    assert refused and set(refused) == {"CONFLICT"}
    assert len(refused) in (5, 6)  # 64 may wait; the first may run already
    await host_of(desk.door).stop(1.0)


async def test_a_message_to_nobodys_channel_is_not_queued():
    talker = await app(desk_of())
    sent = {"sessionKey": "irc:5", "content": "x"}
    answer = await talker.call("message.dispatch", sent)
    assert answer["queued"] is False and answer["dispatchId"]


async def test_a_store_that_fails_is_an_internal_error():
    desk = desk_of()
    talker = await app(desk)

    async def broken(query):
        raise StoreFailed("the disk is full")

    host_of(desk.door).store.list = broken
    error = await talker.refused("session.list", {})
    assert error == {"code": "INTERNAL_ERROR", "message": "the disk is full"}

    async def defect(**extra):
        raise RuntimeError("a defect")

    host_of(desk.door).store.find = defect
    told = []
    desk.door.trouble = lambda what, error, **data: told.append(what)
    error = await talker.refused("session.get", {"key": "k"})
    assert error == {"code": "INTERNAL_ERROR", "message": "RuntimeError: a defect"}
    assert told == ["openclawos request broke"]
