"""Streamable HTTP at /acp: connections, streams, sessions, and all that is refused."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.dialects.acp.test_children import Family, family, task
from tests.gateway.making import serving

from dragoman.engine.door import Door
from dragoman.gateway import streamable, tokens
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, turn

INFO = {"name": "t", "version": "1"}
HELLO = {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": INFO}


def message(method: str, id: Any = None, **params: Any) -> dict[str, Any]:
    said = {"jsonrpc": "2.0", "method": method, "params": params}
    return said if id is None else {**said, "id": id}


class Remote:
    """A client: posts, and reads its streams side by side."""

    def __init__(self, client: httpx.AsyncClient, connection: str) -> None:
        self.client = client
        self.head = {"Acp-Connection-Id": connection}

    async def post(self, body: Any, session: str = "") -> httpx.Response:
        head = {**self.head, **({"Acp-Session-Id": session} if session else {})}
        return await self.client.post("/acp", json=body, headers=head)

    @contextlib.asynccontextmanager
    async def stream(self, session: str = "") -> AsyncIterator["Events"]:
        head = {**self.head, "Accept": "text/event-stream"}
        if session:
            head["Acp-Session-Id"] = session
        async with self.client.stream("GET", "/acp", headers=head) as response:
            assert response.status_code == 200, await response.aread()
            yield Events(response.aiter_lines())


class Events:
    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.heard: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            async for line in self._lines:
                if line.startswith("data: "):
                    self.heard.append(json.loads(line[6:]))
                    return self.heard[-1]
                assert line == "" or line.startswith(":"), line
        raise EOFError

    async def until(self, wanted: Any) -> dict[str, Any]:
        """The answer with an id, or the first message with a method."""
        while True:
            one = await self.next()
            if one.get("method") == wanted or ("method" not in one and one.get("id") == wanted):
                return one


async def begin(client: httpx.AsyncClient, **hello: Any) -> Remote:
    said = await client.post("/acp", json=message("initialize", 1, **(hello or HELLO)))
    assert said.status_code == 200 and "result" in said.json(), said.text
    return Remote(client, said.headers["acp-connection-id"])


async def test_case_72_a_turn_over_two_streams_needs_the_sessions_name(tmp_path: Path) -> None:
    async with serving([turn(call("echo", text="x")), "done"]) as served, served.client() as client:
        remote = await begin(client)
        async with remote.stream() as own:
            new = message("session/new", 2, cwd=str(tmp_path), mcpServers=[])
            assert (await remote.post(new)).status_code == 202
            session = (await own.until(2))["result"]["sessionId"]
            params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
            body = message("session/prompt", "p", **params)
            assert (await remote.post(body)).status_code == 400  # no session header
            assert (await remote.post(body, "another")).status_code == 400
            assert (await remote.post(body, session)).status_code == 202
            async with remote.stream(session) as its:  # what came before is still there
                asked = await its.until("session/request_permission")
                chosen = {"outcome": {"outcome": "selected", "optionId": "allow-once"}}
                answer = {"jsonrpc": "2.0", "id": asked["id"], "result": chosen}
                assert (await remote.post(answer)).status_code == 400
                assert (await remote.post(answer, session)).status_code == 202
                assert (await its.until("p"))["result"]["stopReason"] == "end_turn"
                kinds = {m["params"]["update"]["sessionUpdate"] for m in its.heard if "params" in m
                         and "update" in m["params"]}  # fmt: skip
                assert {"tool_call", "tool_call_update", "agent_message_chunk"} <= kinds
            listing = await remote.post(message("session/list", 9))
            assert listing.status_code == 202
            assert "result" in await own.until(9)
            assert not [m for m in own.heard if m.get("method") == "session/update"]


async def kept(path: Path) -> tuple[Door, Any]:
    store, _ = open_store(str(path / "s.db"))
    return memory_door(Scripted(["a long story " * 3000]), [EchoTool()], store=store), store


async def test_a_load_is_answered_after_its_replay(tmp_path: Path) -> None:
    door, store = await kept(tmp_path)
    async with serving(door=door) as served, served.client() as client:
        remote = await begin(client)
        async with remote.stream() as own:
            await remote.post(message("session/new", 2, cwd=str(tmp_path), mcpServers=[]))
            session = (await own.until(2))["result"]["sessionId"]
            params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
            async with remote.stream(session) as its:
                await remote.post(message("session/prompt", 3, **params), session)
                await its.until(3)
                await remote.post(message("session/close", 4, sessionId=session), session)
                assert (await its.until(4))["result"] == {}
        assert (await client.request("DELETE", "/acp", headers=remote.head)).status_code == 202
        other = await begin(client)
        params = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        async with other.stream() as own, other.stream(session) as its:
            await other.post(message("session/load", 5, **params), session)
            assert "result" in await own.until(5)
            assert await its.until("session/update")
        async with other.stream(session) as its:
            again = message("session/resume", 6, **params)
            await other.post(again, session)
            assert (await its.until(6))["error"]["code"] == -32602  # active already
    await host_of(door).stop(1.0)
    await store.close()


async def test_case_71_a_stream_has_one_reader_and_goes_on_after_a_break(tmp_path: Path) -> None:
    async with serving(["one", "two"]) as served, served.client() as client:
        remote = await begin(client)
        async with remote.stream() as own:
            head = {**remote.head, "Accept": "text/event-stream"}
            assert (await client.get("/acp", headers=head)).status_code == 409
            await remote.post(message("session/new", 2, cwd=str(tmp_path), mcpServers=[]))
            session = (await own.until(2))["result"]["sessionId"]
        prompt = {"sessionId": session, "prompt": "x"}
        await remote.post(message("session/prompt", 3, **prompt), session)
        for id in (4, 5):  # nobody listens: both wait
            await remote.post(message("session/list", id))
        async with remote.stream() as own:
            await own.until(5)
            assert [m["id"] for m in own.heard] == [4, 5]
        async with remote.stream(session) as its:
            assert (await its.until(3))["result"]["content"] == "one"


async def test_case_73_what_is_refused_and_what_is_gone(tmp_path: Path) -> None:
    async with serving() as served, served.client() as client:
        hello = message("initialize", 1, **HELLO)
        plain = await client.post("/acp", content=json.dumps(hello))
        assert plain.status_code == 415
        for body, status in (
            ([hello], 400), ("x", 400), (5, 400), (message("session/list", 1), 400),
            (message("initialize", None, **HELLO), 400), ({}, 400),
        ):  # fmt: skip
            assert (await client.post("/acp", json=body)).status_code == status, body
        kind = {"content-type": "application/json"}
        broken = await client.post("/acp", content=b'{"jsonrpc":', headers=kind)
        assert broken.status_code == 400 and broken.json()["error"]["code"] == -32700
        large = b'{"x":"' + b"a" * (17 << 20) + b'"}'
        assert (await client.post("/acp", content=large, headers=kind)).status_code == 413
        remote = await begin(client)
        assert (await remote.post(hello)).status_code == 400
        unknown = {"Acp-Connection-Id": "nobody", "Accept": "text/event-stream"}
        assert (await client.get("/acp", headers=unknown)).status_code == 404
        accept = {**remote.head, "Accept": "application/json"}
        assert (await client.get("/acp", headers=accept)).status_code == 406
        events = {"Accept": "text/event-stream"}
        assert (await client.get("/acp", headers=events)).status_code == 400
        assert (await client.get("/acp", headers={"Accept": "text/html"})).status_code == 426
        assert (await client.put("/acp", json=hello)).status_code in (405, 426)
        for status in (202, 404):
            left = await client.request("DELETE", "/acp", headers=remote.head)
            assert left.status_code == status
        assert (await remote.post(message("session/list", 1))).status_code == 404
        assert not served.gate.remotes and not served.gate.guests.all


async def test_an_id_is_no_key() -> None:
    async with serving() as served, served.client() as client:
        remote = await begin(client)
        async with served.stranger() as stranger:
            assert (await stranger.get("/acp", headers=remote.head)).status_code == 401
        _, secret = await tokens.new_token(served.gate.auth.shelf, "other")
        async with served.client(headers={"authorization": f"Bearer {secret}"}) as other:
            assert (await Remote(other, remote.head["Acp-Connection-Id"]).post(
                message("session/list", 1))).status_code == 404  # fmt: skip


async def test_version_2_is_spoken_too(tmp_path: Path) -> None:
    async with serving(["hi"]) as served, served.client() as client:
        remote = await begin(client, protocolVersion=2, info=INFO, capabilities={})
        async with remote.stream() as own:
            await remote.post(message("session/new", 2, cwd=str(tmp_path)))
            session = (await own.until(2))["result"]["sessionId"]
        async with remote.stream(session) as its:
            params = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
            await remote.post(message("session/prompt", 3, **params), session)
            assert (await its.until(3))["result"]["messageId"]
            while (await its.until("session/update"))["params"]["update"].get("state") != "idle":
                pass


async def test_who_never_listens_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable, "IDLE_SECONDS", 0.01)
    async with serving() as served, served.client() as client:
        await begin(client)
        async with asyncio.timeout(60):
            while served.gate.guests.all:
                await served.gate.guests.changed()
        assert not served.gate.remotes


async def test_who_leaves_too_much_unread_is_refused_then_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as served, served.client() as client:
        remote = await begin(client)
        link, _ = served.gate.remotes[remote.head["Acp-Connection-Id"]]
        monkeypatch.setattr(link, "_bound", 100)
        assert (await remote.post(message("session/list", 1))).status_code == 202
        assert (await remote.post(message("_x/y" * 40, 2))).status_code == 202
        assert (await remote.post(message("session/list", 3))).status_code == 503
        # However long a request takes here, the patience of another begins with its own answers.
        monkeypatch.setattr(streamable, "STALL_SECONDS", 0.05)
        other = await begin(client)
        link, _ = served.gate.remotes[other.head["Acp-Connection-Id"]]
        monkeypatch.setattr(link, "_bound", 100)
        assert (await other.post(message("_x/y" * 40, 1))).status_code == 202
        async with asyncio.timeout(60):
            while len(served.gate.guests.all) > 1:
                await served.gate.guests.changed()
        assert (await other.post(message("session/list", 2))).status_code == 404
        assert (await remote.post(message("session/list", 4))).status_code == 503


@pytest.mark.parametrize("named", ["parent", "child"])
async def test_a_child_is_told_on_its_parents_stream(tmp_path: Path, named: str) -> None:
    script = Family([task(), "done"], [call("echo", text="x"), "seen"])
    async with serving(door=family(tmp_path, script)) as served, served.client() as client:
        remote = await begin(client, protocolVersion=2, info=INFO)
        async with remote.stream() as own:
            await remote.post(message("session/new", 2, cwd=str(tmp_path)))
            session = (await own.until(2))["result"]["sessionId"]
            async with remote.stream(session) as its:
                params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
                await remote.post(message("session/prompt", 3, **params), session)
                asked = await its.until("session/request_permission")
                child = asked["params"]["sessionId"]
                assert child != session
                chosen = {"outcome": {"outcome": "selected", "optionId": "allow-once"}}
                answer = {"jsonrpc": "2.0", "id": asked["id"], "result": chosen}
                assert (await remote.post(answer, "nobody")).status_code == 400
                header = {"parent": session, "child": child}[named]
                assert (await remote.post(answer, header)).status_code == 202
                while True:
                    told = (await its.until("session/update"))["params"]
                    if told["sessionId"] == session and told["update"].get("state") == "idle":
                        break
        kinds = [m["params"]["update"]["sessionUpdate"] for m in its.heard if "params" in m
                 and m["params"].get("sessionId") == child and "update" in m["params"]]  # fmt: skip
        assert kinds[0] == "session_message" and "agent_message_chunk" in kinds


@pytest.mark.parametrize("id", [[], {}, [1], {"a": 1}])
async def test_an_id_that_is_none_is_refused(id: Any) -> None:
    async with serving() as served, served.client() as client:
        remote = await begin(client)
        for body in (message("session/list", id), {"jsonrpc": "2.0", "id": id, "result": {}}):
            said = await remote.post(body)
            assert said.status_code == 400 and said.json()["error"]["code"] == -32600
        kind = {**remote.head, "content-type": "application/json"}
        deep = b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 5000 + b"]" * 5000 + b"}"
        assert (await client.post("/acp", content=deep, headers=kind)).status_code in (202, 400)
        assert (await remote.post(message("session/list", 7))).status_code == 202
