"""Parts of this dialect by themselves: `desk`, `faults`, `grants`, `hear`, `manifest`, `provider`,
`seat`, `speak`, `verbs`, `watching`.
"""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET, Raw
from tests.dialects.openclawos.talking import FULL, Talker, desk_of, manifest

from dragoman.dialects.openclawos import grants, verbs, watching
from dragoman.dialects.openclawos.desk import Desk
from dragoman.dialects.openclawos.faults import Wrong, error_of, reported
from dragoman.dialects.openclawos.hear import MAX_LINE, Odd, _fault, _too_long, read
from dragoman.dialects.openclawos.manifest import read_manifest
from dragoman.dialects.openclawos.provider import AppProvider, _model, _parts, asked, models_of
from dragoman.dialects.openclawos.seat import Seat
from dragoman.dialects.openclawos.shapes import Request
from dragoman.dialects.openclawos.speak import Voice
from dragoman.engine.content import Image, Message, Text, Thinking, ToolCall, ToolResult
from dragoman.engine.faults import BadInput, ProviderFailed, StoreFailed
from dragoman.engine.hooks import Block, HookContext, Outgoing
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelInfo,
    ModelRequest,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
)
from dragoman.wire.verbs import BadParams, Cancelled, Crowded, UnknownMethod


async def seated(desk: Desk | None = None, **capabilities: Any) -> tuple[Talker, Seat]:
    """A connected app and its seat."""
    talker = Talker(desk or desk_of())
    registered = await talker.call("app.register", {"manifest": manifest(**(capabilities or FULL))})
    talker.token = registered["token"]
    return talker, talker.desk.apps["@test/app"]


# --- faults ---


def test_faults_get_one_of_the_fourteen_codes() -> None:
    assert error_of(Wrong("TIMEOUT", "late", [1])) == {
        "code": "TIMEOUT", "message": "late", "details": [1],
    }  # fmt: skip
    assert error_of(BadInput("bad"))["code"] == "INVALID_PARAMS"
    assert error_of(StoreFailed("full"))["code"] == "INTERNAL_ERROR"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"code": "TIMEOUT", "message": "x"}, "TIMEOUT", "x"),
        ({"code": "ODD", "message": 5}, "UNKNOWN_ERROR", "Unknown error"),
        ({"code": ["TIMEOUT"], "message": ""}, "UNKNOWN_ERROR", "Unknown error"),
        ({"code": {}}, "UNKNOWN_ERROR", "Unknown error"),
        ("just words", "UNKNOWN_ERROR", "just words"),
        (None, "UNKNOWN_ERROR", "Unknown error"),
    ],
)
def test_faults_of_apps_are_read_whatever_they_send(error: Any, code: str, message: str) -> None:
    found = reported(error)
    assert (found.wire, found.message) == (code, message)


# --- manifest ---


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "Invalid manifest"),
        ({}, "Missing required manifest fields"),
        ({**manifest(), "type": "virus"}, "type must be one of app, skill"),
        ({**manifest(), "id": "x" * 300}, "longer than 256"),
        ({**manifest(), "protocol": {}}, "Missing required"),
        (manifest(tools={"provides": ["a", 5]}), r"capabilities.tools.provides\[1\]: expected"),
    ],
)
def test_manifest_says_what_is_missing_or_malformed(given: Any, why: str) -> None:
    with pytest.raises(Wrong, match=why):
        read_manifest(given)


def test_manifest_an_app_with_a_channel_hears_what_is_sent_to_it() -> None:
    full, bare = read_manifest(manifest(**FULL)), read_manifest(manifest())
    assert full.may_hear("message_sending") and not bare.may_hear("message_sending")
    channel = read_manifest(manifest(channels={"provides": ["x"]}))
    assert channel.may_hear("message_sending") and not channel.may_hear("agent_end")
    assert bare.name == "Test" and grants.RULES["hook"].declared(full) == {
        "message_received", "message_sending",
    }  # fmt: skip


# --- speak ---


