"""What apps offer is really used: tools, methods, routes, providers, channels."""

import asyncio
import json

import pytest

from dragoman.engine.content import Image, Text
from dragoman.engine.events import Who
from dragoman.engine.faults import ProviderFailed
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelInfo,
    ModelOpened,
    ModelRequest,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
)  # fmt: skip
from dragoman.engine.traits import Correspondent
from dragoman.host.roster import Layers
from dragoman.testing.host import host_of
from dragoman.testing.script import call

from .talking import FULL, app, desk_of

ME = Who("test", id="me")
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOL = (
    "tool",
    {"name": "t1", "description": "Does it.", "kind": "fetch", "parameters": SCHEMA},
)


def with_offers(desk):
    """Sessions of this host use what apps offer, as those of the daemon do."""
    agents = host_of(desk.door).agents
    inner = agents.toolbox

    async def toolbox(profile, session):
        return Layers([await inner(profile, session)], desk.door.offers, profile.tools)

    agents.toolbox = toolbox
    return desk


async def turn(desk):
    info = await desk.door.open(OpenSpec(cwd="/", traits=(Correspondent("the key"),)), ME)
    return info.id, await desk.door.prompt(info.id, (Text("go"),), ME)


async def result_of(desk, session):
    for message in await desk.door.messages(session):
        for block in message.content:
            if type(block).__name__ == "ToolResult":
                return block
    raise AssertionError("no tool ran")


async def test_a_model_calls_an_apps_tool():
    desk = with_offers(desk_of([call("t1", q="x"), "done"], mode="full"))
    talker = await app(desk, grant=(TOOL,), **FULL)
    session, work = await turn(desk)
    event = await talker.event("capability:invoke")
    assert event["type"] == "tool" and event["name"] == "t1" and event["params"] == {"q": "x"}
    assert event["capabilityId"] in desk.apps["@test/app"].grants
    assert event["context"]["sessionKey"] == "the key"
    assert event["context"]["runId"] == work.turn and event["context"]["callId"]
    part = {"done": False, "progress": "half way"}
    assert await talker.result(event, part) and await talker.result(event, part)
    assert await talker.result(event, {"content": "42"})
    assert await talker.result(event, {"content": "43"}) is False
    await work.done
    assert (await result_of(desk, session)).content == (Text("42"),)
    spec = host_of(desk.door).models.provider.requests[0].tools[0]  # type: ignore[attr-defined]
    assert (spec.name, spec.description, spec.kind) == ("t1", "Does it.", "fetch")


@pytest.mark.parametrize(
    ("answer", "content", "is_error"),
    [
        ("plain", (Text("plain"),), False),
        ({"content": "x", "isError": True}, (Text("x"),), True),
        ({"content": [{"type": "text", "text": "a"},
                      {"type": "image", "data": "YWI=", "mimeType": "image/gif"}]},
         (Text("a"), Image("image/gif", b"ab")), False),
        ({"content": [{"type": "image", "data": "###"}]},
         (Text("[an image that is no base64]"),), False),
        ({"temperature": 5}, (Text('{"temperature":5}'),), False),
        (None, (Text(""),), False),
        ({"error": {"message": "broken"}}, (Text("broken"),), True),
        ({"error": "so"}, (Text("so"),), True),
    ],
)  # fmt: skip
async def test_what_a_tools_answer_means(answer, content, is_error):
    desk = with_offers(desk_of([call("t1"), "done"], mode="full"))
    talker = await app(desk, grant=(TOOL,), **FULL)
    session, work = await turn(desk)
    assert await talker.result(await talker.event(), answer)
    await work.done
    result = await result_of(desk, session)
    assert result.content == content and result.is_error is is_error


async def test_an_app_that_hangs_or_dies_harms_only_its_own_call():
    script = [call("t1"), "one"]
    desk = with_offers(desk_of(script, mode="full", settings={"invoke_timeout_ms": 30}))
    talker = await app(desk, grant=(TOOL,), **FULL)
    session, work = await turn(desk)
    event = await talker.event("capability:invoke")
    assert (await work.done).text == "one"
    assert "did not answer within 0.03 s" in str(await result_of(desk, session))
    cancelled = await talker.event("capability:cancel")
    assert cancelled["eventId"] == event["eventId"]
    assert await talker.result(event, "late") is False
    # What was never served is withdrawn; it can be offered again.
    await talker.call("capability.register", {"type": TOOL[0], "config": TOOL[1]})
    session, work = await turn(desk)
    await talker.event("capability:invoke")
    await talker.leave()
    assert (await work.done).text == "one"
    assert "left before it answered" in str(await result_of(desk, session))


async def test_a_cancelled_turn_cancels_the_apps_work():
    desk = with_offers(desk_of([call("t1"), "done"], mode="full"))
    talker = await app(desk, grant=(TOOL,), **FULL)
    session, work = await turn(desk)
    event = await talker.event("capability:invoke")
    desk.door.cancel(session)
    assert (await talker.event("capability:cancel"))["eventId"] == event["eventId"]
    assert (await work.done).outcome == "cancelled"
    assert await talker.result(event, "late") is False


# --- methods ---

METHOD = ("gateway_method", {"method": "m.x"})


