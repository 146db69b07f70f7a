"""Sessions that others end or use meanwhile: every request and every call gets its end."""

import asyncio
from typing import Any

import pytest

from dragoman.engine.content import Text
from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call, hang, turn

from .talking import Talker, desk_of

OTHER = Who("zeroclaw", id="other")
BLOCKS = [{"type": "text", "text": "go"}]


async def joined(door: Door, version: int) -> tuple[Talker, str]:
    client = Talker(desk_of(door))
    await (client.greet2() if version == 2 else client.greet())
    made = await client.call("session/new", {"cwd": "/tmp", "mcpServers": []})
    return client, made["sessionId"]


def updates(client: Talker) -> list[dict[str, Any]]:
    told = [m["params"]["update"] for m in client.heard if m.get("method") == "session/update"]
    return [one for one in told if one["sessionUpdate"] != "available_commands_update"]


async def queued(door: Door, session: str, count: int) -> None:
    async with asyncio.timeout(60):
        while True:
            live = door.live(session)
            if live is not None and live.waiting == count:
                return
            await asyncio.sleep(0)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_call_that_waits_for_an_answer_ends_when_others_delete_its_session(
    version: int,
) -> None:
    door = memory_door(Scripted([call("echo", text="x")]), [EchoTool()], mode="supervised")
    client, session = await joined(door, version)
    asked = client.ask("session/prompt", {"sessionId": session, "prompt": BLOCKS})
    await client.until("session/request_permission")
    assert await door.delete(session, OTHER)
    if version == 1:
        assert (await client.reply(asked))["result"]["stopReason"] == "cancelled"
        last = "failed"
    else:
        assert (await client.state("idle"))["stopReason"] == "cancelled"
        last = "cancelled"
    await client.silence()
    states = [one["status"] for one in updates(client) if one.get("toolCallId")]
    assert states == ["pending", last]
    idle = [one for one in updates(client) if one.get("state") == "idle"]
    assert len(idle) == version - 1
    refused = await client.refused("session/prompt", {"sessionId": session, "prompt": BLOCKS})
    assert refused["data"]["code"] == "SESSION_NOT_FOUND"


@pytest.mark.parametrize("version", [1, 2])
async def test_nothing_that_waits_begins_in_a_session_that_is_deleted(version: int) -> None:
    script = Scripted([turn("a", hang()), "never"])
    door = memory_door(script)
    client, session = await joined(door, version)
    asked = client.ask("session/prompt", {"sessionId": session, "prompt": BLOCKS})
    await client.update("agent_message_chunk")
    behind = await door.prompt(session, (Text("later"),), OTHER)
    held = []
    if version == 2:
        held.append(client.ask("session/prompt", {"sessionId": session, "prompt": BLOCKS}))
        await queued(door, session, 2)
    assert await client.call("session/delete", {"sessionId": session}) == {}
    with pytest.raises(Fault, match="closed"):
        await behind.done
    assert len(script.requests) == 1
    if version == 1:
        assert (await client.reply(asked))["result"]["stopReason"] == "cancelled"
    for one in held:
        assert (await client.reply(one))["error"]["code"] == -32800
    assert len([one for one in updates(client) if one.get("state") == "idle"]) == version - 1


@pytest.mark.parametrize("end", ["close", "delete"])
async def test_a_held_prompt_is_taken_back_whoever_ends_its_session(end: str) -> None:
    door = memory_door(Scripted([turn("a", hang()), "never"]))
    client, session = await joined(door, 2)
    client.ask("session/prompt", {"sessionId": session, "prompt": BLOCKS})
    await client.update("agent_message_chunk")
    held = client.ask("session/prompt", {"sessionId": session, "prompt": BLOCKS})
    await queued(door, session, 1)
    await (door.close(session) if end == "close" else door.delete(session, OTHER))
    assert (await client.reply(held))["error"]["code"] == -32800


@pytest.mark.parametrize("method", ["session/set_title", "session/unarchive"])
async def test_what_others_begin_meanwhile_goes_on(method: str) -> None:
    """A session that was only kept is let go again after a change, unless somebody needs it."""
    script = Scripted([turn("a", hang())])
    door = memory_door(script)
    client, session = await joined(door, 1)
    await door.archive(session)
    await client.call("session/stop", {"sessionId": session})
    begun = []

    def with_prompt(change: Any) -> Any:
        async def changed(*args: Any) -> None:
            await change(*args)
            begun.append(await door.prompt(session, (Text("go"),), OTHER))
            await script.hanging.wait()

        return changed

    name = "rename" if method.endswith("title") else "archive"
    setattr(door, name, with_prompt(getattr(door, name)))
    await client.call(method, {"sessionId": session, "title": "new"})
    live = door.live(session)
    assert live is not None and live.works_on == begun[0].turn
    script.release()
    assert (await begun[0].done).outcome == "completed"
