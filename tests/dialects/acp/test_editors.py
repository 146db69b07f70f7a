"""What demanding editors run into: terminals, models, directories, odd paths."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.ports import ModelInfo
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call
from dragoman.tools.bash import Bash

from .talking import JOIN, Talker, desk_of, talker

TERMINAL = {"type": "terminal", "terminalId": "t1"}


def lend(client: Talker, code: int = 0) -> None:
    client.answers |= {
        "terminal/create": lambda p: {"terminalId": "t1"},
        "terminal/wait_for_exit": lambda p: {"exitCode": code},
        "terminal/output": lambda p: {"output": "out\n", "truncated": False},
        "terminal/release": lambda p: {},
    }


def bash() -> Bash:
    return Bash(lambda env: None)  # type: ignore[arg-type,return-value]


def last_call(client: Talker) -> dict[str, Any]:
    found = [u for u in client.updates() if u["sessionUpdate"] == "tool_call_update"]
    assert found[-1]["status"] in ("completed", "failed"), found
    return found[-1]


@pytest.mark.parametrize("code", [0, 3])
async def test_a_terminal_is_released_after_the_update_that_shows_it(code: int) -> None:
    client = talker(memory_door(Scripted([call("bash", command="x"), "ok"]), [bash()], mode="full"))
    await client.greet("zed", terminal=True)
    lend(client, code)
    await client.prompt(await client.new())
    assert last_call(client)["content"] == [TERMINAL]
    ends = [
        place for place, message in enumerate(client.heard)
        if message.get("params", {}).get("update", {}).get("status") in ("completed", "failed")
    ]  # fmt: skip
    released = [m.get("method") for m in client.heard].index("terminal/release")
    assert ends[-1] < released
    assert [m.get("method") for m in client.heard].count("terminal/release") == 1


async def test_others_and_replays_get_text_where_the_owner_sees_its_terminal(
    tmp_path: Path,
) -> None:
    store, _ = open_store(str(tmp_path / "s.db"))
    script = Scripted([call("bash", command="x"), "ok"])
    door = memory_door(script, [bash()], store=store, mode="full")
    desk = desk_of(door)
    owner, other = Talker(desk), Talker(desk)
    await other.greet("zed", terminal=True)  # the same shape, other terminals
    session = await other.new(str(tmp_path))
    await owner.greet("zed", terminal=True)
    lend(owner)
    joined = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": [], "_meta": JOIN}
    await owner.call("session/resume", joined)  # who came last lends
    await owner.prompt(session)
    assert last_call(owner)["content"] == [TERMINAL]
    await other.reply(other.ask("_test/barrier"))
    shown = last_call(other)["content"]
    assert shown[0]["content"]["text"].startswith("$ x\n\nout")
    await owner.call("session/close", {"sessionId": session})
    await owner.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
    assert last_call(owner)["content"] == shown
    await host_of(door).stop(1.0)
    await store.close()


async def test_a_terminal_is_released_when_its_client_leaves_first() -> None:
    client = talker(memory_door(Scripted([call("bash", command="x"), "ok"]), [bash()], mode="full"))
    await client.greet("zed", terminal=True)
    lend(client)
    del client.answers["terminal/output"]
    session = await client.new()
    asked = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await client.until("terminal/output")
    client.tell("session/cancel", {"sessionId": session})
    assert (await client.reply(asked))["result"]["stopReason"] == "cancelled"
    assert [m.get("method") for m in client.heard].count("terminal/release") == 1
    assert TERMINAL not in last_call(client)["content"]


async def test_the_agents_own_model_stays_in_the_list() -> None:
    script = Scripted([])
    door = memory_door(script)
    models = host_of(door).models
    models.more["scripted/other"] = ModelInfo("scripted", "other", context_window=10)  # type: ignore[attr-defined]
    models.list = lambda provider=None: [models.more["scripted/other"]]  # type: ignore
    client = talker(door)
    session = await client.new()
    for chosen in ("scripted/other", "scripted/test"):
        params = {"sessionId": session, "configId": "model", "value": chosen}
        found = (await client.call("session/set_config_option", params))["configOptions"]
        listed = next(one for one in found if one["id"] == "model")
        assert listed["currentValue"] == chosen
        assert {o["value"] for o in listed["options"]} == {"scripted/test", "scripted/other"}


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_session_stays_in_its_directory(tmp_path: Path, method: str) -> None:
    store, _ = open_store(str(tmp_path / "s.db"))
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "work")
    door = memory_door(Scripted([]), store=store)
    client = talker(door)
    session = await client.new(str(tmp_path / "work"))
    await client.call("session/close", {"sessionId": session})
    for cwd in (str(tmp_path), "/nowhere", "work", "", 7, "a\0b"):
        params = {"sessionId": session, "cwd": cwd, "mcpServers": []}
        error = await client.refused(method, params)
        assert error["code"] == -32602 and "Internal" not in error["message"], (cwd, error)
    for given in ({"cwd": str(tmp_path / "link")}, {"cwd": f"{tmp_path / 'work'}/../work"}, {}):
        await client.call(method, {"sessionId": session, **given})
        await client.call("session/close", {"sessionId": session})
    await host_of(door).stop(1.0)
    await store.close()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/new", {"cwd": "/tmp/a\0b"}),
        ("session/new", {"workspaceDir": "\0"}),
        ("session/new", {"cwd": "/tmp", "additionalDirectories": ["/tmp/\0"]}),
        ("session/list", {"cwd": "a\0b"}),
    ],
)
async def test_a_path_with_a_nul_is_refused_by_name(method: str, params: Any) -> None:
    client = talker(memory_door(Scripted([])))
    await client.greet()
    error = await client.refused(method, params)
    assert error["code"] == -32602 and "NUL" in error["message"]


@pytest.mark.parametrize(
    ("name", "capabilities", "output"),
    [
        ("", {}, "hi"),
        ("zeroclaw-tui", {"fs": {}}, "hi"),
        ("", {"fs": {"readTextFile": False}}, {"output": "hi"}),
        ("some editor", {"terminal": False}, {"output": "hi"}),
        ("toad", {}, {"output": "hi"}),
    ],
)
async def test_sdk_clients_get_an_object_as_output(
    name: str, capabilities: dict[str, Any], output: Any
) -> None:
    door = memory_door(Scripted([call("echo", text="hi"), "ok"]), [EchoTool()], mode="full")
    client = talker(door)
    await client.greet(name, **capabilities)
    await client.prompt(await client.new())
    assert last_call(client)["rawOutput"] == output


async def test_a_closed_decoder_gets_no_usage() -> None:
    for name, told in (("toad", False), ("", True)):
        client = talker(memory_door(Scripted(["hello"])))
        await client.greet(name)
        await client.prompt(await client.new())
        assert ("usage_update" in client.kinds()) is told


async def test_a_session_whose_directory_is_gone_is_not_loaded(tmp_path: Path) -> None:
    store, _ = open_store(str(tmp_path / "s.db"))
    door = memory_door(Scripted(["hi"]), store=store)
    client = talker(door)
    await client.greet()
    there = tmp_path / "work"
    there.mkdir()
    session = await client.new(str(there))
    await client.prompt(session)
    await client.call("session/close", {"sessionId": session})
    there.rmdir()
    for method in ("session/load", "session/resume"):
        for more in ({}, {"cwd": str(there), "mcpServers": []}):
            error = await client.refused(method, {"sessionId": session, **more})
            assert error["code"] == -32602 and str(there) in error["message"]
    there.mkdir()
    await client.call("session/load", {"sessionId": session, "cwd": str(there), "mcpServers": []})
    await host_of(door).stop(1.0)
    await store.close()
