"""One session, five protocols: a real daemon, real sockets, everybody attached at once."""

import asyncio
from typing import Any

from tests.cross import seeing
from tests.cross.house import House, Speaker

PROMPT = 'write "red" to colour.txt, then read colour.txt'


def hook(name: str, tool: str = "") -> Any:
    def fits(message: dict[str, Any]) -> bool:
        told = message.get("payload") or {}
        wanted = message.get("type") == "event" and told["hookName"] == name
        return wanted and (not tool or told["data"]["toolName"] == tool)

    return fits


async def opened(house: House, by: Speaker) -> str:
    made = await by.call("session/new", {"cwd": str(house.work), "mcpServers": []})
    return str(made["sessionId"])


async def joined(house: House, session: str) -> Speaker:
    speaker = await house.zeroclaw()
    params = {"agentAlias": "default", "sessionId": session}
    assert (await speaker.call("session/new", params))["sessionId"] == session
    return speaker


async def watched(house: House, session: str) -> Speaker:
    speaker = await house.zeroclaw()
    await speaker.call("dragoman/watch", {"session_id": session, "since": 0})
    return speaker


async def test_a_turn_prompted_hooked_approved_and_watched_in_five_protocols(
    house: House,
) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    zeroclaw = await joined(house, session)
    zot = await house.zot(session)
    humanlayer = await house.humanlayer(session_id=session)
    decider = await house.speaker("humanlayer")
    watched_hooks = ["message_received", "tool_completed", "agent_completed"]
    app = await house.app(hooks={"subscribes": watched_hooks, "intercepts": ["tool_executing"]})
    reference = await watched(house, session)

    # zot prompts
    await zot.command("prompt", message=PROMPT)
    # openclawos changes what the tool is to do
    told = (await app.until(hook("tool_executing")))["payload"]
    params = {**told["data"]["params"], "content": "blue"}
    await app.request("hook.result", {"eventId": told["eventId"], "result": {"params": params}})
    # humanlayer approves what the app made of it
    new = {"session_id": session}
    await humanlayer.until(lambda m: "new_approval" in str(m))
    (approval,) = (await decider.call("fetchApprovals", new))["approvals"]
    assert approval["tool_input"]["content"] == "blue"
    decision = {"call_id": approval["id"], "type": "function_call", "decision": "approve"}
    assert (await decider.call("sendDecision", decision))["success"]
    told = (await app.until(hook("tool_executing", "read")))["payload"]
    await app.request("hook.result", {"eventId": told["eventId"], "result": {}})

    # everybody sees it through to its end
    await reference.until(lambda m: m.get("params", {}).get("event", {}).get("new") == "idle")
    await zot.until(lambda m: m.get("type") == "done")
    await app.until(hook("agent_completed"))
    await humanlayer.until(lambda m: '"completed"' in str(m).replace("'", '"'))
    for speaker in (acp, zeroclaw):
        await speaker.until(lambda m: "start Ollama" in str(m))
    assert (house.work / "colour.txt").read_text().strip() == "blue"

    words = seeing.native(reference)
    assert [word.split()[0] for word in words] == (
        "user call asked settled ran done call ran done end".split()
    )
    assert seeing.acp(acp) == seeing.only(words, "user call asked settled ran done")
    assert seeing.zeroclaw(zeroclaw) == seeing.only(words, "user asked ran done")
    assert seeing.zot(zot) == seeing.only(words, "user call asked settled done end")
    assert seeing.humanlayer(humanlayer) == seeing.only(words, "user call asked settled done end")
    assert seeing.openclawos(app) == seeing.only(words, "user done end")

    # the editor is shown what really runs
    begun = [
        m["params"]["update"]
        for m in acp.seen
        if m.get("params", {}).get("update", {}).get("status") == "in_progress"
    ]
    assert begun[0]["rawInput"]["content"] == "blue" and "rawInput" not in begun[1]

    # who answered, from where, is kept
    rows = await reference.call("dragoman/approvals", {"session_id": session, "pending": False})
    (row,) = rows["approvals"]
    assert row["settled"]["verdict"] == "allow"
    assert row["settled"]["by"]["dialect"] == "humanlayer"


