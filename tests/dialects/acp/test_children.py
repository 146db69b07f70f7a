"""Children of sessions: announced by their parent, told under their own id, stopped one by one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.door import Door
from dragoman.engine.ports import ModelPart, ModelRequest
from dragoman.host.tasks import Tasks
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, turn
from dragoman.tools.registry import Box

from .oracle import check_strictly
from .talking import Talker, desk_of, select

ROLE = "---\ndescription: does things\n---\nDo it."


class Strict(Talker):
    check = staticmethod(check_strictly)


class Family(Scripted):
    """One script for the parent, another one for its children."""

    def __init__(self, parent: list[Any], child: list[Any]) -> None:
        super().__init__(parent)
        self.child = Scripted(child)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        if any(tool.name == "task" for tool in request.tools):
            return super().stream(request)
        return self.child.stream(request)


def family(cwd: Path, script: Family, tool: EchoTool | None = None, **more: Any) -> Door:
    folder = cwd / ".agents/agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "doer.md").write_text(ROLE)
    door = memory_door(script, **more)
    host = host_of(door)
    tasks = Tasks(host)

    async def toolbox(profile: Any, info: Any) -> Any:
        return await tasks.part(profile, info) or Box([tool or EchoTool()])

    host.agents.toolbox = toolbox  # type: ignore[method-assign,assignment]
    return door


def task(prompt: str = "look", role: str = "doer") -> Any:
    return call("task", prompt=prompt, role=role, title="Looker")


async def first(door: Door, **can: Any) -> Strict:
    client = Strict(desk_of(door))
    await client.greet("editor", **can)
    return client


async def second(door: Door) -> Strict:
    client = Strict(desk_of(door))
    await client.greet2()
    return client


def children(client: Talker, session: str) -> list[dict[str, Any]]:
    return [u for u in client.updates(session) if u["sessionUpdate"] == "subagent_update"]


def places(client: Talker) -> list[str]:
    """The session and kind of every update, in order."""
    return [
        f"{m['params']['sessionId']} {m['params']['update']['sessionUpdate']}"
        for m in client.heard
        if m.get("method") == "session/update"
    ]


async def test_version_1_is_told_of_a_child_if_it_wants_to_be(tmp_path: Path) -> None:
    script = Family([task(), "done"], [turn("I look.", call("echo", text="x")), "seen"])
    client = await first(family(tmp_path, script, mode="full"), subagents={})
    session = await client.new(str(tmp_path))
    assert (await client.prompt(session))["stopReason"] == "end_turn"
    told = children(client, session)
    child = told[0]["sessionId"]
    assert (told[0]["title"], told[0]["capabilities"]) == ("Looker", {"cancel": {}})
    assert told[0]["cwd"] == str(tmp_path)
    states = [one["state"] for one in told if "state" in one]
    assert states == [{"state": "running"}, {"state": "idle", "stopReason": "end_turn"}]
    assert told[-1]["capabilities"] == {}
    order = places(client)
    assert order.index(f"{session} subagent_update") < order.index(f"{child} session_message")
    given = client.updates(child)[0]
    assert (given["senderSessionId"], given["recipientSessionId"]) == (session, child)
    assert given["content"] == [{"type": "text", "text": "look"}]
    kinds = {u["sessionUpdate"] for u in client.updates(child)}
    assert {"agent_message_chunk", "tool_call", "tool_call_update"} <= kinds
    assert _words(client, child) == "I look.seen"
    await client.silence()


@pytest.mark.parametrize("can", [{}, {"subagents": None}])
async def test_others_see_a_tool_call_alone(tmp_path: Path, can: dict[str, Any]) -> None:
    client = await first(family(tmp_path, Family([task(), "done"], ["seen"]), mode="full"), **can)
    session = await client.new(str(tmp_path))
    await client.prompt(session)
    assert {place.split()[0] for place in places(client)} == {session}
    assert "subagent_update" not in client.kinds()


async def test_version_2_is_told_without_asking(tmp_path: Path) -> None:
    script = Family([task(), "done"], [turn("I look.", call("echo", text="x")), "seen"])
    client = await second(family(tmp_path, script, mode="full"))
    session = await client.new2(str(tmp_path))
    await client.call("session/prompt", {"sessionId": session, "prompt": _say("go")})
    await _idle(client, session)
    told = children(client, session)
    child = told[0]["sessionId"]
    assert told[0]["capabilities"] == {"cancel": {}} and told[-1]["capabilities"] == {}
    kinds = [u["sessionUpdate"] for u in client.updates(child)]
    assert kinds[0] == "session_message" and "user_message" not in kinds
    states = [u["state"] for u in client.updates(child) if u["sessionUpdate"] == "state_update"]
    assert states == ["running", "idle"]
    assert [one["state"]["state"] for one in told if "state" in one] == states
    listed = (await client.call("session/list"))["sessions"]
    assert [one["sessionId"] for one in listed] == [session]


def _words(client: Talker, session: str) -> str:
    chunks = [u for u in client.updates(session) if u["sessionUpdate"] == "agent_message_chunk"]
    return "".join(u["content"]["text"] for u in chunks)


def _say(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


async def _idle(client: Talker, session: str) -> dict[str, Any]:
    while True:
        for update in client.updates(session):
            if update.get("state") == "idle":
                return update
        await client.next()


@pytest.mark.parametrize("version", [1, 2])
async def test_one_child_is_cancelled_and_its_parent_goes_on(tmp_path: Path, version: int) -> None:
    script = Family([task(), "so be it"], [turn("a", hang())])
    door = family(tmp_path, script, mode="full")
    client = await (first(door, subagents={}) if version == 1 else second(door))
    session = await (client.new if version == 1 else client.new2)(str(tmp_path))
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": _say("go")})
    child = ""
    while not any(
        u["sessionUpdate"] == "agent_message_chunk" for u in client.updates(child or "-")
    ):
        await client.next()
        child = next((one["sessionId"] for one in children(client, session)), "")
    for method in (
        "session/prompt", "session/load", "session/resume", "session/set_title", "session/fork",
        "session/archive", "session/unarchive", "session/delete", "session/set_config_option",
    ):  # fmt: skip
        params = {"sessionId": child, "prompt": _say("x"), "cwd": str(tmp_path), "title": "x"}
        assert "error" in await client.reply(client.ask(method, params)), method
    assert (await client.call("session/status", {"sessionId": child}))["status"] == "open"
    client.tell("session/cancel", {"sessionId": child})
    if version == 1:
        assert (await client.reply(waiting))["result"]["stopReason"] == "end_turn"
    else:
        await _idle(client, session)
    idle = children(client, session)[-1]
    assert idle["state"] == {"state": "idle", "stopReason": "cancelled"}
    assert _words(client, session) == "so be it"


@pytest.mark.parametrize(("can", "own"), [({"subagents": {}}, True), ({}, False)])
async def test_a_childs_question_reaches_the_editor(
    tmp_path: Path, can: dict[str, Any], own: bool
) -> None:
    tool = EchoTool()
    script = Family([task(), "done"], [call("echo", text="x"), "seen"])
    client = await first(family(tmp_path, script, tool), **can)
    client.answers["session/request_permission"] = select("allow-once")
    session = await client.new(str(tmp_path))
    assert (await client.prompt(session))["stopReason"] == "end_turn"
    method = "session/request_permission"
    (asked,) = [m["params"] for m in client.heard if m.get("method") == method]
    assert (asked["sessionId"] != session) is own and tool.ran == [{"text": "x"}]
    if own:
        states = [one["state"]["state"] for one in children(client, session) if "state" in one]
        assert states == ["running", "requires_action", "running", "idle"]


async def test_cancelling_the_parent_ends_its_children_first(tmp_path: Path) -> None:
    script = Family([turn(task("a"), task("b"))], [turn("a", hang())])
    client = await first(family(tmp_path, script, mode="full"), subagents={})
    session = await client.new(str(tmp_path))
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "go"})
    while sum(u["sessionUpdate"] == "agent_message_chunk" for u in client.updates()) < 2:
        await client.next()
    client.tell("session/cancel", {"sessionId": session})
    assert (await client.reply(waiting))["result"]["stopReason"] == "cancelled"
    ends = [one["state"] for one in children(client, session) if one.get("capabilities") == {}]
    assert ends == [{"state": "idle", "stopReason": "cancelled"}] * 2
    await client.silence()


@pytest.mark.parametrize("version", [1, 2])
async def test_the_past_of_children_is_told_with_their_parents(
    tmp_path: Path, version: int
) -> None:
    store, _ = open_store(str(tmp_path / "s.db"))
    script = Family([task(), "done"], [turn("I look.", call("echo", text="x")), "seen"])
    door = family(tmp_path, script, mode="full", store=store)
    client = await (first(door, subagents={}) if version == 1 else second(door))
    session = await (client.new if version == 1 else client.new2)(str(tmp_path))
    await client.call("session/prompt", {"sessionId": session, "prompt": _say("go")})
    if version == 2:
        await _idle(client, session)
    child = children(client, session)[0]["sessionId"]
    await client.call("session/close", {"sessionId": session})
    again = await (first(door, subagents={}) if version == 1 else second(door))
    there = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
    if version == 1:
        await again.call("session/load", there)
    else:
        await again.call("session/resume", {**there, "replayFrom": {"type": "start"}})
    assert [one["sessionId"] for one in children(again, session)] == [child, child]
    assert children(again, session)[0]["capabilities"] == {}
    assert children(again, session)[-1]["state"] == {"state": "idle"}
    order = places(again)
    assert order.index(f"{session} subagent_update") < order.index(f"{child} session_message")
    said = [u for u in again.updates(child) if u["sessionUpdate"].startswith("agent_message")]
    texts = [u["content"] if version == 1 else u["content"][0] for u in said]
    assert [text["text"] for text in texts] == ["I look.", "seen"]
    await again.silence()
    await host_of(door).stop(1.0)
    await store.close()


@pytest.mark.parametrize("replay", [False, True])
async def test_who_comes_later_is_told_of_a_child_that_works(tmp_path: Path, replay: bool) -> None:
    script = Family([task(), "done"], [turn("Hel", hang(), "lo")])
    door = family(tmp_path, script, mode="full")
    client = await second(door)
    session = await client.new2(str(tmp_path))
    await client.call("session/prompt", {"sessionId": session, "prompt": _say("go")})
    while not any(u["sessionUpdate"] == "agent_message_chunk" for u in client.updates()):
        await client.next()
    child = children(client, session)[0]["sessionId"]
    other = await second(door)
    params: dict[str, Any] = {"sessionId": session, "cwd": str(tmp_path)}
    if replay:
        params["replayFrom"] = {"type": "start"}
    await other.call("session/resume", params)
    before = len(other.heard)
    script.child.release()
    await _idle(other, session)
    told = [m["params"] for m in other.heard[before:] if m.get("method") == "session/update"]
    announced = told[0]
    assert announced["sessionId"] == session and announced["update"]["sessionId"] == child
    assert announced["update"]["capabilities"] == {"cancel": {}}
    words = [
        p["update"]["content"]["text"]
        for p in told
        if p["sessionId"] == child and p["update"]["sessionUpdate"] == "agent_message_chunk"
    ]
    assert "".join(words) == "Hello"
    assert children(other, session)[-1]["state"]["stopReason"] == "end_turn"
    historical = [one for one in children(other, session) if one.get("capabilities") == {}]
    assert len(historical) == (2 if replay else 1)


async def test_a_call_that_waits_for_its_child_is_stopped_with_it(tmp_path: Path) -> None:
    script = Family([task(), "without it"], [turn("a", hang())])
    client = await second(family(tmp_path, script, mode="full"))
    session = await client.new2(str(tmp_path))
    await client.call("session/prompt", {"sessionId": session, "prompt": _say("go")})
    while not any(u["sessionUpdate"] == "agent_message_chunk" for u in client.updates()):
        await client.next()
    (call_id,) = {u["toolCallId"] for u in client.updates(session) if "toolCallId" in u}
    params = {"sessionId": session, "toolCallId": call_id}
    assert await client.call("tool_call/cancel", params) == {}
    assert (await _idle(client, session))["stopReason"] == "end_turn"
    assert children(client, session)[-1]["state"]["stopReason"] == "cancelled"
    ends = [u["status"] for u in client.updates(session) if "toolCallId" in u and "status" in u]
    assert ends[-1] == "cancelled" and _words(client, session) == "without it"


async def test_a_childs_own_call_is_stopped_alone(tmp_path: Path) -> None:
    class Hangs(EchoTool):
        async def run(self, args: dict[str, Any], env: Any) -> Any:
            await asyncio.Event().wait()

    script = Family([task(), "done"], [call("echo", text="x"), "never mind"])
    client = await second(family(tmp_path, script, Hangs(), mode="full"))
    session = await client.new2(str(tmp_path))
    await client.call("session/prompt", {"sessionId": session, "prompt": _say("go")})
    child = ""
    while not [u for u in client.updates(child or "-") if u.get("status") == "in_progress"]:
        await client.next()
        child = next((one["sessionId"] for one in children(client, session)), "")
    (call_id,) = {u["toolCallId"] for u in client.updates(child) if "toolCallId" in u}
    params = {"sessionId": child, "toolCallId": call_id}
    assert await client.call("tool_call/cancel", params) == {}
    await _idle(client, session)
    assert _words(client, child) == "never mind" and _words(client, session) == "done"