def test_speak_is_ascii_and_numbered() -> None:
    voice = Voice("w")
    lines = [
        voice.success(5, b'"r"', {"a": "ä"}), voice.failure(5, b"1", {"code": "X"}),
        voice.event(5, "hook:x", {}), voice.chunk(5, b"1", None, True),
        voice.beats(5) % (9, b'"b"'),
    ]  # fmt: skip
    assert all(line.isascii() for line in lines)
    ids = [json.loads(line)["id"] for line in lines]
    assert ids == ["w-1", "w-2", "w-3", "w-4", "w-9"]
    assert json.loads(lines[0])["result"] == {"a": "ä"}
    beat = json.loads(lines[4])
    assert beat["result"] == {"ok": True, "serverTime": 5} and beat["requestId"] == "b"
    assert voice.new_id("evt") == "evt-w-5"


# --- hear ---


def test_hear_counts_characters_as_javascript_does() -> None:
    assert not _too_long(b"x" * MAX_LINE + b"  ")
    assert _too_long(b"x" * (MAX_LINE + 1))
    assert not _too_long("ä".encode() * MAX_LINE) and _too_long("😀".encode() * (MAX_LINE // 2 + 1))
    assert _too_long(b"\xff" * (MAX_LINE + 1))


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (BadParams("x"), "INVALID_PARAMS"),
        (UnknownMethod("x"), "METHOD_NOT_FOUND"),
        (Crowded(5), "CONFLICT"),
        (Cancelled(), "CONNECTION_CLOSED"),
        (KeyError("x"), "INTERNAL_ERROR"),
    ],
)
def test_hear_every_failure_has_a_code(problem: BaseException, code: str) -> None:
    assert error_of(_fault(problem))["code"] == code


DEEP = b'{"type":"request","id":"a","method":"hook.result","params":%b%b}' % (
    b"[" * 500, b"]" * 500
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "Malformed JSON"),
        (b"[1]", "must be a JSON object"),
        (b'{"type":5,"id":"a"}', 'type must be "request"'),
        (b'{"type":"request","id":true,"method":"x"}', "id must be a string"),
        (b'{"type":"request","id":"a","method":5}', "method must be a string"),
        (b'{"type":"request","id":"a","method":"x","token":5}', "token must be a string"),
        (b'{"type":"request","id":"\xc3\xa4","method":"app.ready"}', "Must call app.register"),
        (DEEP, "deeper than 128 levels"),
        (DEEP.replace(b'"a"', b"true"), "deeper than 128 levels"),
        (DEEP.replace(b"[" * 500, b"[" * 100).replace(b"]" * 500, b"]" * 100), "Must call"),
    ],
)
async def test_hear_says_what_is_wrong_with_a_line(line: bytes, why: str) -> None:
    talker = Talker(desk_of())
    talker.end.send(b'{"type":"event"}', b"  ", line)
    said = [json.loads(one) for one in talker.end.received()]
    assert len(said) == 1 and why in said[0]["error"]["message"]


# --- verbs ---


async def test_verbs_heartbeats_have_the_same_bytes_both_ways() -> None:
    desk = desk_of()
    desk.now = lambda: 7
    _, seat = await seated(desk)
    quick = verbs.beats(seat.conn)
    assert quick is not None
    request = Request(
        "request", Raw(b'"r"'), "app.heartbeat", Raw(b'{"status":{"n":1}}'), seat.token
    )
    short = json.loads(quick(request) or b"")
    whole = verbs.heartbeat(seat.conn, SimpleNamespace(status={"n": 2}))
    assert short["result"] == whole and seat.status == {"n": 2}
    for odd in (
        Request("request", Raw(b'"r"'), "app.heartbeat", Raw(b""), "wrong"),
        Request("request", Raw(b'"r"'), "app.heartbeat", Raw(b'{"status":5}'), seat.token),
    ):
        assert quick(odd) is None
    assert read([b'{"type":"event","id":"r","method":"app.heartbeat"}']) == []
    assert isinstance(read([b'{"type":"request","id":null,"method":"app.heartbeat"}'])[0], Odd)


