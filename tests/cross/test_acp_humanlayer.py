"""One approval, two protocols: asked in one, decided in the other, seen settled in both."""

import asyncio

from tests.dialects.acp.talking import select, talker
from tests.dialects.humanlayer.desk import Client, make, pending

from dragoman.dialects.humanlayer import Desk
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call, turn


async def test_an_approval_goes_both_ways_between_acp_and_humanlayer():
    echo = EchoTool()
    door = memory_door(Scripted([turn(call("echo", text="hi")), "done"]), [echo])
    desk = Desk(door)
    human, watcher = Client(desk), Client(desk)
    await watcher.subscribe(event_types=["new_approval", "approval_resolved"])
    editor = talker(door)

    # asked in ACP, decided here: the ACP client's turn goes on and its request is withdrawn
    session = await editor.new()
    turn_ = editor.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await editor.until("session/request_permission")
    asked = (await watcher.event("new_approval"))["data"]
    assert (asked["session_id"], asked["tool_name"]) == (session, "echo")
    waiting = (await human.call("fetchApprovals"))["approvals"]
    assert [a["id"] for a in waiting] == [asked["approval_id"]]
    decided = await human.call("sendDecision", approval_id=asked["approval_id"], decision="approve")
    assert decided == {"success": True}
    done = (await editor.reply(turn_))["result"]
    assert done["stopReason"] == "end_turn" and echo.ran == [{"text": "hi"}]
    assert "$/cancel_request" in [message.get("method") for message in editor.heard]
    ended = [u for u in editor.updates(session) if u["sessionUpdate"] == "tool_call_update"]
    assert ended[-1]["status"] == "completed"
    resolved = (await watcher.event("approval_resolved"))["data"]
    assert resolved["approved"] is True

    # launched here, decided in ACP: this side sees who settled it, and comes too late itself
    editor.answers["session/request_permission"] = select("allow-once")
    started = await human.call("launchSession", query="x", working_dir="/tmp")
    asked = (await watcher.event("new_approval"))["data"]
    load = {"sessionId": started["session_id"], "cwd": "/tmp", "mcpServers": []}
    load["_meta"] = {"dragoman": {"join": True}}
    loading = editor.ask("session/load", load)
    settled = asyncio.ensure_future(watcher.event("approval_resolved"))
    async with asyncio.timeout(60):
        await editor.reply(loading)
        await editor.until("session/request_permission")
        resolved = (await settled)["data"]
    assert (resolved["approval_id"], resolved["approved"]) == (asked["approval_id"], True)
    await door.idle(started["session_id"])
    assert len(echo.ran) == 2
    late = await human.call("sendDecision", approval_id=asked["approval_id"], decision="approve")
    assert late["success"] is False
    assert "already decided with status: approved" in late["error"] and "over acp" in late["error"]


async def test_a_denial_here_reaches_the_model_of_a_session_begun_elsewhere():
    door, desk = make([turn(call("echo", text="hi")), "as you wish"])
    human = Client(desk)
    elsewhere = Who("zeroclaw", id="z")
    info = await door.open(OpenSpec(cwd="/"), elsewhere)
    work = await door.prompt(info.id, (Text("x"),), elsewhere)
    asked = await pending(human)
    assert asked["run_id"] == asked["session_id"] == info.id
    denied = await human.call(
        "sendDecision", call_id=asked["call_id"], type="function_call", decision="deny",
        comment="not now",
    )  # fmt: skip
    assert denied == {"success": True}
    assert (await work.done).text == "as you wish"
    told = [e for e in (await human.call("getConversation", session_id=info.id))["events"]
            if e["event_type"] == "tool_result"]  # fmt: skip
    assert told[0]["tool_result_content"] == "Denied by user: not now"


async def test_an_external_approval_is_answered_through_the_engine_by_any_other_protocol():
    door, desk = make(["done"])
    human = Client(desk)
    started = await human.call("launchSession", query="x")
    await door.idle(started["session_id"])
    made = await human.call(
        "createApproval", run_id=started["run_id"], tool_name="Bash", tool_input={"command": "ls"}
    )
    await door.answer(made["approval_id"], "deny", Who("zeroclaw", name="tui"), comment="no")
    row = (await human.call("getApproval", approval_id=made["approval_id"]))["approval"]
    assert (row["status"], row["comment"]) == ("denied", "no")