async def test_after_a_crash_everybody_finds_the_session_the_question_and_the_history(
    house: House,
) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    zot = await house.zot(session)
    await zot.command("prompt", message='write "red" to colour.txt')
    request = await acp.until(lambda m: m.get("method") == "session/request_permission")
    ask = request["params"]["_meta"]["dragoman"]["askId"]
    await house.kill()
    assert not (house.work / "colour.txt").exists()
    await house.start()

    # ACP: the history is told again, then the question
    acp = await house.acp()
    await acp.call("session/load", {"sessionId": session, "cwd": str(house.work), "mcpServers": []})
    again = await acp.until(lambda m: m.get("method") == "session/request_permission")
    assert again["params"]["_meta"]["dragoman"]["askId"] == ask
    assert seeing.only(seeing.acp(acp), "user call asked")[0] == "user"
    # zeroclaw
    zeroclaw = await joined(house, session)
    shown = await zeroclaw.until(lambda m: m.get("params", {}).get("type") == "approval_request")
    assert ask in str(shown)
    messages = (await zeroclaw.call("session/messages", {"sessionId": session}))["messages"]
    assert "colour.txt" in str(messages[0])
    # zot
    zot = await house.zot(session)
    assert [one["approval"] for one in zot.seen[0]["data"]["approvals"]] == [ask]
    history = (await zot.command("get_messages"))["messages"]
    assert [message["role"] for message in history][:2] == ["user", "assistant"]
    # humanlayer
    humanlayer = await house.humanlayer(session_id=session)
    decider = await house.speaker("humanlayer")
    (approval,) = (await decider.call("fetchApprovals", {"session_id": session}))["approvals"]
    assert approval["id"] == ask
    said = await decider.call("getConversation", {"session_id": session})
    assert said["events"][0]["content"] == 'write "red" to colour.txt'
    # openclawos
    app = await house.app(hooks={"subscribes": ["tool_completed", "agent_completed"]})
    entry = (await app.request("session.get", {"key": session}))["session"]
    assert entry["key"] == session and entry["messageCount"] >= 2

    # one answer, and the turn goes on for all of them
    decision = {"call_id": ask, "type": "function_call", "decision": "approve"}
    assert (await decider.call("sendDecision", decision))["success"]
    await zot.until(lambda m: m.get("type") == "done")
    await app.until(hook("agent_completed"))
    for speaker in (acp, zeroclaw):
        await speaker.until(lambda m: "start Ollama" in str(m))
    await humanlayer.until(lambda m: "approval_resolved" in str(m))
    assert (house.work / "colour.txt").read_text().strip() == "red"
    reference = await watched(house, session)
    await reference.until(lambda m: m.get("params", {}).get("event", {}).get("new") == "idle")
    words = seeing.native(reference)
    assert words.count("user") == 1 and words.count("asked") == 1 and words[-1] == "end"


async def test_a_crash_in_the_middle_of_the_words(house: House) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    zot = await house.zot(session)
    await zot.command("prompt", message="count slowly to 200")
    await zot.until(lambda m: m.get("type") == "text_delta")
    await house.kill()
    await house.start()
    zot = await house.zot(session)
    state = await zot.command("get_state")
    assert not state["busy"]
    # the turn is told as broken off, the session goes on
    reference = await watched(house, session)
    ended = await reference.until(
        lambda m: m.get("params", {}).get("event", {}).get("type") == "turn_ended"
    )
    assert ended["params"]["event"]["outcome"] == "interrupted"
    await zot.command("prompt", message="what is dragoman")
    await zot.until(lambda m: m.get("type") == "done")


async def test_who_joins_late_gets_what_was_said_and_the_rest_once(house: House) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    driver = await house.zot(session)
    await driver.command("prompt", message="count slowly to 20")
    await driver.until(lambda m: "7" in m.get("delta", ""))
    zot, zeroclaw, late = await asyncio.gather(
        house.zot(session), joined(house, session), watched(house, session)
    )
    resumed = await house.acp()
    params = {"sessionId": session, "cwd": str(house.work), "mcpServers": []}
    await resumed.call("session/load", params)
    await driver.until(lambda m: m.get("type") == "done")
    whole = next(
        m["content"][0]["text"] for m in driver.seen if m.get("type") == "assistant_message"
    )
    await late.until(lambda m: m.get("params", {}).get("event", {}).get("new") == "idle")
    await zot.until(lambda m: m.get("type") == "done")
    assert "".join(m["delta"] for m in zot.seen if m.get("type") == "text_delta") == whole
    assert streamed(late) == whole
    for speaker, text in ((zeroclaw, zeroclaw_text), (resumed, acp_text)):
        await speaker.until(lambda m: len(text(speaker)) >= len(whole))  # noqa: B023
        assert text(speaker) == whole
    assert seeing.native(late) == ["user", "end"]


def streamed(speaker: Speaker) -> str:
    events = [m["params"]["event"] for m in speaker.seen if m.get("method") == "dragoman/event"]
    return "".join(event["text"] for event in events if event["type"] == "text_delta")


def zeroclaw_text(speaker: Speaker) -> str:
    told = [m["params"] for m in speaker.seen if m.get("method") == "session/update"]
    return "".join(one["text"] for one in told if one["type"] == "agent_message_chunk")


def acp_text(speaker: Speaker) -> str:
    told = [m["params"]["update"] for m in speaker.seen if m.get("method") == "session/update"]
    kind = "agent_message_chunk"
    return "".join(one["content"]["text"] for one in told if one["sessionUpdate"] == kind)