@pytest.mark.parametrize(
    ("id", "plain"),
    [(b'"a"', True), (b"12", True), (b"-1", True), (b"", False), (b"null", False),
     ('"ä"'.encode(), False), (b"[1]", False)],
)  # fmt: skip
def test_hear_ids_that_can_be_repeated(id: bytes, plain: bool) -> None:
    line = b'{"type":"request","method":"x","id":%b}' % (id or b'""')
    (found,) = read([line if id else line.replace(b',"id":""', b"")])
    assert (isinstance(found, Request) and bytes(found.id) == id) is plain


async def test_verbs_gateway_calls_say_who_could_answer() -> None:
    talker, seat = await seated()
    error = await talker.refused("gateway.call", {"method": "m.x"}, token=seat.token)
    assert error["code"] == "CAPABILITY_DENIED" and "@test/app" in error["message"]
    error = await talker.refused("gateway.call", {"method": "none"}, token=seat.token)
    assert error["code"] == "NOT_FOUND"
    error = await talker.refused("hook.info", {"event": "x"}, token=seat.token)
    assert error["code"] == "HOOK_NOT_SUBSCRIBED"


# --- grants ---


async def test_grants_say_why_not() -> None:
    desk = desk_of(settings={"apps": {"@test/app": SimpleNamespace(granted={"tool": ()})}})
    desk.door.facts.built_in = {"gateway_method": frozenset({"m.x"})}
    _, seat = await seated(desk)
    for kind, config, why in (
        ("odd", {}, "Invalid capability type: odd"),
        ("tool", {"name": "other"}, "not declared in manifest capabilities.tools.provides"),
        ("tool", {"toolId": "t1"}, "is not granted: see `dragoman apps permissions @test/app`"),
    ):
        assert why in str(grants.register(seat, kind, config))
    with pytest.raises(Wrong, match="config.toolId or config.name must be"):
        grants.register(seat, "tool", {"toolId": "", "name": 5})


async def test_grants_have_one_owner_and_are_offered_when_ready() -> None:
    desk = desk_of()
    desk.door.facts.built_in = {"gateway_method": frozenset({"m.x"})}
    _, seat = await seated(desk)
    assert "is built in" in str(grants.register(seat, "gateway_method", {"method": "m.x"}))
    grant = grants.register(seat, "tool", {"toolId": "t1"})
    assert isinstance(grant, grants.Grant) and desk.owner("tool", "t1") is seat
    assert "already registered by app" in str(grants.register(seat, "tool", {"toolId": "t1"}))
    assert desk.door.offers.find("tool", "t1") is None
    desk.make_ready(seat)
    assert desk.door.offers.find("tool", "t1") is not None
    grant.pause()
    grant.pause()
    assert desk.door.offers.find("tool", "t1") is None
    grant.withdraw()
    assert desk.owner("tool", "t1") is None and seat.grants == {}


async def test_grants_the_next_provider_of_a_name_takes_over() -> None:
    desk = desk_of()
    first = Talker(desk)
    second = Talker(desk)
    seats = []
    for talker, id in ((first, "@a/p"), (second, "@b/p")):
        given = manifest(id, providers={"provides": ["p1"]})
        await talker.call("app.register", {"manifest": given})
        seat = desk.apps[id]
        desk.make_ready(seat)
        grants.register(seat, "provider", {"id": "p1", "models": ["p1/m", {"id": "n"}, 5]})
        seats.append(seat)
    assert desk.door.offers.find("provider", "p1").app == "@a/p"
    seats[0].leave()
    offer = desk.door.offers.find("provider", "p1")
    assert offer.app == "@b/p" and [one.id for one in offer.config["models"]] == ["m", "n"]


# --- provider ---


def test_provider_models_are_read_as_far_as_they_can_be() -> None:
    assert _model("p", "p/m") == ModelInfo("p", "m") and _model("p", "") is None
    assert _model("p", {"id": ""}) is None and _model("p", 5) is None
    given = _model("p", {"id": "m", "contextWindow": -1, "maxOutput": 9, "vision": 1})
    assert given == ModelInfo("p", "m", max_output=9)
    seat = SimpleNamespace(manifest=SimpleNamespace(models=("a", "b")))
    assert len(models_of(SimpleNamespace(config={}, seat=seat, name="p"))) == 2