async def test_methods_are_called_by_other_apps():
    desk = desk_of()
    server = await app(desk, "@s/s", grant=(METHOD,), **FULL)
    client = await app(desk, "@c/c")
    for value in ({"a": 1}, [1], "x", None, 5):
        asked = client.ask("gateway.call", {"method": "m.x", "params": {"n": 1}})
        event = await server.event("capability:invoke")
        assert event["type"] == "gateway_method" and event["params"] == {"n": 1}
        await server.result(event, value)
        assert (await client.answer(asked))["result"] == {"result": value}


async def test_how_a_call_can_fail():
    desk = desk_of(settings={"invoke_timeout_ms": 30})
    server = await app(desk, "@s/s", grant=(METHOD,), **FULL)
    client = await app(desk, "@c/c")

    async def code(*answers):
        asked = client.ask("gateway.call", {"method": "m.x"})
        event = await server.event("capability:invoke")
        for answer in answers:
            await server.result(event, answer)
        return (await client.answer(asked))["error"]

    assert await code({"error": {"message": "oh"}}) == {"code": "UNKNOWN_ERROR", "message": "oh"}
    assert await code({"error": {"code": "NOT_FOUND", "message": "gone", "details": {"x": 1}}}) == {
        "code": "NOT_FOUND", "message": "gone", "details": {"x": 1},
    }  # fmt: skip
    assert (await code({"error": {"code": "BANANA"}}))["code"] == "UNKNOWN_ERROR"
    assert (await code())["code"] == "TIMEOUT"
    await server.event("capability:cancel")
    asked = client.ask("gateway.call", {"method": "m.x"})
    await server.event("capability:invoke")
    await server.leave()
    assert (await client.answer(asked))["error"]["code"] == "CONNECTION_CLOSED"
    assert (await client.refused("gateway.call", {"method": "m.x"}))["code"] == "NOT_FOUND"
    await app(desk, "@t/t", **FULL)  # declares it and did not register it
    assert (await client.refused("gateway.call", {"method": "m.x"}))["code"] == "CAPABILITY_DENIED"


# --- routes ---


async def test_routes_are_served():
    desk = desk_of(settings={"invoke_timeout_ms": 30})
    server = await app(desk, grant=(("http_route", {"path": "/a/*"}),), **FULL)
    offer = desk.door.offers.find("http_route", "/a/*")
    request = {
        "method": "POST",
        "path": "/a/b",
        "query": {"x": ["1"]},
        "headers": {},
        "body": b"hi",
    }

    async def served(answer, **more):
        task = asyncio.ensure_future(offer.call({**request, **more}))  # type: ignore[misc]
        event = await server.event("capability:invoke")
        if answer is not ...:
            await server.result(event, answer)
        return event["params"], await task

    asked, answer = await served({"status": 201, "headers": {"X-A": "1"}, "body": "made"})
    assert asked == {**request, "body": "hi"}
    assert answer == {
        "status": 201, "body": "made",
        "headers": {"x-a": "1", "content-type": "text/plain; charset=utf-8"},
    }  # fmt: skip
    asked, answer = await served({"status": 200, "body": {"a": 1}}, body=b"\xff")
    assert asked["bodyBase64"] == "/w==" and asked["body"] is None
    assert json.loads(answer["body"]) == {"a": 1}
    assert answer["headers"]["content-type"] == "application/json"
    _, answer = await served({"bodyBase64": "/w=="})
    assert answer["body"] == b"\xff" and answer["status"] == 200
    _, answer = await served({"hello": 1})
    assert json.loads(answer["body"]) == {"hello": 1}
    _, answer = await served({"error": {"message": "oh"}})
    assert answer["status"] == 500
    _, answer = await served({"status": 7})
    assert answer["status"] == 502
    _, answer = await served(...)
    assert answer["status"] == 504


# --- providers ---


async def test_a_provider_streams():
    desk = desk_of()
    config = {"providerId": "p1", "models": ["m1", {"id": "m2", "contextWindow": 1000}]}
    server = await app(desk, grant=(("provider", config),), **FULL)
    offer = desk.door.offers.find("provider", "p1")
    models = offer.config["models"]
    assert [m.ref for m in models] == ["p1/m1", "p1/m2"] and models[1].context_window == 1000

    async def parts(*answers):
        request = ModelRequest(models[0], "be kind", ())
        stream = offer.provider.stream(request)

        async def collect():
            return [part async for part in stream]

        task = asyncio.ensure_future(collect())
        event = await server.event("capability:invoke")
        assert event["params"]["model"] == "m1" and event["params"]["system"] == "be kind"
        for answer in answers:
            await server.result(event, answer)
        return await task

    made = await parts(
        {"done": False, "thinking": "hm"}, {"done": False, "text": "Hel"},
        {"done": False, "text": "lo"}, {"usage": {"input": 3, "output": 2}},
    )  # fmt: skip
    assert [type(part) for part in made] == [
        ModelOpened, ModelThought, ModelText, ModelText, ModelUsage, ModelStop,
    ]  # fmt: skip
    assert made[-2].usage.input == 3 and made[-1].reason == "end_turn"
    made = await parts({"toolCall": {"id": "c", "name": "read", "arguments": {"path": "x"}}})
    assert made[1] == ModelCallBegan("c", "read") and made[-1].reason == "tool_use"
    assert made[2] == ModelCallArgs("c", '{"path":"x"}')
    made = await parts("whole answer")
    assert made[1] == ModelText("whole answer")
    with pytest.raises(ProviderFailed) as failed:
        await parts({"error": {"code": "UNAUTHORIZED", "message": "no key"}})
    assert failed.value.kind == "auth"
    assert isinstance(models[0], ModelInfo)
