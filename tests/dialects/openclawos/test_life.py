"""Registering, tokens, heartbeats, taking over, coming back."""

import json
import time

import pytest

from .talking import FULL, Talker, app, desk_of, manifest


async def test_before_registering_nothing_else_is_answered():
    talker = Talker(desk_of())
    for method in ("app.heartbeat", "nope", "hook.result"):
        error = await talker.refused(method, {})
        assert error == {"code": "APP_NOT_REGISTERED", "message": "Must call app.register first"}


async def test_registering_gives_a_token_and_the_version():
    talker = Talker(desk_of())
    result = await talker.call("app.register", {"manifest": manifest(**FULL)})
    assert set(result) == {"appId", "token", "protocolVersion"}
    assert result["appId"] == "@test/app" and result["token"]
    assert result["protocolVersion"] == "1.0"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Invalid manifest"),
        (None, "Invalid manifest"),
        ({"manifest": None}, "Invalid manifest"),
        ({"manifest": [1]}, "Invalid manifest"),
        (
            {"manifest": {"id": "a", "type": "app"}},
            "Missing required manifest fields: id, type, protocol.version",
        ),
        (
            {"manifest": {"id": "", "type": "app", "protocol": {"version": "1.0"}}},
            "Missing required manifest fields: id, type, protocol.version",
        ),
        (
            {"manifest": {"id": "a", "type": "banana", "protocol": {"version": "1.0"}}},
            'Invalid manifest: type must be one of app, skill, agent, extension, not "banana"',
        ),
        (
            {"manifest": {**manifest(), "capabilities": {"tools": {"provides": "t1"}}}},
            "Invalid manifest: capabilities.tools.provides: expected `array | null`, got `str`",
        ),
    ],
)
async def test_a_bad_manifest_is_refused_and_the_connection_stays(params, message):
    talker = Talker(desk_of())
    error = await talker.refused("app.register", params)
    assert error == {"code": "INVALID_PARAMS", "message": message}
    await talker.call("app.register", {"manifest": manifest()})


async def test_unknown_parts_of_a_manifest_are_allowed():
    talker = Talker(desk_of())
    given = {
        "id": "a", "type": "extension", "protocol": {"version": "99.7", "x": 1}, "tags": 5,
        "capabilities": {"ui": {"tabs": []}, "channels": None},
    }  # fmt: skip
    assert (await talker.call("app.register", {"manifest": given}))["appId"] == "a"


async def test_heartbeats():
    talker = await app(desk_of())
    for params in ({}, None, {"status": {"status": "healthy"}}, {"status": None}):
        before = int(time.time() * 1000)
        result = await talker.call("app.heartbeat", params)
        assert set(result) == {"ok", "serverTime"} and result["ok"] is True
        assert before - 1000 <= result["serverTime"] <= before + 5000
    talker.end.send(b'{"id":"bare","type":"request","method":"app.heartbeat"}')
    assert (await talker.answer("bare"))["success"]
    assert (await talker.refused("app.heartbeat", {"status": 5}))["code"] == "INVALID_PARAMS"
    assert (await talker.refused("app.heartbeat", [1]))["code"] == "INVALID_PARAMS"


async def test_the_token_is_checked_when_it_is_there():
    desk = desk_of()
    first, second = await app(desk, "@a/a"), await app(desk, "@b/b")
    await first.call("app.heartbeat", {}, token=first.token)
    await first.call("app.heartbeat", {})
    for token in ("wrong", second.token, ""):
        error = await first.refused("app.heartbeat", {}, token=token)
        assert error == {
            "code": "UNAUTHORIZED",
            "message": "Invalid or missing authentication token",
        }
    error = await first.refused("nope", {}, token="wrong")
    assert error["code"] == "UNAUTHORIZED"  # who asks comes before what