def test_provider_parts_of_one_answer() -> None:
    made = _parts(
        {
            "thinking": "hm", "text": "hi", "toolCall": {"name": "t", "arguments": {"a": 1}},
            "toolCalls": [{"name": "u", "id": "c", "arguments": "{}"}, {"id": "no name"}, 5],
            "usage": {"input": 3, "output": -1},
        }
    )  # fmt: skip
    kinds = [type(part) for part in made]
    assert kinds[:3] == [ModelThought, ModelText, ModelCallBegan] and ModelUsage in kinds
    assert ModelCallArgs("c", "{}") in made and made[-1].usage.input == 3
    assert _parts({"text": 5, "usage": []}) == []


@pytest.mark.parametrize(
    ("said", "stop"),
    [
        ([{"text": "a", "stop": "length"}], "length"),
        ([{"text": "a", "stop": ["length"]}], "end_turn"),
        ([{"stop": {}}, "plain text", 5], "end_turn"),
        ([{"toolCall": {"name": "t"}}], "tool_use"),
        ([{"stop": "odd"}], "end_turn"),
    ],
)
async def test_provider_always_says_how_it_stopped(
    said: list[Any], stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Use:
        def __init__(self, grant: Any) -> None:
            return None

        async def results(self, params: Any, context: Any) -> Any:
            for one in said:
                yield one

    monkeypatch.setattr("dragoman.dialects.openclawos.provider.CapabilityUse", Use)
    seat = SimpleNamespace(desk=SimpleNamespace(key_of=lambda session: "k"))
    provider = AppProvider(SimpleNamespace(name="p", seat=seat))
    request = ModelRequest(ModelInfo("p", "m"), "", ())
    assert [part async for part in provider.stream(request)][-1] == ModelStop(stop)


async def test_provider_failures_are_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    class Use:
        def __init__(self, grant: Any) -> None:
            return None

        async def results(self, params: Any, context: Any) -> Any:
            raise Wrong("UNAUTHORIZED", "no key")
            yield

    monkeypatch.setattr("dragoman.dialects.openclawos.provider.CapabilityUse", Use)
    seat = SimpleNamespace(desk=SimpleNamespace(key_of=lambda session: "k"))
    with pytest.raises(ProviderFailed, match="p: no key") as found:
        async for _ in AppProvider(SimpleNamespace(name="p", seat=seat)).stream(
            ModelRequest(ModelInfo("p", "m"), "", ())
        ):
            pass
    assert found.value.kind == "auth"


def test_provider_asks_with_every_kind_of_block() -> None:
    content = (
        Text("t"), Image("image/png", b"x"), Thinking("h"), ToolCall("c", "n", None),
        ToolResult("c", (Text("r"),), True, "n"),
    )  # fmt: skip
    made = asked(
        ModelRequest(ModelInfo("p", "m"), "sys", (Message("user", content),), reasoning="low")
    )
    kinds = [block["type"] for block in made["messages"][0]["content"]]
    assert kinds == ["text", "image", "thinking", "toolCall", "toolResult"]
    assert made["reasoning"] == "low" and "temperature" not in made


# --- seat ---


async def test_seat_asks_tells_and_passes_over_who_does_not_answer() -> None:
    desk = desk_of()
    talker, seat = await seated(desk)
    desk.make_ready(seat)
    assert seat.subscribe("message_sending") and not seat.subscribe("agent_end")
    data = Outgoing(channel="other", target="t", content="hi")
    task = asyncio.create_task(seat.intercept("message_sending", data, HookContext(session="s")))
    await asyncio.sleep(0)
    (event_id,) = seat.pending
    assert seat.answer(event_id, {"block": True, "blockReason": "no"}) is True
    said = await task
    assert isinstance(said, Block) and seat.hears["message_sending"].answered == 1
    seat._missed("message_sending", "s", 1)
    assert not seat.muted
    seat._missed("message_sending", "s", 1)
    assert seat.muted
    assert await seat.intercept("message_sending", data, HookContext()) is None
    assert seat.answer("late", UNSET) is False and not seat.muted  # it does answer after all
    seat.unsubscribe("message_sending")
    seat.unsubscribe("message_sending")
    assert seat.hears == {}


async def test_seat_that_leaves_tells_those_who_wait() -> None:
    desk = desk_of()
    _, seat = await seated(desk)
    desk.make_ready(seat)
    seat.subscribe("message_sending")
    data = Outgoing(channel="x", target="t", content="hi")
    task = asyncio.create_task(seat.intercept("message_sending", data, HookContext()))
    await asyncio.sleep(0)
    seat.leave()
    seat.leave()
    with pytest.raises(ConnectionError, match="left before it answered"):
        await task
    assert desk.apps == {}


# --- desk ---


async def test_desk_an_app_goes_on_with_its_token_on_another_connection() -> None:
    desk = desk_of()
    talker, seat = await seated(desk)
    desk.make_ready(seat)
    grants.register(seat, "tool", {"toolId": "t1"})
    seat.subscribe("message_received")
    talker.end.drop()
    async with asyncio.timeout(60):
        while desk.apps:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
    again = Talker(desk)
    beat = await again.call("app.heartbeat", {}, token=seat.token)
    assert beat["ok"] and desk.owner("tool", "t1") is desk.apps["@test/app"]
    assert desk.status()[0]["state"] == "ready" and desk.status()[0]["hooks"] == [
        "message_received"
    ]
    error = await Talker(desk).refused("app.heartbeat", {}, token="wrong")
    assert error["code"] == "APP_NOT_REGISTERED"
    await desk.close()


async def test_desk_may_is_what_the_owner_granted() -> None:
    entry = SimpleNamespace(granted={"tool": ("t1",)})
    desk = desk_of(settings={"apps": {"@a/b": entry, "@c/d": SimpleNamespace(granted=None)}})
    assert desk.may("@a/b", "tool", "t1") and not desk.may("@a/b", "hook", "x")
    assert desk.may("@c/d", "tool", "any") and desk.may("@unknown/x", "tool", "any")
    assert desk.key_of("no such") == "no such"


# --- watching ---

CONFIG = {
    "channels": {"telegram": {"bot_token": "secret"}, "other": {"api_key": "k"}},
    "apps": {"app": {"city": "Bern"}},
    "list": [{"a": 1}],
    "openclawos": {"apps": {}},
}


async def test_watching_gives_an_app_its_own_tables_as_they_are() -> None:
    _, seat = await seated(desk_of(config=CONFIG))
    conn = seat.conn
    assert watching.get(conn, "channels.telegram.bot_token") == "secret"
    assert watching.get(conn, "apps.app.city") == watching.get(conn, "app.city") == "Bern"
    assert watching.get(conn, "$.list[0].a") == 1
    for nothing in ("list[9]", "list[²]", "list.x", "no.such", "app.city.x"):
        assert watching.get(conn, nothing) is None
    assert watching.AppSettings(conn).told("channels.other.api_key", "a", "b") is None
    assert watching.AppSettings(conn).told("list", [1], [2]) == ("list", [1], [2])


async def test_watching_tells_changes_below_its_paths_and_of_whole_branches() -> None:
    desk = desk_of(config=CONFIG)
    talker, seat = await seated(desk)
    await talker.call("config.watch", {"paths": ["apps.app.city", "list"]}, token=seat.token)
    desk.door.config.change("apps.app.city", "Bern", "Basel")
    desk.door.config.change("apps", {"app": {"city": "Basel"}}, {"app": {"city": "Chur"}})
    desk.door.config.change("apps", {"app": {"x": 1}}, {"app": {"x": 2}})
    desk.door.config.change("unrelated", 1, 2)
    await asyncio.sleep(0)
    told = [json.loads(line)["chunk"] for line in talker.end.received()]
    assert [(one["path"], one["newValue"]) for one in told] == [
        ("apps.app.city", "Basel"), ("apps.app.city", "Chur"),
    ]  # fmt: skip
    seat.conn.watches[0].finish()
    await asyncio.sleep(0)
    assert json.loads(talker.end.received()[0])["done"] is True and not desk.door.config.told
    for _ in range(63):
        watching.watch(seat.conn, b"1", [])
    with pytest.raises(Wrong, match="64 watches already"):
        watching.watch(seat.conn, b"1", [])
