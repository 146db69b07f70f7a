"""What was acknowledged while a question was open happens, after kills and stops, everywhere.

A real daemon on real sockets; each test ends it in another moment.
"""

import asyncio
import json
import signal
from typing import Any

import pytest
from tests.cross.house import House, Speaker

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADU"
    "lEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


async def opened(house: House) -> tuple[Speaker, str]:
    own = await house.zeroclaw()
    made = await own.call("dragoman/open", {"cwd": str(house.work), "mode": "supervised"})
    return own, made["session"]["id"]


async def asked(own: Speaker, session: str, text: str = "$ echo ran >> ran.txt") -> dict[str, Any]:
    """A turn that waits for an answer."""
    since = len(own.seen)
    of = {"session_id": session, "since": 0}
    await own.call("dragoman/watch", of)
    own.begin("dragoman/prompt", {"session_id": session, "text": text})
    found = await own.until(lambda m: kind(m) == "asked", since)
    ask: dict[str, Any] = found["params"]["event"]["ask"]
    return ask


def kind(message: dict[str, Any]) -> str:
    return str((message.get("params", {}).get("event") or {}).get("type", ""))


async def ended(house: House, how: str) -> None:
    """End the daemon and start it again, once or twice."""
    for word in how.split():
        assert house.process is not None
        house.process.send_signal(getattr(signal, word))
        async with asyncio.timeout(60):
            await house.process.wait()
        await house.start()


async def answered(own: Speaker, ask: dict[str, Any], verdict: str = "allow") -> None:
    await own.call(
        "dragoman/answer", {"id": ask["id"], "verdict": verdict, "digest": ask.get("digest", "")}
    )


async def quiet(own: Speaker, session: str) -> dict[str, Any]:
    """Wait until nothing runs and nothing waits."""
    async with asyncio.timeout(60):
        while True:
            facts: dict[str, Any] = await own.call("dragoman/session", {"session_id": session})
            if not facts["busy"] and not facts["queued"] and facts["session"]["status"] == "idle":
                return facts
            await asyncio.sleep(0.01)


async def users(own: Speaker, session: str) -> list[str]:
    """What people said, in the order in which the model saw it."""
    events = (await own.call("dragoman/history", {"session_id": session}))["events"]
    return [
        "".join(block.get("text", "") for block in one["event"]["content"])
        for one in events
        if one["event"]["type"] in ("turn_began", "steered")
    ]


ENDS = ["SIGTERM", "SIGKILL SIGTERM"]


@pytest.mark.parametrize("how", ENDS)
async def test_what_waits_behind_a_question_survives_and_runs_in_order(
    house: House, how: str
) -> None:
    own, session = await opened(house)
    ask = await asked(own, session)
    app = await house.app(hooks={"subscribes": ["agent_completed"]})
    run = (await app.request("agent.queue", {"sessionKey": session, "text": "say one"}))["runId"]
    content = [{"type": "image", "data": PIXEL, "mime_type": "image/png"}]
    second = {"session_id": session, "text": "say two", "content": content, "key": "k2"}
    turn = (await own.call("dragoman/prompt", {**second, "detach": True}))["turn"]
    await own.call("dragoman/steer", {"session_id": session, "text": "a word from ours"})
    zot = await house.zot(session)
    await zot.command("steer", message="a word from zot")

    await ended(house, how)

    own = await house.zeroclaw()
    facts = await own.call("dragoman/session", {"session_id": session})
    assert facts["busy"] and facts["queued"] == 2, facts
    assert facts["session"]["status"] == "waiting_input"
    own.send(
        {"id": "again", "jsonrpc": "2.0", "method": "dragoman/prompt",
         "params": {**second, "detach": True}}
    )  # fmt: skip
    again = await own.until(lambda m: m.get("id") == "again")
    assert turn in json.dumps(again), again  # the same key: the same turn
    app = await house.app(hooks={"subscribes": ["agent_completed"]})
    await answered(own, ask)
    await app.until(lambda m: run in json.dumps(m) and "agent_completed" in json.dumps(m))
    await app.until(lambda m: turn in json.dumps(m) and "agent_completed" in json.dumps(m))
    await quiet(own, session)
    said = await users(own, session)
    assert said == [
        "$ echo ran >> ran.txt", "a word from ours", "a word from zot", "say one", "say two",
    ]  # fmt: skip
    assert (house.work / "ran.txt").read_text() == "ran\n"
    events = (await own.call("dragoman/history", {"session_id": session}))["events"]
    assert PIXEL in json.dumps(
        [one["event"] for one in events if one["event"]["type"] == "turn_began"]
    )


