"""Opening, listing, loading and letting go of sessions."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import AgentProfile
from dragoman.store.sqlite import open_store
from dragoman.testing.host import MODEL, EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, say, think, turn

from .talking import JOIN, Talker, desk_of, select, talker


def kept(tmp_path: Path, script: Scripted, tools: Any = (), **profile: Any) -> Door:
    store, _ = open_store(str(tmp_path / "sessions.db"))
    return memory_door(script, tools, store=store, **profile)


async def restart(door: Door) -> None:
    await host_of(door).stop(1.0)
    await host_of(door).store.close()


async def test_initialize_without_anything() -> None:
    client = talker(memory_door(Scripted([])))
    result = await client.call("initialize")
    assert result["protocolVersion"] == 1
    assert result["agentInfo"]["name"] == "dragoman"
    assert result["authMethods"] == []
    about = {"defaultModel": MODEL.ref, "maxSessions": 10, "sessionTimeoutSecs": 3600}
    assert result["_meta"] == {"zeroclaw": about, "dragoman": about}


@pytest.mark.parametrize("version", [0, 1, 3, 65535, "1", None, {}])
async def test_who_writes_as_version_1_does_gets_it(version: Any) -> None:
    client = talker(memory_door(Scripted([])))
    result = await client.call("initialize", {"protocolVersion": version})
    assert result["protocolVersion"] == 1


async def test_capabilities_tell_what_really_works(tmp_path: Path) -> None:
    client = talker(memory_door(Scripted([])))
    can = (await client.call("initialize"))["agentCapabilities"]
    assert can["loadSession"] is False
    assert not {"resume", "close", "list", "delete"} & set(can["sessionCapabilities"])
    assert (await client.refused("session/load", {"sessionId": "x"}))["code"] == -32000
    door = kept(tmp_path, Scripted([]))
    can = (await talker(door).call("initialize"))["agentCapabilities"]
    assert can["loadSession"] is True
    assert set(can["sessionCapabilities"]) == {
        "resume", "close", "list", "delete", "additionalDirectories",
    }  # fmt: skip
    await restart(door)


async def test_there_is_nothing_to_sign_in_to() -> None:
    client = talker(memory_door(Scripted([])))
    await client.greet()
    assert (await client.refused("authenticate", {"methodId": "x"}))["code"] == -32602


@pytest.mark.parametrize("id", ["s", 0, -7, 2**53, None])
async def test_ids_come_back_as_they_were(id: Any) -> None:
    client = talker(memory_door(Scripted([])))
    client.send({"jsonrpc": "2.0", "id": id, "method": "initialize"})
    got = (await client.next())["id"]
    assert got == id and type(got) is type(id)


async def test_the_directory_is_made_canonical(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    client = talker(memory_door(Scripted([])))
    for given in (f"{tmp_path}/real/../real", f"{tmp_path}/link"):
        result = await client.call("session/new", {"cwd": given})
        assert result["workspaceDir"] == str(real)


@pytest.mark.parametrize("key", ["cwd", "workspaceDir", "workspace_dir"])
async def test_all_names_of_the_directory(key: str, tmp_path: Path) -> None:
    client = talker(memory_door(Scripted([])))
    assert (await client.call("session/new", {key: str(tmp_path)}))["workspaceDir"] == str(tmp_path)


async def test_without_a_directory_it_is_where_we_were_started() -> None:
    client = talker(memory_door(Scripted([])))
    assert (await client.call("session/new"))["workspaceDir"] == os.path.realpath(os.getcwd())
    error = await client.refused("session/new", {"cwd": "/does/not/exist"})
    assert error["code"] == -32602 and "cwd" in error["message"]
    assert (await client.refused("session/new", {"cwd": 5}))["code"] == -32602


@pytest.mark.parametrize("key", ["agentAlias", "agent_alias", "agent"])
async def test_all_names_of_the_agent(key: str) -> None:
    profiles = [AgentProfile("one", model=MODEL.ref), AgentProfile("two", model=MODEL.ref)]
    client = talker(memory_door(Scripted([]), profiles=profiles))
    result = await client.call("session/new", {key: "two"})
    assert result["_meta"]["dragoman"]["agent"] == "two"
    assert (await client.refused("session/new", {key: "three"}))["code"] == -32602
    assert (await client.refused("session/new", {}))["code"] == -32602


async def test_the_default_agent_and_the_alias_in_meta() -> None:
    profiles = [AgentProfile("one", model=MODEL.ref), AgentProfile("two", model=MODEL.ref)]
    client = talker(memory_door(Scripted([]), profiles=profiles), default_agent="one")
    result = await client.call("session/new", {"agentAlias": " "})
    assert result["_meta"]["dragoman"]["agent"] == "one"
    meta = {"dragoman": {"agentAlias": "two"}}
    result = await client.call("session/new", {"_meta": meta})
    assert result["_meta"]["dragoman"]["agent"] == "two"


async def test_meta_and_strange_members_change_nothing(tmp_path: Path) -> None:
    client = talker(memory_door(Scripted([])))
    params = {"cwd": str(tmp_path), "systemPrompt": "x", "_meta": {"cwd": "/", "workspaceDir": "/"}}
    assert (await client.call("session/new", params))["workspaceDir"] == str(tmp_path)


async def test_further_directories(tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    door = memory_door(Scripted([]))
    client = talker(door)
    session = await client.new(str(tmp_path), additionalDirectories=[f"{tmp_path}/x/../more"])
    assert host_of(door).live[session].gear.roots == (str(more),)
    for wrong in (["relative"], [5], "x", ["/does/not/exist"]):
        params = {"cwd": str(tmp_path), "additionalDirectories": wrong}
        assert (await client.refused("session/new", params))["code"] == -32602


async def test_the_limit_of_sessions_and_a_free_place_after_a_close(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted([]))
    client = talker(door, max_sessions=2)
    one, two = client.ask("session/new"), client.ask("session/new")
    third = client.ask("session/new")
    error = (await client.reply(third))["error"]
    assert error["code"] == -32001 and error["message"] == "Maximum session limit reached (2)"
    session = (await client.reply(one))["result"]["sessionId"]
    await client.reply(two)
    await client.call("session/close", {"sessionId": session})
    await client.new()
    await restart(door)


async def test_without_a_store_a_session_is_stopped_not_closed() -> None:
    client = talker(memory_door(Scripted([])))
    session = await client.new()
    assert (await client.refused("session/close", {"sessionId": session}))["code"] == -32000
    assert (await client.call("session/stop", {"sessionId": session}))["stopped"] is True


async def test_modes_and_options_are_in_step() -> None:
    script = Scripted([turn("x", hang())])
    door = memory_door(script)
    client = talker(door)
    result = await client.call("session/new")
    session = result["sessionId"]
    assert result["modes"]["currentModeId"] == "supervised"
    by_id = {o["id"]: o for o in result["configOptions"]}
    assert by_id["mode"]["currentValue"] == "supervised"
    assert by_id["model"]["currentValue"] == MODEL.ref
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await client.update("agent_message_chunk")
    assert await client.call("session/set_mode", {"sessionId": session, "modeId": "full"}) == {}
    assert client.updates()[-2]["currentModeId"] == "full"
    listed = client.updates()[-1]["configOptions"]
    assert {o["id"]: o for o in listed}["mode"]["currentValue"] == "full"
    params = {"sessionId": session, "configId": "mode", "value": "readonly"}
    changed = (await client.call("session/set_config_option", params))["configOptions"]
    assert {o["id"]: o for o in changed}["mode"]["currentValue"] == "readonly"
    assert len(changed) == len(result["configOptions"])
    assert client.updates()[-2]["currentModeId"] == "readonly"
    client.tell("session/cancel", {"sessionId": session})
    await client.reply(waiting)


@pytest.mark.parametrize(
    ("option", "value"),
    [("mode", "god"), ("model", "no/such"), ("nope", "x"), ("mode", True), (None, None)],
)
async def test_options_that_do_not_exist(option: Any, value: Any) -> None:
    client = talker(memory_door(Scripted([])))
    session = await client.new()
    params = {"sessionId": session, "configId": option, "value": value}
    assert (await client.refused("session/set_config_option", params))["code"] == -32602
    params = {"sessionId": session, "modeId": value}
    assert (await client.refused("session/set_mode", params))["code"] == -32602


async def test_thinking_can_be_chosen_where_the_model_thinks() -> None:
    import msgspec

    door = memory_door(Scripted([]))
    host_of(door).models.model = msgspec.structs.replace(MODEL, reasoning=True)  # type: ignore[attr-defined]
    client = talker(door)
    session = await client.new()
    params = {"sessionId": session, "configId": "thought_level", "value": "high"}
    changed = (await client.call("session/set_config_option", params))["configOptions"]
    assert changed[-1]["currentValue"] == "high"
    params["value"] = "default"
    changed = (await client.call("session/set_config_option", params))["configOptions"]
    assert changed[-1]["currentValue"] == "default"


# --- persistence ---


async def test_load_replays_the_whole_conversation_after_a_restart(tmp_path: Path) -> None:
    script = Scripted([turn(think("hmm"), "let me see", call("echo", text="hi")), "all done", "ok"])
    door = kept(tmp_path, script, [EchoTool()], mode="full")
    client = talker(door)
    session = await client.new(str(tmp_path))
    await client.prompt(session, "please do")
    await restart(door)

    script = Scripted(["remembered"])
    door = kept(tmp_path, script, [EchoTool()], mode="full")
    client = talker(door)
    waiting = client.ask(
        "session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
    )
    result = (await client.reply(waiting))["result"]
    assert result["modes"]["currentModeId"] == "full"
    assert client.kinds() == [
        "user_message_chunk", "agent_thought_chunk", "agent_message_chunk", "tool_call",
        "tool_call_update", "agent_message_chunk", "usage_update", "available_commands_update",
    ]  # fmt: skip
    assert client.said("user_message_chunk") == "please do"
    assert client.said() == "let me seeall done"
    calls = [u for u in client.updates() if u["sessionUpdate"].startswith("tool_call")]
    assert calls[0]["toolCallId"] == calls[1]["toolCallId"]
    assert calls[1]["status"] == "completed" and calls[1]["rawOutput"] == "hi"
    assert (await client.prompt(session, "and?"))["content"] == "remembered"
    assert len(script.requests[0].messages) == 5
    await restart(door)


async def test_resume_replays_nothing(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted(["one"]))
    client = talker(door)
    session = await client.new()
    await client.prompt(session)
    await restart(door)
    script = Scripted(["two"])
    door = kept(tmp_path, script)
    client = talker(door)
    await client.call("session/resume", {"session_id": session})
    await client.silence()
    assert client.updates() == []
    await client.prompt(session)
    assert len(script.requests[0].messages) == 3
    await restart(door)


async def test_load_of_what_is_active_or_unknown(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted(["one"]))
    client = talker(door)
    session = await client.new()
    error = await client.refused("session/load", {"sessionId": session})
    assert error["code"] == -32602 and "already active" in error["message"]
    assert (await client.refused("session/load", {"sessionId": "ghost"}))["code"] == -32000
    assert (await client.refused("session/resume", {"sessionId": "ghost"}))["code"] == -32000
    assert (await client.refused("session/load", {}))["code"] == -32602
    await restart(door)


async def test_nothing_is_loaded_without_a_store() -> None:
    desk = desk_of(memory_door(Scripted(["one"])))
    client, other = Talker(desk, "one"), Talker(desk, "other")
    session = await client.new()
    for one in (client, other):
        for method in ("session/load", "session/resume", "session/close"):
            error = await one.refused(method, {"sessionId": session})
            assert error["code"] == -32000 and error["data"]["code"] == "SESSION_NOT_FOUND"
    assert (await client.prompt(session))["stopReason"] == "end_turn"
    for meta in (None, 5, [], {"dragoman": 1}, {"dragoman": {"join": 1}}):
        given = {"sessionId": session, "_meta": meta}
        assert (await other.refused("session/load", given))["code"] == -32000
    ghost = {"sessionId": "ghost", "_meta": JOIN}
    assert (await other.refused("session/load", ghost))["code"] == -32000
    await other.call("session/load", {"sessionId": session, "_meta": JOIN})
    assert other.said() == "one"


@pytest.mark.parametrize("server", [{}, {"command": ""}, {"url": 5}, {"type": "http"}])
async def test_a_server_that_cannot_be_reached_in_any_way(tmp_path: Path, server: Any) -> None:
    client = talker(memory_door(Scripted([])))
    good = {"name": "good", "command": "true", "args": [], "env": []}
    params = {"cwd": str(tmp_path), "mcpServers": [good, {"name": "lost", **server}]}
    error = await client.refused("session/new", params)
    assert error["code"] == -32602
    assert error["message"] == 'mcpServers[1] ("lost") has neither command nor url'


async def test_close_then_load_on_the_same_connection(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted(["one"]))
    client = talker(door)
    session = await client.new()
    await client.prompt(session, "my words")
    assert await client.call("session/close", {"sessionId": session}) == {}
    assert door.live(session) is None
    assert (await client.refused("session/close", {"sessionId": session}))["code"] == -32000
    params = {"sessionId": session, "prompt": "x"}
    assert (await client.refused("session/prompt", params))["code"] == -32000
    await client.call("session/load", {"sessionId": session})
    assert client.said("user_message_chunk") == "my words"
    await restart(door)


@pytest.mark.parametrize("origin", ["acp", "another"])
async def test_closing_stops_the_work_of_an_editors_session_for_all(
    tmp_path: Path, origin: str
) -> None:
    door = kept(tmp_path, Scripted([turn("a", hang(), "b")]))
    desk = desk_of(door)
    one, two = Talker(desk, "one"), Talker(desk, "two")
    if origin == "acp":
        session = await one.new(str(tmp_path))
    else:
        opened = await door.open(OpenSpec(agent="default", cwd=str(tmp_path)), Who("zeroclaw"))
        session = opened.id
        await one.call("session/resume", {"sessionId": session})
    await two.call("session/resume", {"sessionId": session})
    waiting = one.ask("session/prompt", {"sessionId": session, "prompt": "go"})
    await one.update("agent_message_chunk")
    assert await two.call("session/close", {"sessionId": session}) == {}
    if origin == "another":
        host_of(door).models.provider.release()  # type: ignore[attr-defined]
    said = (await one.reply(waiting))["result"]["stopReason"]
    assert said == ("cancelled" if origin == "acp" else "end_turn")
    await restart(door)


async def test_close_cancels_the_prompt_in_flight(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted([turn("part", hang())]))
    client = talker(door)
    session = await client.new()
    prompt = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await client.update("agent_message_chunk")
    close = client.ask("session/close", {"sessionId": session})
    assert (await client.reply(prompt))["result"]["stopReason"] == "cancelled"
    assert (await client.reply(close))["result"] == {}
    await restart(door)


async def test_stop_waits_for_the_turn() -> None:
    script = Scripted([turn("part", hang())])
    client = talker(memory_door(script))
    session = await client.new()
    prompt = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await client.update("agent_message_chunk")
    stop = client.ask("session/stop", {"sessionId": session})
    params = {"sessionId": session, "prompt": "x"}
    assert (await client.refused("session/prompt", params))["code"] == -32000
    script.release()
    assert (await client.reply(prompt))["result"]["stopReason"] == "end_turn"
    assert (await client.reply(stop))["result"] == {"sessionId": session, "stopped": True}
    assert (await client.refused("session/stop", {"sessionId": session}))["code"] == -32000


async def test_what_was_cleared_is_not_replayed(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted(["one", "two"]))
    client = talker(door)
    session = await client.new()
    await client.prompt(session, "before")
    assert "cleared" in (await client.prompt(session, "/clear"))["content"]
    await client.prompt(session, "after")
    await client.call("session/close", {"sessionId": session})
    client = talker(door)
    await client.call("session/load", {"sessionId": session})
    assert client.said("user_message_chunk") == "after" and client.said() == "two"
    await restart(door)


async def test_list_pages_filters_and_refuses_strange_cursors(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted(["x"]))
    client = talker(door, max_sessions=100)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    made = {await client.new(str(tmp_path / ("a" if n % 2 else "b"))) for n in range(60)}
    first = await client.call("session/list", {})
    second = await client.call("session/list", {"cursor": first["nextCursor"]})
    found = [s["sessionId"] for s in first["sessions"] + second["sessions"]]
    assert len(found) == 60 and set(found) == made and "nextCursor" not in second
    here = await client.call("session/list", {"cwd": f"{tmp_path}/a/../a"})
    assert len(here["sessions"]) == 30
    assert {s["cwd"] for s in here["sessions"]} == {str(tmp_path / "a")}
    assert (await client.call("session/list", {"cwd": "/bogus"}))["sessions"] == []
    assert "error" in await client.reply(client.ask("session/list", {"cursor": "bogus"}))
    stamp = first["sessions"][0]["updatedAt"]
    assert stamp.endswith("Z") and "T" in stamp
    await restart(door)


async def test_delete_is_for_good_and_may_be_repeated(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted([turn("x", hang())]))
    client = talker(door)
    session = await client.new()
    prompt = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await client.update("agent_message_chunk")
    for _ in range(2):
        assert await client.call("session/delete", {"sessionId": session}) == {}
    assert (await client.reply(prompt))["result"]["stopReason"] == "cancelled"
    assert await client.call("session/delete", {"sessionId": "never"}) == {}
    assert (await client.call("session/list"))["sessions"] == []
    assert (await client.refused("session/load", {"sessionId": session}))["code"] == -32000
    await restart(door)


async def test_a_session_that_could_not_be_deleted_is_loaded_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = kept(tmp_path, Scripted([say("still here")]))
    client = talker(door)
    session = await client.new(str(tmp_path))

    async def full(session_id: str, by: Who | None = None) -> bool:
        raise StoreFailed("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(door, "delete", full)
        refusal = await client.refused("session/delete", {"sessionId": session})
        assert "no disk" in refusal["message"]
    asked = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
    assert "error" not in await client.reply(client.ask("session/load", asked))
    await client.prompt(session)
    assert await client.call("session/delete", {"sessionId": session}) == {}
    await restart(door)


async def test_a_session_of_another_connection_is_listed_but_not_ours_to_prompt(
    tmp_path: Path,
) -> None:
    door = kept(tmp_path, Scripted([say("secret", deltas=1)]))
    desk = desk_of(door)
    one, two = Talker(desk, "one"), Talker(desk, "two")
    session = await one.new()
    await two.greet()
    assert (await two.call("session/list"))["sessions"][0]["sessionId"] == session
    params = {"sessionId": session, "prompt": "x"}
    assert (await two.refused("session/prompt", params))["code"] == -32000
    await one.prompt(session)
    await two.silence()
    assert two.updates() == []
    await restart(door)


async def test_loading_a_running_session_joins_it(tmp_path: Path) -> None:
    script = Scripted([turn(say("first half ", deltas=1), hang(), say("second half", deltas=1))])
    door = kept(tmp_path, script)
    desk = desk_of(door)
    one, two = Talker(desk, "one"), Talker(desk, "two")
    session = await one.new()
    prompt = one.ask("session/prompt", {"sessionId": session, "prompt": "go"})
    await one.update("agent_message_chunk")
    await two.call("session/load", {"sessionId": session})
    await script.hanging.wait()
    script.release()
    await one.reply(prompt)
    while two.said() != "first half second half":
        await two.next()
    assert two.said("user_message_chunk") == "go"
    await restart(door)


async def test_a_connection_that_goes_away_leaves_the_session(tmp_path: Path) -> None:
    script = Scripted([turn("x", hang(), "y")])
    door = kept(tmp_path, script)
    desk = desk_of(door)
    one = Talker(desk, "one")
    session = await one.new()
    one.ask("session/prompt", {"sessionId": session, "prompt": "go"})
    await one.update("agent_message_chunk")
    one.end.drop()
    await script.hanging.wait()
    await asyncio.sleep(0)  # the connection is told that it is gone
    assert not desk.active and host_of(door).live[session].inbox.busy
    two = Talker(desk, "two")
    await two.call("session/load", {"sessionId": session})
    script.release()
    while not two.said().endswith("y"):
        await two.next()
    await restart(door)


async def test_an_idle_session_is_let_go_and_can_be_loaded(tmp_path: Path) -> None:
    script = Scripted([turn("x", hang())])
    door = kept(tmp_path, script)
    desk = desk_of(door, session_timeout_secs=1.5)
    client = Talker(desk)
    busy = await client.new()
    prompt = client.ask("session/prompt", {"sessionId": busy, "prompt": "go"})
    await client.update("agent_message_chunk")  # it runs, and so it is not idle any more
    idle = await client.new()
    async with asyncio.timeout(60):
        while idle in desk.active:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    assert busy in desk.active and host_of(door).live[busy].inbox.busy
    params = {"sessionId": idle, "prompt": "x"}
    assert (await client.refused("session/prompt", params))["code"] == -32000
    await client.call("session/load", {"sessionId": idle})
    script.release()
    assert (await client.reply(prompt))["result"]["stopReason"] == "end_turn"
    await desk.close()
    await restart(door)


async def test_a_session_that_another_client_closed_is_found_again(tmp_path: Path) -> None:
    door = kept(tmp_path, Scripted(["one", "two"], resume=True))
    client = talker(door)
    session = await client.new()
    await client.prompt(session)
    await door.close(session)
    assert (await client.prompt(session))["content"] == "two"
    assert client.said() == "onetwo"
    await restart(door)


async def test_a_permission_that_waits_is_asked_again_after_a_load(tmp_path: Path) -> None:
    tool = EchoTool()
    door = kept(tmp_path, Scripted([call("echo", text="hi"), "done"]), [tool])
    desk = desk_of(door)
    one = Talker(desk, "one")
    session = await one.new()
    one.ask("session/prompt", {"sessionId": session, "prompt": "go"})
    await one.until("session/request_permission")
    one.end.drop()
    two = Talker(desk, "two")
    two.answers["session/request_permission"] = select("allow-once")
    await two.call("session/load", {"sessionId": session})
    while "done" not in two.said():
        await two.next()
    assert tool.ran == [{"text": "hi"}]
    await restart(door)


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_requests_of_one_session_take_effect_in_their_order(
    tmp_path: Path, method: str
) -> None:
    """What follows a load in the same write finds the session loaded, and one watch of it."""
    door = kept(tmp_path, Scripted(["one"]))
    client = talker(door)
    session = await client.new(str(tmp_path))
    await client.prompt(session)
    await restart(door)

    door = kept(tmp_path, Scripted(["two", "three"]))
    client = talker(door)
    given = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
    loading = client.ask(method, given)
    mode = client.ask("session/set_mode", {"sessionId": session, "modeId": "full"})
    prompt = [{"type": "text", "text": "go"}]
    asked = client.ask("session/prompt", {"sessionId": session, "prompt": prompt})
    assert "result" in await client.reply(loading)
    assert "result" in await client.reply(mode)
    assert (await client.reply(asked))["result"]["content"] == "two"
    assert len(host_of(door).live[session].ledger.watches) == 1
    before = client.said().count("three")
    assert (await client.prompt(session))["content"] == "three"
    assert client.said().count("three") == before + 1
    await restart(door)


@pytest.mark.parametrize("way", ["session/close", "session/stop"])
async def test_a_session_that_is_left_and_loaded_in_one_write_is_there_again(
    tmp_path: Path, way: str
) -> None:
    door = kept(tmp_path, Scripted(["one", "two", "three"]))
    client = talker(door)
    session = await client.new(str(tmp_path))
    await client.prompt(session)
    given = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
    leaving = client.ask(way, {"sessionId": session})
    loading = client.ask("session/load", given)
    twice = client.ask("session/load", given)
    asked = client.ask("session/prompt", prompt)
    for id in (leaving, loading):
        assert "result" in await client.reply(id)
    assert "already active" in (await client.reply(twice))["error"]["message"]
    assert (await client.reply(asked))["result"]["content"] == "two"
    assert len(host_of(door).live[session].ledger.watches) == 1
    before = client.said().count("three")
    assert (await client.prompt(session))["content"] == "three"
    assert client.said().count("three") == before + 1
    await restart(door)


async def test_requests_behind_a_load_that_fails_are_refused(tmp_path: Path) -> None:
    client = talker(kept(tmp_path, Scripted([])))
    gone = {"sessionId": "none", "cwd": "/", "mcpServers": []}
    loading = client.ask("session/load", gone)
    mode = client.ask("session/set_mode", {"sessionId": "none", "modeId": "full"})
    prompt = {"sessionId": "none", "prompt": [{"type": "text", "text": "go"}]}
    asked = client.ask("session/prompt", prompt)
    assert "error" in await client.reply(loading)
    assert "error" in await client.reply(mode)
    refused = await client.reply(asked)
    assert refused["error"]["message"] == "Session not found: none", "and not cancelled by anybody"
