"""What the original's own apps and SDK met with: their configuration, silent tools, all hooks."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.dialects.openclawos.talking import app, desk_of

from dragoman.apps import App, Block
from dragoman.engine.content import Text
from dragoman.engine.host import OpenSpec
from dragoman.host.config import LiveConfig
from dragoman.observe.redact import is_secret
from dragoman.settings.load import load
from dragoman.settings.places import places
from dragoman.testing.script import Scripted

FILE = """
[channels.irc]
server = "irc.example.org"
nickservPassword = "hush-irc"
[channels.telegram]
botToken = "hush-telegram"
[apps.cron]
jobs = [{ every = 60, text = "tick", api_key = "hush-cron" }]
[apps."@test/app"]
level = 2
secret = "hush-app"
[openclawos.apps."@test/app".config]
level = 3
[providers.work]
api_key = "hush-provider"
"""


@pytest.fixture
def live(tmp_path):
    (tmp_path / "config.toml").write_text(FILE)
    where = places({"HOME": str(tmp_path)}, str(tmp_path))
    return LiveConfig(load(where.config_file), where)


def own_desk(live):
    desk = desk_of()
    desk.door.config = live
    return desk


IRC = {"channels": {"provides": ["irc"]}}


async def test_an_app_reads_what_is_its_own_in_clear_and_no_others_secrets(live):
    desk = own_desk(live)
    irc = await app(desk, **IRC)

    async def get(path, of=irc):
        return (await of.call("config.get", {"path": path}))["value"]

    assert await get("channels.irc") == {
        "server": "irc.example.org", "nickservPassword": "hush-irc",
    }  # fmt: skip
    assert await get("channels.irc.nickservPassword") == "hush-irc"
    for mine in ("apps.app", "apps.@test/app", "app", "@test/app"):
        assert (await get(mine)) == {"level": 3, "secret": "hush-app"}
    assert await get("openclawos.apps.@test/app.config.level") == 3
    assert await get("channels.telegram") == {"botToken": "***"}
    assert (await irc.refused("config.get", {"path": "channels.telegram.botToken"}))["code"] == (
        "FORBIDDEN"
    )
    assert (await irc.refused("config.get", {"path": "providers.work.api_key"}))["code"] == (
        "FORBIDDEN"
    )
    cron = await app(desk, "@openclawos/cron")
    assert (await get("cron", cron))["jobs"][0]["api_key"] == "hush-cron"
    for one, hushed in ((irc, {"irc", "app"}), (cron, {"cron"})):
        whole = str(await get("", one))
        shown = {name for name in ("irc", "telegram", "cron", "app", "provider")
                 if f"hush-{name}" in whole}  # fmt: skip
        assert shown <= hushed
    assert "hush-irc" in str((await get(""))["channels"])


async def test_a_channel_that_another_app_serves_is_not_its_own(live):
    desk = own_desk(live)
    await app(desk, "@test/first", grant=(("channel", {"channelId": "irc"}),), **IRC)
    second = await app(desk, "@test/second", **IRC)
    assert (await second.call("config.get", {"path": "channels.irc"}))["value"] == {
        "server": "irc.example.org", "nickservPassword": "***",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["app", "cron"])  # one that is installed, one that came first
async def test_a_name_that_another_app_has_is_not_its_own(live, name):
    desk = own_desk(live)
    if name == "cron":
        await app(desk, "@openclawos/cron")
    stranger = await app(desk, f"@stranger/{name}")
    for path in ("", name, f"apps.{name}", "apps"):
        told = await stranger.call("config.get", {"path": path})
        assert f"hush-{name}" not in str(told), path


async def test_changes_are_told_in_clear_to_whom_they_belong_only(live, tmp_path):
    desk = own_desk(live)
    mine, other = await app(desk, **IRC), await app(desk, "@test/other")
    for one in (mine, other):
        await one.call("config.watch", {"paths": ["channels"]})
    file = tmp_path / "config.toml"
    file.write_text(FILE.replace("hush-irc", "hush-new").replace("example.org", "example.net"))
    live.reload()
    told = {(await mine.chunk())["chunk"]["path"]: None for _ in range(2)}
    assert sorted(told) == ["channels.irc.nickservPassword", "channels.irc.server"]
    chunk = (await other.chunk())["chunk"]
    assert (chunk["path"], chunk["newValue"]) == ("channels.irc.server", "irc.example.net")
    await other.silence()


@pytest.mark.parametrize("name", ["botToken", "nickservPassword", "apiKey", "API_KEY", "bot-token"])
def test_names_of_secrets_are_known_however_they_are_written(name):
    assert is_secret(name)
    assert not is_secret("maxTokens") and not is_secret("monkey") and not is_secret("KEYBOARD")


# --- the kit ---


async def test_an_apps_own_interceptors_have_their_say_before_its_own_channel():
    made = App("@test/kit")
    channel = made.channel("chat")
    sent, seen = [], []

    @channel.deliver
    async def deliver(message):
        sent.append((message.target, message.text))

    @made.intercept("message_sending")
    async def polish(data, context):
        if "secret" in data["content"]:
            return Block("no secrets")
        return {"content": data["content"].upper()}

    @made.observe("message_sending")
    def watch(data, context):
        seen.append(data["content"])

    for text in ("hello", "a secret", "bye"):
        data = {"channelId": "chat", "target": "ann", "content": text}
        made._hook("message_sending", {"data": data, "context": {}}, "e")
    while made._tasks:
        await asyncio.gather(*made._tasks.values())
    assert sent == [("ann", "HELLO"), ("ann", "BYE")] and seen == ["HELLO", "BYE"]


def test_a_bare_decorator_is_refused():
    made = App("@test/kit")
    with pytest.raises(TypeError, match="parentheses"):

        @made.tool
        def greet(name: str) -> str:
            return name


# --- tools ---


async def test_a_tool_that_is_never_served_is_withdrawn_after_its_first_call():
    desk = desk_of(settings={"invoke_timeout_ms": 50})
    tools = {"provides": ["t1", "t2"]}
    grant = (("tool", {"name": "t1"}), ("tool", {"name": "t2"}))
    talker = await app(desk, grant=grant, tools=tools)
    info = await desk.door.open(OpenSpec())
    env = SimpleNamespace(session=info.id, agent="a", turn="t", call_id="c", cwd="/", progress=str)
    silent = desk.door.offers.find("tool", "t1").tool
    outcome = await silent.run({}, env)
    assert outcome.is_error and "not offered any more" in outcome.content[0].text
    assert desk.door.offers.find("tool", "t1") is None
    assert (await talker.event("capability:invoke"))["name"] == "t1"
    assert (await talker.event())["eventId"]  # it was cancelled

    # One that did answer before is only late.
    busy = desk.door.offers.find("tool", "t2").tool
    running = asyncio.ensure_future(busy.run({}, env))
    assert await talker.result(await talker.event("capability:invoke"), "fine")
    assert (await running).content[0].text == "fine"
    assert (await busy.run({}, env)).is_error
    assert desk.door.offers.find("tool", "t2") is not None
    notes = [
        event.body.title for event in await desk.door.history(info.id)
        if type(event.body).__name__ == "Noted"
    ]  # fmt: skip
    assert notes == ["The tool t1 of @test/app was withdrawn"]
    again = await talker.call("capability.register", {"type": "tool", "config": {"name": "t1"}})
    assert again["granted"]


@pytest.mark.parametrize(("kind", "name"), [("tool", "bash"), ("provider", "anthropic")])
async def test_a_built_in_name_is_refused_and_not_granted_and_ignored(kind, name):
    desk = desk_of()
    desk.door.facts.built_in = {"tool": frozenset({"bash"}), "provider": frozenset({"anthropic"})}
    section = {"tool": "tools", "provider": "providers"}[kind]
    talker = await app(desk, **{section: {"provides": [name]}})
    denied = await talker.call(
        "capability.register", {"type": kind, "config": {"id": name, "name": name}}
    )
    assert not denied["granted"] and "built in" in denied["reason"]


# --- hooks ---


async def test_the_hooks_of_models_compactions_and_the_gateway_are_real():
    names = (
        "llm_input", "llm_output", "before_compaction", "after_compaction", "gateway_start",
        "gateway_stop", "session_start", "session_end",
    )  # fmt: skip
    script = Scripted(["one", "two", "three", "a summary"])
    desk = desk_of(script)
    desk.door.facts.gateway = "http://127.0.0.1:1"
    talker = await app(desk, hears=names, hooks={"subscribes": list(names)})
    begun = await talker.event("hook:gateway_start")
    assert begun["data"]["address"] == "http://127.0.0.1:1"
    info = await desk.door.open(OpenSpec())
    for text in ("a", "b", "c"):
        await (await desk.door.prompt(info.id, (Text(text),))).done
    await (await desk.door.compact(info.id)).done
    await desk.door.close(info.id)
    await desk.close()
    heard = []
    while not talker.events or talker.events[-1]["event"] != "hook:gateway_stop":
        await talker._take()
    while talker.events:
        event = talker.events.popleft()
        heard.append((event["event"].removeprefix("hook:"), event["payload"]["data"]))
    assert [name for name, _ in heard] == [
        "session_start", *["llm_input", "llm_output"] * 3, "before_compaction",
        "after_compaction", "session_end", "gateway_stop",
    ]  # fmt: skip
    by = dict(heard)
    assert by["llm_input"]["prompt"] == "c" and by["llm_output"]["text"] == "three"
    assert by["after_compaction"]["summary"] == "a summary"
    assert by["before_compaction"]["automatic"] is False