async def killed(house: House, session: str) -> tuple[Speaker, dict[str, Any]]:
    """Kill and start again at once; the session as it is then."""
    await ended(house, "SIGKILL")
    own = await house.zeroclaw()
    return own, await own.call("dragoman/session", {"session_id": session})


async def test_what_was_taken_back_does_not_run_after_a_kill(house: House) -> None:
    own, session = await opened(house)
    ask = await asked(own, session)
    of = {"session_id": session, "key": "k"}
    await own.call("dragoman/prompt", {**of, "text": "say no", "detach": True})
    await own.call("dragoman/retract", of)
    own, facts = await killed(house, session)
    assert facts["busy"] and facts["queued"] == 0
    await answered(own, ask)
    await quiet(own, session)
    assert await users(own, session) == ["$ echo ran >> ran.txt"]


@pytest.mark.parametrize("left", [False, True], ids=["running", "left by a restart"])
async def test_a_cancel_that_was_acknowledged_holds_after_a_kill(house: House, left: bool) -> None:
    sessions = []
    for _ in range(4):
        own, session = await opened(house)
        await asked(own, session)
        sessions.append(session)
    native, zeroclaw, zot, human = sessions
    if left:
        own, facts = await killed(house, native)
        assert facts["busy"] and facts["session"]["status"] == "waiting_input"
    aborting = await house.zot(zot)
    interrupting = await house.speaker("humanlayer")
    await own.call("session/new", {"agentAlias": "default", "sessionId": zeroclaw})
    cancelled, *_ = await asyncio.gather(
        own.call("dragoman/cancel", {"session_id": native}),
        own.call("session/cancel", {"sessionId": zeroclaw}),
        aborting.command("abort"),
        interrupting.call("interruptSession", {"session_id": human}),
    )
    if left:  # nothing of it runs: its end is stored with the cancel
        told = (await own.call("dragoman/history", {"session_id": native}))["events"]
        ends = [one["event"] for one in told if one["event"]["type"] == "turn_ended"]
        assert [(end["turn"], end["outcome"]) for end in ends] == [(cancelled["turn"], "cancelled")]
    await ended(house, "SIGKILL")
    own = await house.zeroclaw()
    for session in sessions:
        facts = await own.call("dragoman/session", {"session_id": session})
        assert not facts["busy"] and not facts["asks"], facts
        assert facts["session"]["status"] in ("idle", "interrupted")
    assert not (await own.call("dragoman/approvals", {}))["approvals"]


@pytest.mark.parametrize("left", [False, True], ids=["running", "left by a restart"])
async def test_whoever_waits_is_told_when_somebody_else_closes_the_session(
    house: House, left: bool
) -> None:
    own, session = await opened(house)
    await asked(own, session)
    app = await house.app(hooks={"subscribes": ["agent_completed"]})
    run = (await app.request("agent.queue", {"sessionKey": session, "text": "say one"}))["runId"]
    if left:
        own, _ = await killed(house, session)
        app = await house.app(hooks={"subscribes": ["agent_completed"]})
    await own.call("dragoman/watch", {"session_id": session, "since": 0})
    await (await house.zeroclaw()).call("dragoman/close", {"session_id": session})
    told = await app.until(lambda m: run in json.dumps(m) and "agent_completed" in json.dumps(m))
    assert told["payload"]["data"]["outcome"] == "cancelled", told
    dropped = await own.until(lambda m: kind(m) == "dropped")
    assert dropped["params"]["event"]["id"] == run and dropped["params"]["event"]["reason"]
    await own.until(lambda m: kind(m) == "turn_ended")
    facts = await own.call("dragoman/session", {"session_id": session})
    assert not facts["busy"] and not facts["asks"] and facts["session"]["status"] == "idle"


