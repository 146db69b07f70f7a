"""The same session in every protocol: id, title, status, cost, and what was said."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.cross.house import House, Speaker
from tests.cross.test_one_session import acp_text, joined, opened

PRICES = """
[models."demo/demo"]
price_input = 1000.0
price_output = 2000.0
"""
WORDS = ("I will write the file.", "I will read the file.", "violet")


@pytest.fixture
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    made = House(tmp_path_factory.mktemp("s"))
    (made.config / "config.toml").write_text(PRICES)
    await made.start()
    yield made
    await made.close()


async def worked(house: House) -> tuple[str, Speaker]:
    """A session in which something was done."""
    own = await house.zeroclaw()
    params = {"cwd": str(house.work), "mode": "full", "title": "a colour"}
    session = (await own.call("dragoman/open", params))["session"]["id"]
    text = 'write "violet" to colour.txt, then read colour.txt'
    ended = await own.call("dragoman/prompt", {"session_id": session, "text": text})
    assert ended["outcome"] == "completed"
    return session, own


async def test_id_title_status_cost(house: House) -> None:
    session, own = await worked(house)
    info = (await own.call("dragoman/session", {"session_id": session}))["session"]
    cost = info["cost"]
    assert cost > 0 and info["status"] == "idle"

    acp = await house.acp()
    (row,) = (await acp.call("session/list", {}))["sessions"]
    assert (row["sessionId"], row["title"]) == (session, "a colour")
    params = {"sessionId": session, "cwd": str(house.work), "mcpServers": []}
    await acp.call("session/load", params)

    zot = await house.zot(session)
    state = await zot.command("get_state")
    assert state["usage"]["cost_usd"] == pytest.approx(cost) and not state["busy"]
    (row,) = (await zot.command("list_sessions"))["sessions"]
    assert (row["id"], row["title"], row["status"]) == (session, "a colour", "idle")

    humanlayer = await house.speaker("humanlayer")
    (row,) = (await humanlayer.call("listSessions"))["sessions"]
    assert (row["id"], row["title"], row["status"]) == (session, "a colour", "completed")
    state = (await humanlayer.call("getSessionState", {"session_id": session}))["session"]
    assert state["cost_usd"] == pytest.approx(cost)
    assert state["input_tokens"] + state["output_tokens"] > 0

    app = await house.app()
    (row,) = (await app.request("session.list", {}))["sessions"]
    assert row["key"] == session and row["messageCount"] == info["messages"]

    zeroclaw = await joined(house, session)
    assert session in str(await zeroclaw.call("session/list", {}))


async def test_what_was_said(house: House) -> None:
    session, own = await worked(house)
    told = (await own.call("dragoman/history", {"session_id": session}))["events"]
    said = [
        block["text"]
        for one in told
        if one["event"]["type"] == "spoke"
        for block in one["event"]["content"]
        if block["type"] == "text"
    ]

    acp = await house.acp()
    params = {"sessionId": session, "cwd": str(house.work), "mcpServers": []}
    await acp.call("session/load", params)
    assert acp_text(acp) == "".join(said)

    zot = await house.zot(session)
    messages = (await zot.command("get_messages"))["messages"]
    assert texts(messages, "assistant") == said

    humanlayer = await house.speaker("humanlayer")
    events = (await humanlayer.call("getConversation", {"session_id": session}))["events"]
    spoken = [one["content"] for one in events
              if one["event_type"] == "message" and one["role"] == "assistant"]  # fmt: skip
    assert spoken == said
    tools = [one["tool_name"] for one in events if one["event_type"] == "tool_call"]
    assert tools == ["write", "read"]

    zeroclaw = await joined(house, session)
    shown = str((await zeroclaw.call("session/messages", {"sessionId": session}))["messages"])
    for word in WORDS:
        assert word in shown


def texts(messages: list[dict[str, Any]], role: str) -> list[str]:
    return [
        block["text"]
        for message in messages
        if message["role"] == role
        for block in message["content"]
        if block["type"] == "text"
    ]


async def test_an_open_question_is_shown_to_whoever_joins(house: House) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    zot = await house.zot(session)
    await zot.command("prompt", message='write "violet" to colour.txt')
    request = await acp.until(lambda m: m.get("method") == "session/request_permission")
    ask = request["params"]["_meta"]["dragoman"]["askId"]
    # each protocol's late comer is asked as well
    late = await house.acp()
    await late.call("session/resume", {"sessionId": session, "cwd": str(house.work)})
    again = await late.until(lambda m: m.get("method") == "session/request_permission")
    assert again["params"]["_meta"]["dragoman"]["askId"] == ask
    zeroclaw = await joined(house, session)
    await zeroclaw.until(lambda m: m.get("params", {}).get("type") == "approval_request")
    other = await house.zot(session)
    assert ask in str(other.seen)
    # one of them answers, all the others are told
    await zeroclaw.call("session/approve", approve(zeroclaw))
    for speaker in (acp, late):
        await speaker.until(lambda m: m.get("method") == "$/cancel_request")
    for speaker in (zot, other):
        await speaker.until(lambda m: m.get("type") == "approval_settled")
    await zot.until(lambda m: m.get("type") == "done")
    (row,) = (await zeroclaw.call("dragoman/approvals", {"pending": False}))["approvals"]
    assert row["settled"]["by"]["dialect"] == "zeroclaw"


def approve(zeroclaw: Speaker) -> dict[str, Any]:
    told = next(m["params"] for m in zeroclaw.seen if "approval_request" in str(m))
    named = {"sessionId": told["sessionId"], "requestId": told["requestId"]}
    return {**named, "decision": "allow_once"}