async def test_the_token_can_be_made_a_must():
    desk = desk_of(settings={"require_token": True})
    talker = Talker(desk)
    token = (await talker.call("app.register", {"manifest": manifest()}))["token"]
    assert (await talker.refused("app.heartbeat", {}))["code"] == "UNAUTHORIZED"
    await talker.call("app.heartbeat", {}, token=token)


async def test_unknown_methods():
    talker = await app(desk_of())
    error = await talker.refused("nope", {})
    assert error == {"code": "METHOD_NOT_FOUND", "message": "Unknown method: nope"}


async def test_ready_and_shutdown():
    desk = desk_of()
    talker = await app(desk)
    assert await talker.call("app.ready", {}) == {"ok": True}
    assert await talker.call("app.ready", {"metadata": {"a": 1}}) == {"ok": True}
    assert desk.status()[0]["state"] == "ready"
    told = []
    desk.on_shutdown = lambda app, timeout: told.append((app, timeout))
    assert await talker.call("app.shutdown", {"reason": "done", "timeout": 500}) == {"ok": True}
    assert told == [("@test/app", 500)]
    assert desk.status()[0]["state"] == "shutting_down"
    await talker.call("app.heartbeat", {})  # until it closes
    talker.end.end()
    with pytest.raises(EOFError):  # our side closes too: the app's library waits for that
        await talker.end.receive()
    assert desk.apps == {}


async def test_registering_again_on_the_same_connection():
    desk = desk_of()
    talker = await app(desk, grant=(("channel", {"id": "telegram"}),), **FULL)
    old = talker.token
    fresh = await talker.call("app.register", {"manifest": manifest(**FULL)}, token=old)
    assert fresh["token"] != old
    assert (await talker.refused("app.heartbeat", {}, token=old))["code"] == "UNAUTHORIZED"
    await talker.call("app.heartbeat", {}, token=fresh["token"])
    granted = {"type": "channel", "config": {"id": "telegram"}}
    assert (await talker.call("capability.register", granted))["granted"]


async def test_another_id_on_the_same_connection_replaces_the_first():
    desk = desk_of()
    talker = await app(desk, "@a/a")
    await talker.call("app.register", {"manifest": manifest("@b/b")})
    assert list(desk.apps) == ["@b/b"]


async def test_the_newest_connection_of_an_app_wins():
    desk = desk_of()
    old = await app(desk, hears=("message_received",), grant=(("tool", {"name": "t1"}),), **FULL)
    new = await app(desk, hears=("message_received",), grant=(("tool", {"name": "t1"}),), **FULL)
    with pytest.raises(EOFError):
        while True:
            await old.end.receive()
    await new.call("agent.queue", {"sessionKey": "k", "text": "hi"})
    assert (await new.event("hook:message_received"))["data"]["content"] == "hi"
    assert len(desk.apps) == 1


async def test_with_required_tokens_a_living_app_is_not_displaced():
    desk = desk_of(settings={"require_token": True, "heartbeat_timeout_secs": 90})
    first = Talker(desk)
    await first.call("app.register", {"manifest": manifest()})
    second = Talker(desk)
    error = await second.refused("app.register", {"manifest": manifest()})
    assert error["code"] == "CONFLICT"
    now, moment = desk.passed(), desk.now()
    desk.now = lambda: moment + 91_000  # a clock that is set makes nobody silent
    assert (await second.refused("app.register", {"manifest": manifest()}))["code"] == "CONFLICT"
    desk.passed = lambda: now + 91  # the first one is silent
    await second.call("app.register", {"manifest": manifest()})


async def test_everything_is_taken_back_when_an_app_leaves():
    desk = desk_of()
    mine = (("channel", {"id": "telegram"}), ("tool", {"name": "t1"}), ("provider", {"id": "p1"}))
    talker = await app(desk, grant=mine, hears=("message_sending",), **FULL)
    assert len(desk.door.offers.all()) == 3
    assert desk.door.hooks.intercepted("message_sending")
    await talker.leave()
    other = await app(desk, "@other/app", grant=mine, **FULL)
    assert len(desk.door.offers.all()) == 3
    assert not desk.door.hooks.intercepted("message_sending")
    assert {offer.app for offer in desk.door.offers.all()} == {"@other/app"}
    await other.silence()


