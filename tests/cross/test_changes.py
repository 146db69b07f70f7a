"""Changes made in one protocol are seen live in the others; everybody lists the same session."""

from typing import Any

from tests.cross.house import House, Speaker
from tests.cross.test_one_session import joined, opened, watched


def event(kind: str, **fields: Any) -> Any:
    def fits(message: dict[str, Any]) -> bool:
        told = message.get("params", {}).get("event", {})
        return told.get("type") == kind and all(told.get(k) == v for k, v in fields.items())

    return fits


def update(kind: str) -> Any:
    return lambda m: m.get("params", {}).get("update", {}).get("sessionUpdate") == kind


def said(kind: str, word: str) -> Any:
    """A HumanLayer event of a kind that says a word."""

    def fits(message: dict[str, Any]) -> bool:
        told = (message.get("result") or {}).get("event") or {}
        return told.get("type") == kind and word in str(told["data"])

    return fits


async def test_mode_model_and_title(house: House) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    other = await house.acp()
    await other.call("session/resume", {"sessionId": session, "cwd": str(house.work)})
    reference = await watched(house, session)
    humanlayer = await house.humanlayer(session_id=session)
    decider = await house.speaker("humanlayer")
    zeroclaw = await joined(house, session)

    # ACP sets the mode
    await acp.call("session/set_mode", {"sessionId": session, "modeId": "full"})
    found = await reference.until(event("mode_set", mode="full"))
    assert found["params"]["event"]["by"]["dialect"] == "acp"
    assert (await other.until(update("current_mode_update")))["params"]["update"][
        "currentModeId"
    ] == "full"

    # HumanLayer gives it a title
    await decider.call("updateSessionTitle", {"session_id": session, "title": "the paint job"})
    found = await reference.until(event("renamed", title="the paint job"))
    assert found["params"]["event"]["by"]["dialect"] == "humanlayer"
    info = await acp.until(update("session_info_update"))
    assert info["params"]["update"]["title"] == "the paint job"
    await humanlayer.until(said("session_status_changed", "the paint job"))

    # our own client sets the mode back and the reasoning
    mine = await house.zeroclaw()
    await mine.call("dragoman/setMode", {"session_id": session, "mode": "supervised"})
    await mine.call("dragoman/setReasoning", {"session_id": session, "effort": "low"})
    await reference.until(event("reasoning_set", effort="low"))
    back = await acp.until(
        lambda m: (
            update("current_mode_update")(m)
            and m["params"]["update"]["currentModeId"] == "supervised"
        )
    )
    assert back

    # zot sets the model
    zot = await house.zot(session)
    await zot.command("set_model", model="demo", provider="demo")
    state = await zot.command("get_state")
    assert state["model"] == "demo"

    await same_everywhere(house, session, "the paint job", zeroclaw)


async def same_everywhere(house: House, session: str, title: str, zeroclaw: Speaker) -> None:
    acp = await house.acp()
    (row,) = (await acp.call("session/list", {}))["sessions"]
    assert (row["sessionId"], row["title"]) == (session, title)
    humanlayer = await house.speaker("humanlayer")
    (row,) = (await humanlayer.call("listSessions"))["sessions"]
    assert (row["id"], row["title"]) == (session, title)
    zot = await house.speaker("any")
    (row,) = (await zot.command("list_sessions"))["sessions"]
    assert (row["id"], row["title"]) == (session, title)
    listed = await zeroclaw.call("session/list", {})
    assert session in str(listed) and title in str(listed)
    app = await house.app()
    (row,) = (await app.request("session.list", {}))["sessions"]
    assert row["key"] == session
    (row,) = (await zeroclaw.call("dragoman/sessions", {}))["sessions"]
    assert (row["id"], row["title"]) == (session, title)


async def test_presence(house: House) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    reference = await watched(house, session)
    zeroclaw = await joined(house, session)
    zot = await house.zot(session)

    def present(*dialects: str) -> Any:
        def fits(message: dict[str, Any]) -> bool:
            told = message.get("params", {}).get("event", {})
            names = [one["dialect"] for one in told.get("clients", ())]
            return told.get("type") == "presence" and sorted(names) == sorted(dialects)

        return fits

    await reference.until(present("acp", "zeroclaw", "zeroclaw", "zot"))
    facts = await zeroclaw.call("dragoman/session", {"session_id": session})
    assert sorted({one["dialect"] for one in facts["present"]}) == ["acp", "zeroclaw", "zot"]
    at = len(reference.seen)
    await zot.close()
    await reference.until(present("acp", "zeroclaw", "zeroclaw"), at)
    at = len(reference.seen)
    await acp.close()
    await reference.until(present("zeroclaw", "zeroclaw"), at)


async def test_cancelled_from_another_protocol(house: House) -> None:
    acp = await house.acp()
    session = await opened(house, acp)
    zot = await house.zot(session)
    prompt = [{"type": "text", "text": "count slowly to 200"}]
    asked = acp.begin("session/prompt", {"sessionId": session, "prompt": prompt})
    await zot.until(lambda m: m.get("type") == "text_delta")
    await zot.command("abort")
    assert (await acp.answer(asked))["result"]["stopReason"] == "cancelled"
    await zot.until(lambda m: m.get("type") == "done")
