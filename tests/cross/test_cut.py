"""What was shown before a kill is in every dialect's history, and marked as cut in each."""

import asyncio

from tests.cross.house import WITHIN, House

from dragoman.engine.ending import DRAFTS
from dragoman.store.sqlite import open_store


async def noted(house: House, session: str) -> None:
    """Wait until the draft is beside the events: a kill after that loses none of it."""
    store, _ = open_store(house.config / "data" / "sessions.db")
    async with asyncio.timeout(WITHIN):
        while await store.get(DRAFTS, session) is None:
            continue
    await store.close()


async def test_words_before_a_kill_come_back_marked_in_every_dialect(house: House) -> None:
    own = await house.zeroclaw()
    session = (await own.call("dragoman/open", {"cwd": str(house.work)}))["session"]["id"]
    await own.call("dragoman/watch", {"session_id": session})
    own.begin("dragoman/prompt", {"session_id": session, "text": "count slowly to 5000"})
    await own.until(lambda m: (m.get("params", {}).get("event") or {}).get("type") == "text_delta")
    await noted(house, session)
    await house.kill()
    await house.start()
    own = await house.zeroclaw()
    events = (await own.call("dragoman/history", {"session_id": session}))["events"]
    spoke = [one["event"] for one in events if one["event"]["type"] == "spoke"]
    assert len(spoke) == 1 and spoke[0]["stop"] == "aborted"
    text = spoke[0]["content"][0]["text"]
    assert text

    said = (await own.call("session/messages", {"sessionId": session}))["messages"][-1]
    assert said == {"role": "assistant", "content": text, "cut": True}
    zot = await house.zot(session)
    said = (await zot.command("get_messages"))["messages"][-1]
    assert said["cut"] is True and said["content"] == [{"text": text, "type": "text"}]
    human = await house.speaker("humanlayer")
    told = (await human.call("getConversation", {"session_id": session}))["events"]
    said = [one for one in told if one["event_type"] == "message"][-1]
    assert said["content"] == text and said["cut"] is True
    acp = await house.acp()
    of = {"sessionId": session, "cwd": str(house.work), "mcpServers": []}
    await acp.call("session/load", of)
    updates = [m["params"]["update"] for m in acp.seen if m.get("method") == "session/update"]
    chunk = [one for one in updates if one["sessionUpdate"] == "agent_message_chunk"]
    assert [one["content"]["text"] for one in chunk] == [text]
    assert chunk[0]["_meta"] == {"dragoman": {"cut": True}}