async def test_an_app_comes_back_with_its_token_alone():
    desk = desk_of(["one"])
    talker = await app(
        desk, grant=(("channel", {"id": "telegram"}),), hears=("message_received",), **FULL
    )
    before = list(desk.apps["@test/app"].grants)
    await talker.leave()
    again = Talker(desk)
    assert (await again.refused("app.heartbeat", {}))["code"] == "APP_NOT_REGISTERED"
    assert (await again.refused("app.heartbeat", {}, token="x"))["code"] == "APP_NOT_REGISTERED"
    await again.call("app.heartbeat", {}, token=talker.token)
    assert list(desk.apps["@test/app"].grants) == before
    await again.call("agent.queue", {"sessionKey": "telegram:1", "text": "hi"})
    assert (await again.event("hook:message_received"))["data"]["content"] == "hi"
    assert (await again.event("hook:message_sending"))["data"]["content"] == "one"


async def test_silent_apps_are_shown_as_stale_and_kept():
    desk = desk_of(settings={"heartbeat_timeout_secs": 90})
    talker = await app(desk)
    now = desk.passed()
    assert desk.status()[0]["stale"] is False
    desk.passed = lambda: now + 91
    assert desk.door.facts.connected_apps()[0]["stale"] is True
    await talker.call("app.heartbeat", {})
    assert desk.status()[0]["stale"] is False


async def test_the_protocol_documents_lines_byte_for_byte():
    desk = desk_of()
    desk.now = lambda: 1707000000001
    desk.new_token = lambda: "secret123"
    talker = Talker(desk)
    talker.end.send(
        b'{"id":"a1b2c3","type":"request","timestamp":1707000000000,"method":"app.register",'
        b'"params":{"manifest":{"id":"@openclawos/telegram","name":"Telegram","version":"1.0.0",'
        b'"type":"app","main":"dist/index.js","protocol":{"version":"1.0"},"capabilities":'
        b'{"channels":{"provides":["telegram"]}}}}}'
    )
    line = await talker.end.receive()
    made = json.loads(line)["id"].encode()
    assert line.replace(made, b"d4e5f6") == (
        b'{"id":"d4e5f6","type":"response","timestamp":1707000000001,"requestId":"a1b2c3",'
        b'"success":true,"result":{"appId":"@openclawos/telegram","token":"secret123",'
        b'"protocolVersion":"1.0"}}'
    )
    granted = {"type": "channel", "config": {"channelId": "telegram", "id": "telegram"}}
    assert (await talker.call("capability.register", granted))["granted"]
    told = await talker.call("hook.subscribe", {"events": ["message_sending"]})
    assert told == {"subscribed": ["message_sending"], "denied": []}
    await talker.call("app.ready", {})
    desk.now = lambda: 1707000000500
    offer = desk.door.offers.find("channel", "telegram")
    from dragoman.engine.hooks import HookContext, Outgoing

    data = Outgoing(content="Hello!", channel="telegram", target="123456")

    await desk.door.hooks.run("message_sending", data, HookContext())
    line = await talker.end.receive()
    message = json.loads(line)
    line = line.replace(message["id"].encode(), b"g7h8i9")
    line = line.replace(message["payload"]["eventId"].encode(), b"evt123")
    assert line == (
        b'{"id":"g7h8i9","type":"event","timestamp":1707000000500,"event":"hook:message_sending",'
        b'"payload":{"eventId":"evt123","hookName":"message_sending","data":{"channelId":'
        b'"telegram","target":"123456","content":"Hello!"},"context":{"timestamp":1707000000500}}}'
    )
    assert offer is not None and await offer.call({"target": "1", "content": "x"})  # type: ignore[misc]
    assert (await talker.event())["data"]["content"] == "x"
