"""A client on node B prompts, cancels and approves a session that node A owns, in five dialects."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.cross import seeing
from tests.cross.house import House
from tests.postgres import new_database

from dragoman.testing.postgres import Server

pytestmark = pytest.mark.asyncio(loop_scope="module")
WRITE = 'write "red" to colour.txt'


class Nodes:
    """Real daemons on one database, and a folder that all of them see."""

    def __init__(self, folder: Path, url: str, lease: float = 1.5) -> None:
        self.folder = folder
        self.url = url
        self.lease = lease
        self.work = folder / "work"
        self.work.mkdir()
        self.houses: dict[str, House] = {}

    async def start(self, name: str, lease: float = 0.0) -> House:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        house = self.houses.get(name) or House(folder)
        self.houses[name] = house
        house.more = {
            "DRAGOMAN_fleet__database": self.url,
            "DRAGOMAN_fleet__node": name,
            "DRAGOMAN_fleet__lease": str(lease or self.lease),
            "DRAGOMAN_fleet__shared_roots": str(self.work),
        }
        await house.start()
        return house

    async def close(self) -> None:
        for house in self.houses.values():
            await house.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nodes(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Nodes]:
    made = Nodes(tmp_path_factory.mktemp("n"), await new_database(postgres))
    await asyncio.gather(made.start("a"), made.start("b"))
    yield made
    await made.close()


async def opened(nodes: Nodes) -> tuple[Any, str]:
    """A session of node A, and the client there that opened it."""
    (nodes.work / "colour.txt").unlink(missing_ok=True)  # what is there is not overwritten unread
    acp = await nodes.houses["a"].acp()
    made = await acp.call("session/new", {"cwd": str(nodes.work), "mcpServers": []})
    return acp, str(made["sessionId"])


async def test_acp(nodes: Nodes) -> None:
    owner, session = await opened(nodes)
    b = await nodes.houses["b"].acp()
    await b.call("session/load", {"sessionId": session, "cwd": str(nodes.work), "mcpServers": []})
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": WRITE}]}
    asked = b.begin("session/prompt", prompt)
    request = await b.until(lambda m: m.get("method") == "session/request_permission")
    allow = next(o for o in request["params"]["options"] if o["kind"] == "allow_once")
    outcome = {"outcome": "selected", "optionId": allow["optionId"]}
    b.send({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}})
    assert (await b.answer(asked))["result"]["stopReason"] == "end_turn"
    assert (nodes.work / "colour.txt").read_text().strip() == "red"
    await b.call("session/set_mode", {"sessionId": session, "modeId": "readonly"})
    await owner.until(lambda m: "config_option_update" in str(m) and "readonly" in str(m))
    prompt["prompt"] = [{"type": "text", "text": "count slowly to 500"}]
    asked = b.begin("session/prompt", prompt)
    await owner.until(lambda m: "count slowly" in str(m))
    b.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
    assert (await b.answer(asked))["result"]["stopReason"] == "cancelled"
    await owner.until(lambda m: "Wrote" in str(m) or "red" in str(m))
    assert "ran demo_1_1" in seeing.acp(b)


async def test_zeroclaw(nodes: Nodes) -> None:
    owner, session = await opened(nodes)
    b = await nodes.houses["b"].zeroclaw()
    params = {"agentAlias": "default", "sessionId": session}
    assert (await b.call("session/new", params))["sessionId"] == session
    asked = b.begin("session/prompt", {"sessionId": session, "prompt": WRITE})
    shown = await b.until(lambda m: m.get("params", {}).get("type") == "approval_request")
    request = shown["params"]["requestId"]
    await b.call(
        "session/approve", {"sessionId": session, "requestId": request, "decision": "allow_once"}
    )
    await b.answer(asked)
    asked = b.begin("session/prompt", {"sessionId": session, "prompt": "count slowly to 500"})
    await owner.until(lambda m: "count slowly" in str(m))
    await b.call("session/cancel", {"sessionId": session})
    await b.answer(asked)
    given = {"sessionId": session, "overrides": {"temperature": 0.5}}
    assert (await b.call("session/configure", given))["overrides"]["temperature"] == 0.5
    a = await nodes.houses["a"].zeroclaw()
    await a.call("session/new", params)
    given["overrides"] = {"model": "demo/demo"}
    assert (await a.call("session/configure", given))["overrides"]["temperature"] == 0.5


async def test_zot(nodes: Nodes) -> None:
    owner, session = await opened(nodes)
    b = await nodes.houses["b"].zot(session)
    await b.command("prompt", message=WRITE)
    shown = await b.until(lambda m: "approval" in m and m.get("type") != "response")
    await b.command("approve", approval=shown["approval"], decision="approve")
    await b.until(lambda m: m.get("type") == "done")
    assert "".join(m["delta"] for m in b.seen if m.get("type") == "text_delta")
    since = len(b.seen)
    await b.command("prompt", message="count slowly to 500")
    await owner.until(lambda m: "count slowly" in str(m))
    assert (await b.command("steer", message="faster"))["steered"]
    await b.command("abort")
    await b.until(lambda m: m.get("type") == "done", since)


async def test_humanlayer(nodes: Nodes) -> None:
    owner, session = await opened(nodes)
    b = await nodes.houses["b"].humanlayer(session_id=session)
    decider = await nodes.houses["b"].speaker("humanlayer")
    zot = await nodes.houses["a"].zot(session)
    await zot.command("prompt", message=WRITE)
    await b.until(lambda m: "new_approval" in str(m))
    (approval,) = (await decider.call("fetchApprovals", {"session_id": session}))["approvals"]
    decision = {"call_id": approval["id"], "type": "function_call", "decision": "approve"}
    assert (await decider.call("sendDecision", decision))["success"]
    await zot.until(lambda m: m.get("type") == "done")
    await b.until(lambda m: "approval_resolved" in str(m))
    since = len(zot.seen)
    await zot.command("prompt", message="count slowly to 500")
    await zot.until(lambda m: m.get("type") == "text_delta", since)
    await decider.call("interruptSession", {"session_id": session})
    await b.until(lambda m: "interrupted" in str(m))
    more = await decider.call(
        "continueSession", {"session_id": session, "query": "what is dragoman"}
    )
    assert more["session_id"] != session
    await decider.call("updateSessionTitle", {"session_id": session, "title": "Blue"})
    assert (await zot.command("get_state"))["session"] == session
    on_a = await (await nodes.houses["a"].speaker("humanlayer")).call(
        "getSessionState", {"session_id": session}
    )
    assert on_a["session"]["title"] == "Blue"
    assert owner.seen


async def test_openclawos(nodes: Nodes) -> None:
    owner, session = await opened(nodes)
    app = await nodes.houses["b"].app(hooks={"subscribes": ["agent_completed"]})
    entry = (await app.request("session.get", {"key": session}))["session"]
    assert entry["key"] == session
    await app.request("agent.queue", {"sessionKey": session, "text": "what is dragoman"})
    await owner.until(lambda m: "what is dragoman" in str(m))
    await owner.until(lambda m: "agent_message_chunk" in str(m))
    told = await app.until(lambda m: m.get("event") == "hook:agent_completed")  # a channel answers
    assert told["payload"]["context"]["sessionKey"] == session
    assert "Dragoman is" in str(told["payload"]["data"])