async def test_a_question_protects_its_turn_after_a_restart_as_before(house: House) -> None:
    own, session = await opened(house)
    ask = await asked(own, session)

    async def refusals() -> list[str]:
        """What a client is told who wants something else of the session meanwhile."""
        own = await house.zeroclaw()
        acp = await house.acp()
        of = {"sessionId": session, "cwd": str(house.work), "mcpServers": []}
        await acp.call("session/load", of)
        prompt = [{"type": "text", "text": "say other"}]
        zot = await house.zot(session)
        zot.send({"id": "c", "type": "clear"})
        said = [
            await acp.until(said_to(acp.begin("session/prompt", {**of, "prompt": prompt}))),
            await own.until(said_to(own.begin("dragoman/undo", {"session_id": session}))),
            await own.until(said_to(own.begin("dragoman/clear", {"session_id": session}))),
            await zot.until(lambda m: m.get("type") == "response" and m.get("id") == "c"),
        ]
        wanted = {"session_id": session, "text": "say no", "when_busy": "refuse"}
        said.append(await own.until(said_to(own.begin("dragoman/prompt", wanted))))
        assert all("error" in one for one in said), said
        return [json.dumps(one["error"]) for one in said]

    before = await refusals()
    await ended(house, "SIGKILL")
    assert await refusals() == before
    own = await house.zeroclaw()
    await answered(own, ask)
    await quiet(own, session)
    assert await users(own, session) == ["$ echo ran >> ran.txt"]
    assert (house.work / "ran.txt").read_text() == "ran\n"


async def test_leaving_and_putting_away_mean_the_same_after_a_restart(house: House) -> None:
    """Who leaves ends nobody else's turn; who puts a session away stops what waits in it."""

    async def left_and_put_away() -> list[tuple[str, int]]:
        stays, goes = [await opened(house) for _ in range(2)]
        for own, session in (stays, goes):
            await asked(own, session)
            await own.close()
        if again:
            await ended(house, "SIGKILL")
        visitor = await house.zeroclaw()
        of = {"sessionId": stays[1]}
        await visitor.call("session/new", {**of, "agentAlias": "default"})
        await visitor.call("session/close", of)
        await (await house.acp()).call("session/archive", {"sessionId": goes[1]})
        facts = [
            await visitor.call("dragoman/session", {"session_id": id}) for _, id in (stays, goes)
        ]
        return [(one["session"]["status"], len(one["asks"])) for one in facts]

    for again in (False, True):
        assert await left_and_put_away() == [("waiting_input", 1), ("idle", 0)], again


async def test_nobody_is_taken_for_a_client_of_before_a_restart(house: House) -> None:
    """Each life's first connection: the prompt of one is news to the other."""
    own, session = await opened(house)
    ask = await asked(own, session)
    await own.call("dragoman/prompt", {"session_id": session, "text": "say news", "detach": True})
    await ended(house, "SIGKILL")
    other = await house.zeroclaw()
    of = {"sessionId": session}
    await other.call("session/new", {**of, "agentAlias": "default"})
    await answered(other, ask)
    await other.until(lambda m: m.get("params", {}).get("text") == "say news")


def said_to(id: str) -> Any:
    return lambda m: m.get("id") == id and "method" not in m


async def test_whoever_answers_is_named_with_dialect_and_client_everywhere(house: House) -> None:
    own, session = await opened(house)
    zot = await house.zot(session)
    subscriber = await house.humanlayer(session_id=session)
    await own.call("dragoman/watch", {"session_id": session})
    for dialect in ("humanlayer", "zot", "zeroclaw"):
        since = (len(own.seen), len(zot.seen), len(subscriber.seen))
        own.begin(
            "dragoman/prompt", {"session_id": session, "text": f"$ echo {dialect} >> ran.txt"}
        )
        question = await own.until(lambda m: kind(m) == "asked", since[0])
        ask = question["params"]["event"]["ask"]
        if dialect == "humanlayer":
            human = await house.speaker("humanlayer")
            of = {"call_id": ask["id"], "type": "function_call", "decision": "deny"}
            await human.call("sendDecision", {**of, "comment": "no"})
        elif dialect == "zot":
            await (await house.zot(session)).command("approve", approval=ask["id"], allow=False)
        else:
            await answered(await house.zeroclaw(), ask, "deny")
        settled = await own.until(lambda m: kind(m) == "settled", since[0])
        by = settled["params"]["event"]["by"]
        name = by.get("name") or by.get("peer") or by["id"]
        assert by["dialect"] == dialect and name
        told = await zot.until(lambda m: m.get("type") == "approval_settled", since[1])
        assert (told["by"], told["dialect"]) == (name, dialect)
        told = await subscriber.until(lambda m: "decided_by" in json.dumps(m), since[2])
        assert told["result"]["event"]["data"]["decided_by"] == f"{name} over {dialect}"
        await quiet(own, session)
