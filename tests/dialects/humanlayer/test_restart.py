"""After a kill -9: what waited still waits and decides, what ran is interrupted and goes on."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("server.py")


@pytest.fixture
async def server(tmp_path):
    """Starts the server again and again; every one is killed, none stopped."""
    running = []

    async def start():
        socket = tmp_path / "h.sock"
        socket.unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(SERVER), str(tmp_path / "s.db"), str(socket),
            stdout=asyncio.subprocess.PIPE, env={**os.environ},
        )  # fmt: skip
        running.append(process)
        assert (await asyncio.wait_for(process.stdout.readline(), 60)) == b"ready\n"
        return process, str(socket)

    yield start
    for process in running:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def call(socket, method, **params):
    reader, writer = await asyncio.open_unix_connection(socket)
    request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
    writer.write(json.dumps(request).encode() + b"\n")
    answer = json.loads(await asyncio.wait_for(reader.readline(), 60))
    writer.close()
    await writer.wait_closed()
    return answer.get("result") or answer["error"]


async def events(socket, **params):
    reader, writer = await asyncio.open_unix_connection(socket)
    request = {"jsonrpc": "2.0", "method": "Subscribe", "params": params, "id": 1}
    writer.write(json.dumps(request).encode() + b"\n")
    assert b"sub_" in await asyncio.wait_for(reader.readline(), 60)

    async def until(kind, **data):
        async with asyncio.timeout(60):
            while True:
                event = json.loads(await reader.readline())["result"]["event"]
                if event["type"] == kind and data.items() <= event["data"].items():
                    return event

    return until, writer


async def test_a_killed_server_loses_neither_its_questions_nor_its_sessions(server, tmp_path):
    process, socket = await server()
    waits, runs = tmp_path / "waits", tmp_path / "runs"
    waits.mkdir()
    runs.mkdir()
    (runs / "hold").touch()
    until, writer = await events(socket)
    waiting = await call(socket, "launchSession", query="make it", working_dir=str(waits))
    await until("new_approval", session_id=waiting["session_id"])
    running = await call(
        socket, "launchSession", query="make it", working_dir=str(runs),
        dangerously_skip_permissions=True,
    )  # fmt: skip
    seen = await until("conversation_updated", session_id=running["session_id"],
                       event_type="tool_call")  # fmt: skip
    # the call is journaled before the tool runs: one more answer and it is on disk
    state = await call(socket, "getSessionState", session_id=running["session_id"])
    assert state["session"]["status"] == "running"
    process.kill()
    await process.wait()
    writer.close()
    (runs / "hold").unlink()

    _, socket = await server()
    # what ran is interrupted, and says why
    state = (await call(socket, "getSessionState", session_id=running["session_id"]))["session"]
    assert state["status"] == "interrupted"
    assert state["error_message"] == "daemon restarted while session was active"
    # a client that comes back hears what happened meanwhile
    until, writer = await events(socket, since=seen["seq"])
    await until("session_status_changed", session_id=running["session_id"],
                old_status="running", new_status="interrupted", reason="restart")  # fmt: skip
    # the question is still there and still decides: the tool runs now, once
    approvals = (await call(socket, "fetchApprovals"))["approvals"]
    assert [a["session_id"] for a in approvals] == [waiting["session_id"]]
    state = (await call(socket, "getSessionState", session_id=waiting["session_id"]))["session"]
    assert state["status"] == "waiting_input" and not (waits / "made").exists()
    decided = await call(socket, "sendDecision", call_id=approvals[0]["call_id"],
                         type="function_call", decision="approve")  # fmt: skip
    assert decided == {"success": True}
    await until("session_status_changed", session_id=waiting["session_id"], new_status="completed")
    assert (waits / "made").read_text() == "x"
    talk = (await call(socket, "getConversation", session_id=waiting["session_id"]))["events"]
    said = [
        event.get("content") or event.get("tool_result_content") or event["approval_status"]
        for event in talk
    ]
    assert said == ["make it", "I make it.", "approved", "made it", "all done"]
    # the interrupted one can be continued; the call that was cut off is not run again by itself
    child = await call(socket, "continueSession", session_id=running["session_id"], query="go on")
    await until("session_status_changed", session_id=child["session_id"], new_status="completed")
    assert not (runs / "made").exists()
    talk = (await call(socket, "getConversation", session_id=child["session_id"]))["events"]
    assert talk[-1]["content"] == "all done"
    writer.close()


async def test_an_answer_goes_on_with_its_turn_while_others_questions_wait(server, tmp_path):
    process, socket = await server()
    until, writer = await events(socket)
    started = await call(socket, "launchSession", query="make it", working_dir=str(tmp_path))
    asked = await until("new_approval", session_id=started["session_id"])
    foreign = await call(
        socket, "createApproval", run_id=started["run_id"], tool_name="Bash", tool_input={}
    )
    writer.close()
    process.kill()
    await process.wait()

    process, socket = await server()
    until, writer = await events(socket)
    own = asked["data"]["approval_id"]
    assert await call(socket, "sendDecision", approval_id=own, decision="approve") == {
        "success": True
    }
    await until("session_status_changed", new_status="running")
    await until("session_status_changed", new_status="completed")
    assert (tmp_path / "made").read_text() == "x"
    waiting = await call(socket, "fetchApprovals", session_id=started["session_id"])
    assert [one["id"] for one in waiting["approvals"]] == [foreign["approval_id"]]
    writer.close()
    await writer.wait_closed()
