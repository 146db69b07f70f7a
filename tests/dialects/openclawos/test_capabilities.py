"""Grants: by the manifest, one owner where there must be one, reasons where not."""

import pytest

from .talking import FULL, app, desk_of


async def offer(talker, kind, config):
    return await talker.call("capability.register", {"type": kind, "config": config})


async def test_a_declared_capability_is_granted():
    talker = await app(desk_of(), **FULL)
    granted = await offer(talker, "tool", {"name": "t1"})
    assert set(granted) == {"capabilityId", "granted"} and granted["granted"] is True
    assert len(granted["capabilityId"]) == 36


@pytest.mark.parametrize(
    ("kind", "config", "reason"),
    [
        ("channel", {"id": "zz"},
         'Channel "zz" not declared in manifest capabilities.channels.provides'),
        ("tool", {"name": "zzz"},
         'Tool "zzz" not declared in manifest capabilities.tools.provides'),
        ("hook", {"event": "x"}, 'Hook "x" not declared in manifest capabilities.hooks'),
        ("gateway_method", {"method": "x"},
         'Gateway method "x" not declared in manifest capabilities.gateway.methods'),
        ("http_route", {"path": "/a/b"},
         'HTTP route "/a/b" not declared in manifest capabilities.gateway.httpRoutes'),
        ("provider", {"providerId": "x"},
         'Provider "x" not declared in manifest capabilities.providers.provides'),
        ("skill", {}, "Invalid capability type: skill"),
        ("", {}, "Invalid capability type: "),
    ],
)  # fmt: skip
async def test_denials_say_why(kind, config, reason):
    talker = await app(desk_of(), **FULL)
    denied = await offer(talker, kind, config)
    assert denied == {"capabilityId": "", "granted": False, "reason": reason}


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"type": "tool"},
        {"config": {"name": "t1"}},
        {"type": None, "config": {"name": "t1"}},
        {"type": 5, "config": {"name": "t1"}},
        {"type": "tool", "config": None},
        {"type": "tool", "config": "t1"},
        {"type": "tool", "config": ["t1"]},
        {"type": "skill"},
        {"type": "tool", "config": {}},
        {"type": "tool", "config": {"name": ""}},
        {"type": "channel", "config": {"name": "telegram"}},
        {"type": "hook", "config": {"event": 5}},
    ],
)
async def test_what_is_no_offer_at_all(params):
    talker = await app(desk_of(), **FULL)
    error = await talker.refused("capability.register", params)
    assert error["code"] == "INVALID_PARAMS" and error["message"].startswith("Invalid params: ")


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("channel", {"channelId": "telegram"}),
        ("channel", {"id": "telegram", "meta": {"name": "T"}}),
        ("tool", {"toolId": "t1"}),
        ("gateway_method", {"methodName": "m.x"}),
        ("gateway_method", {"method": "m.x"}),
        ("http_route", {"route": "/a/*"}),
        ("http_route", {"path": "/a/*"}),
        ("provider", {"providerId": "p1"}),
        ("provider", {"id": "p1"}),
        ("hook", {"event": "message_sending"}),
        ("hook", {"event": "message_received"}),
    ],
)
async def test_both_spellings_of_every_name(kind, config):
    talker = await app(desk_of(), **FULL)
    assert (await offer(talker, kind, config))["granted"]


async def test_channels_tools_and_methods_have_one_owner():
    desk = desk_of()
    first = await app(desk, "@a/a", **FULL)
    second = await app(desk, "@b/b", **FULL)
    taken = {"channel": ("Channel", {"id": "telegram"}, "telegram"),
             "tool": ("Tool", {"name": "t1"}, "t1"),
             "gateway_method": ("Gateway method", {"method": "m.x"}, "m.x")}  # fmt: skip
    for kind, (label, config, name) in taken.items():
        assert (await offer(first, kind, config))["granted"]
        for talker in (first, second):
            denied = await offer(talker, kind, config)
            assert denied["reason"] == f'{label} "{name}" is already registered by app "@a/a"'
    await first.leave()
    for kind, (_, config, _) in taken.items():
        assert (await offer(second, kind, config))["granted"]


async def test_routes_hooks_and_providers_may_be_had_twice():
    desk = desk_of()
    first, second = await app(desk, "@a/a", **FULL), await app(desk, "@b/b", **FULL)
    for kind, config in (("http_route", {"path": "/a/*"}), ("provider", {"id": "p1"}),
                         ("hook", {"event": "message_sending"})):  # fmt: skip
        ids = [(await offer(t, kind, config))["capabilityId"] for t in (first, second)]
        assert ids[0] and ids[1] and ids[0] != ids[1]
    assert desk.door.offers.find("provider", "p1").app == "@a/a"
    await first.leave()
    await second.silence()
    assert desk.door.offers.find("provider", "p1").app == "@b/b"  # the next in line


async def test_unregistering():
    desk = desk_of()
    talker, other = await app(desk, "@a/a", **FULL), await app(desk, "@b/b", **FULL)
    first = (await offer(talker, "channel", {"id": "telegram"}))["capabilityId"]
    for who, expected in ((other, False), (talker, True), (talker, False)):
        assert await who.call("capability.unregister", {"capabilityId": first}) == {"ok": expected}
    assert await talker.call("capability.unregister", {"capabilityId": "x"}) == {"ok": False}
    again = await offer(talker, "channel", {"id": "telegram"})
    assert again["granted"] and again["capabilityId"] != first
    error = await talker.refused("capability.unregister", {})
    assert error["code"] == "INVALID_PARAMS"


async def test_offers_are_there_from_ready_to_shutdown():
    desk = desk_of()
    talker = await app(desk, ready=False, grant=(("tool", {"name": "t1"}),), **FULL)
    assert desk.door.offers.all() == []
    await talker.call("app.ready", {})
    assert [o.name for o in desk.door.offers.all("tool")] == ["t1"]
    await talker.call("app.shutdown", {})
    assert desk.door.offers.all() == []
