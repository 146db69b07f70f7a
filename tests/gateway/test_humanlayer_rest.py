"""`/api/v1`: the REST interface of the HumanLayer daemon, over the gateway and on its own port."""

import asyncio
import json

import httpx
import msgspec
import pytest
from tests.gateway.making import serving

from dragoman.dialects.humanlayer import DIALECT
from dragoman.dialects.humanlayer.rest.table import Rest
from dragoman.testing.script import call, turn

API = "/api/v1"


@pytest.fixture
async def served():
    script = [turn("I echo.", call("echo", text="hi")), "done", "more", "and more"]
    async with serving(script) as made, made.client() as client:
        yield made, client


async def told(client, method, path, status=200, **more):
    response = await client.request(method, API + path, **more)
    assert response.status_code == status, response.text
    return response.json() if response.content else None


async def pending(client, session):
    async with asyncio.timeout(60):
        while True:
            found = (await told(client, "GET", f"/approvals?sessionId={session}"))["data"]
            if found:
                return found[0]
            await asyncio.sleep(0.01)


async def ended(client, session, status="completed"):
    async with asyncio.timeout(60):
        while True:
            found = (await told(client, "GET", f"/sessions/{session}"))["data"]
            if found["status"] == status:
                return found
            await asyncio.sleep(0.01)


async def test_a_session_from_its_launch_to_its_end(served):
    made, client = served
    health = await told(client, "GET", "/health")
    assert health["status"] == "ok" and health["dependencies"]["claude"]["available"]
    created = (await told(client, "POST", "/sessions", 201, json={"query": "go", "title": "T"}))[
        "data"
    ]
    session = created["session_id"]
    approval = await pending(client, session)
    assert (approval["status"], approval["tool_name"]) == ("pending", "echo")
    assert approval["tool_input"] == {"text": "hi"} and approval["run_id"] == created["run_id"]
    one = (await told(client, "GET", f"/approvals/{approval['id']}"))["data"]
    assert one == approval
    decide = f"/approvals/{approval['id']}/decide"
    wrong = await told(client, "POST", decide, 400, json={"decision": "deny"})
    assert "comment" in wrong["error"]["message"]
    assert (await told(client, "POST", decide, json={"decision": "approve"})) == {
        "data": {"success": True}
    }
    again = await told(client, "POST", decide, 400, json={"decision": "approve"})
    assert "already decided" in again["error"]["message"]
    found = await ended(client, session)
    assert found["title"] == "T" and found["query"] == "go" and found["completed_at"]
    messages = (await told(client, "GET", f"/sessions/{session}/messages"))["data"]
    assert [one["event_type"] for one in messages] == [
        "message", "message", "tool_call", "tool_result", "message",
    ]  # fmt: skip
    assert (await told(client, "GET", f"/sessions/{session}/snapshots")) == {"data": []}
    child = (await told(client, "POST", f"/sessions/{session}/continue", 201,
                        json={"query": "on"}))["data"]  # fmt: skip
    assert child["parent_session_id"] == session
    asks = await pending(client, child["session_id"])
    await told(client, "POST", f"/approvals/{asks['id']}/decide",
               json={"decision": "deny", "comment": "not again"})  # fmt: skip
    await ended(client, child["session_id"])
    leaves = await told(client, "GET", "/sessions")
    assert [one["id"] for one in leaves["data"]] == [child["session_id"]]
    assert leaves["counts"] == {"normal": 1, "archived": 0, "draft": 0}
    every = await told(client, "GET", "/sessions?leavesOnly=false")
    assert len(every["data"]) == 2
    hits = await told(client, "GET", "/sessions/search?query=GO")
    assert session in [one["id"] for one in hits["data"]]  # folders are searched as well
    stop = await told(client, "POST", f"/sessions/{session}/interrupt", 400)
    assert "must be running" in stop["error"]["message"]


async def test_drafts_wait_are_discarded_come_back_and_begin(served, tmp_path):
    _, client = served
    body = {"draft": True, "query": "later", "working_dir": str(tmp_path), "editor_state": "{}"}
    ids = [
        (await told(client, "POST", "/sessions", 201, json=body))["data"]["session_id"]
        for _ in range(3)
    ]
    drafts = (await told(client, "GET", "/sessions?filter=draft"))["data"]
    assert {one["id"] for one in drafts} == set(ids)
    assert (drafts[0]["status"], drafts[0]["query"]) == ("draft", "later")
    assert drafts[0]["editor_state"] == "{}" and drafts[0]["working_dir"] == str(tmp_path)
    first, second, third = ids
    changed = await told(client, "PATCH", f"/sessions/{first}", json={"status": "discarded"})
    assert changed["data"]["status"] == "discarded"
    assert len((await told(client, "GET", "/sessions?filter=draft"))["data"]) == 2
    restored = await told(client, "POST", "/sessions/restore-drafts",
                          json={"session_ids": [first, "nope"]})  # fmt: skip
    assert restored["data"] == {"success": False, "failed_sessions": ["nope"]}
    assert len((await told(client, "GET", "/sessions?filter=draft"))["data"]) == 3
    await told(client, "DELETE", f"/sessions/{third}/launch", 204)  # where the original has it
    assert (await told(client, "GET", f"/sessions/{third}"))["data"]["status"] == "discarded"
    for method in ("DELETE", "POST"):
        again = await told(client, method, f"/sessions/{third}/launch", 400, json={"prompt": "x"})
        assert "discarded" in again["error"]["message"]
    kept = await told(client, "DELETE", f"/sessions/{third}/hard-delete-empty", 400)
    assert "not empty" in kept["error"]["message"]
    await told(client, "POST", "/sessions/restore", json={"session_ids": [third]})
    assert len((await told(client, "GET", "/sessions?filter=draft"))["data"]) == 3
    launched = await told(client, "POST", f"/sessions/{second}/launch", json={"prompt": "now"})
    assert launched["data"]["query"] == "now"
    refused = await told(client, "POST", f"/sessions/{second}/launch", 400, json={"prompt": "x"})
    assert "not a draft" in refused["error"]["message"]
    approval = await pending(client, second)
    await told(client, "POST", f"/approvals/{approval['id']}/decide",
               json={"decision": "deny", "comment": "no"})  # fmt: skip
    await ended(client, second)
    await told(client, "DELETE", f"/sessions/{second}/launch", 400)
    await told(client, "DELETE", f"/sessions/{second}/hard-delete-empty", 400)


async def test_a_draft_begins_where_it_was_told_last(served, tmp_path):
    _, client = served
    body = {"draft": True, "query": "later", "title": "T", "auto_accept_edits": True,
            "working_dir": str(tmp_path / "no")}  # fmt: skip
    made = (await told(client, "POST", "/sessions", 201, json=body))["data"]
    draft = made["session_id"]
    shown = (await told(client, "GET", f"/sessions/{draft}"))["data"]
    assert shown["working_dir"] == str(tmp_path / "no") and shown["status"] == "draft"
    chosen = str(tmp_path / "fresh" / "folder")
    changed = await told(client, "PATCH", f"/sessions/{draft}", json={"working_dir": chosen})
    assert changed["data"]["working_dir"] == chosen
    await told(client, "PATCH", f"/sessions/{draft}", 400, json={"working_dir": "relative"})
    missing = await told(client, "POST", f"/sessions/{draft}/launch", 422, json={"prompt": "now"})
    assert (missing["error"], missing["path"]) == ("directory_not_found", chosen)
    assert missing["requires_creation"] is True
    launch = {"prompt": "now", "createDirectoryIfNotExists": True}
    begun = (await told(client, "POST", f"/sessions/{draft}/launch", json=launch))["data"]
    assert (begun["id"], begun["run_id"]) == (draft, made["run_id"])
    assert (begun["working_dir"], begun["title"], begun["query"]) == (chosen, "T", "now")
    assert begun["auto_accept_edits"] is True
    assert (tmp_path / "fresh" / "folder").is_dir()
    refused = await told(client, "PATCH", f"/sessions/{draft}", 400,
                         json={"working_dir": str(tmp_path)})  # fmt: skip
    assert "keeps its directory" in refused["error"]["message"]


@pytest.mark.parametrize("state", [None, "{}", ""])
async def test_an_empty_draft_is_removed_for_good(served, tmp_path, state):
    _, client = served
    body = {"draft": True, "working_dir": str(tmp_path), "editor_state": state}
    made = (await told(client, "POST", "/sessions", 201, json=body))["data"]["session_id"]
    if state:  # also one that was thrown away before
        await told(client, "DELETE", f"/sessions/{made}/launch", 204)
    await told(client, "DELETE", f"/sessions/{made}/hard-delete-empty", 204)
    await told(client, "GET", f"/sessions/{made}", 404)


async def test_settings_titles_archives_and_many_at_once(served):
    _, client = served
    body = {"query": "x", "auto_accept_edits": True}
    session = (await told(client, "POST", "/sessions", 201, json=body))["data"]["session_id"]
    change = {"title": "New", "archived": True, "dangerously_skip_permissions": True,
              "dangerously_skip_permissions_timeout_ms": 60_000}  # fmt: skip
    now = (await told(client, "PATCH", f"/sessions/{session}", json=change))["data"]
    assert (now["title"], now["archived"], now["auto_accept_edits"]) == ("New", True, True)
    assert now["dangerously_skip_permissions"] and now["dangerously_skip_permissions_expires_at"]
    await ended(client, session)
    assert (await told(client, "GET", "/sessions"))["data"] == []
    assert len((await told(client, "GET", "/sessions?filter=archived"))["data"]) == 1
    done = await told(client, "POST", "/sessions/archive", 207,
                      json={"session_ids": [session, "nope"], "archived": False})  # fmt: skip
    assert done["data"] == {"success": False, "failed_sessions": ["nope"]}
    assert len((await told(client, "GET", "/sessions"))["data"]) == 1
    await told(client, "PATCH", f"/sessions/{session}", 400, json={"proxy_enabled": True})
    await told(client, "PATCH", f"/sessions/{session}", 400, json={"working_dir": "/elsewhere"})


async def test_what_a_launcher_offers_to_choose_from(served, tmp_path):
    made, client = served
    (tmp_path / "src").mkdir()
    (tmp_path / "node_modules").mkdir()
    for name in ("src/gateway.py", "src/engine.py", "readme.md", "node_modules/gateway.js"):
        (tmp_path / name).write_text("")
    found = await told(client, "POST", "/fuzzy-search/files",
                       json={"query": "gtwy", "paths": [str(tmp_path)]})  # fmt: skip
    assert [one["displayPath"] for one in found["results"]] == ["src/gateway.py"]
    hit = found["results"][0]
    assert "".join(hit["displayPath"][at] for at in hit["matchedIndexes"]) == "gtwy"
    assert found["metadata"]["totalMatched"] == 1
    fresh = tmp_path / "a" / "b"
    state = await told(client, "POST", "/validate-directory", json={"path": str(fresh)})
    assert (state["exists"], state["canCreate"]) == (False, True)
    await told(client, "POST", "/directories", 200, json={"path": str(fresh)})
    assert fresh.is_dir()
    await told(client, "POST", "/directories", 400, json={"path": "relative"})
    missing = await told(client, "POST", "/sessions", 422,
                         json={"query": "x", "working_dir": str(tmp_path / "no")})  # fmt: skip
    assert missing["error"] == "directory_not_found" and missing["requires_creation"]
    body = {"query": "x", "working_dir": str(tmp_path / "no"),
            "create_directory_if_not_exists": True}  # fmt: skip
    session = (await told(client, "POST", "/sessions", 201, json=body))["data"]["session_id"]
    paths = (await told(client, "GET", "/recent-paths?limit=5"))["data"]
    assert str(tmp_path / "no") in [one["path"] for one in paths]
    (tmp_path / ".claude" / "commands").mkdir(parents=True)
    (tmp_path / ".claude" / "commands" / "fix.md").write_text("Fix $ARGUMENTS")
    rows = (await told(client, "GET", f"/slash-commands?working_dir={tmp_path}"))["data"]
    assert all(row["name"].startswith("/") for row in rows)
    agents = (await told(client, "POST", "/agents/discover", json={"working_dir": "/"}))["agents"]
    assert [one["mentionText"] for one in agents] == ["@agent-default"]
    await made.door.close(session)


async def test_the_host_tells_of_itself_and_keeps_settings(served):
    _, client = served
    info = await told(client, "GET", "/debug-info")
    assert info["path"] == ":memory:" and info["stats"]["sessions"] == 0
    assert (await told(client, "GET", "/config"))["claude_available"] is True
    await told(client, "PATCH", "/config", 400, json={"claude_path": "/bin/claude"})
    status = await told(client, "GET", "/config/status")
    assert set(status) == {"openrouter", "baseten", "z_ai"}
    assert (await told(client, "GET", "/user-settings"))["data"]["advanced_providers"] is False
    await told(client, "PATCH", "/user-settings", json={"advanced_providers": True})
    assert (await told(client, "GET", "/user-settings"))["data"]["advanced_providers"] is True


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/sessions/nope", 404, None),
        ("GET", "/sessions/nope/messages", 404, None),
        ("GET", "/approvals/nope", 404, None),
        ("POST", "/approvals/nope/decide", 404, {"decision": "approve"}),
        ("GET", "/approvals?sessionId=nope", 404, None),
        ("GET", "/nothing", 404, None),
        ("DELETE", "/health", 405, None),
        ("POST", "/sessions", 400, {}),
        ("POST", "/sessions", 400, {"query": 5}),
        ("POST", "/sessions", 400, {"query": "x", "model": "no/such"}),
        ("GET", "/sessions?filter=odd", 400, None),
        ("GET", "/sessions/search?limit=many", 400, None),
        ("POST", "/approvals", 400, {"run_id": "r", "tool_name": "Bash"}),
        ("POST", "/approvals", 404, {"run_id": "r", "tool_name": "Bash", "tool_input": {}}),
    ],
)
async def test_what_cannot_be_done_says_why(served, method, path, status, body):
    _, client = served
    refused = await told(client, method, path, status, json=body)
    assert refused["error"]["code"].startswith("HLD-") and refused["error"]["message"]


async def test_events_as_they_happen(served):
    made, client = served
    query = "?eventTypes=new_approval&eventTypes=approval_resolved"
    async with client.stream("GET", f"{API}/stream/events{query}") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.aiter_lines()
        assert (await anext(lines)).startswith(":")
        created = await told(client, "POST", "/sessions", 201, json={"query": "go"})
        session = created["data"]["session_id"]
        approval = await pending(client, session)
        await told(client, "POST", f"/approvals/{approval['id']}/decide",
                   json={"decision": "approve"})  # fmt: skip
        heard = []
        async with asyncio.timeout(60):
            while len(heard) < 2:
                line = await anext(lines)
                if line.startswith("data: "):
                    heard.append(json.loads(line[6:]))
        assert [one["type"] for one in heard] == ["new_approval", "approval_resolved"]
        assert all(one["data"]["approval_id"] == approval["id"] for one in heard)
        assert all(set(one) == {"type", "timestamp", "data", "seq"} for one in heard)


async def test_it_has_thirty_one_operations_and_a_document_of_them(served):
    made, client = served
    document = await told(client, "GET", "/openapi.json")
    ids = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(ids) == len(set(ids)) == len(made.gate.desks.desk("humanlayer").rest.operations)
    assert len(ids) == 32 and isinstance(made.gate.desks.desk("humanlayer").rest, Rest)
    assert msgspec.json.encode(document)


async def test_the_gateway_wants_a_token_and_the_native_port_its_owner(served, unused_port):
    made, client = served
    async with made.stranger() as stranger:
        assert (await stranger.get(f"{API}/health")).status_code == 401
    address = await made.gate.open_native(DIALECT.rest, unused_port)
    async with httpx.AsyncClient(base_url=address, timeout=60) as native:
        assert (await native.get(f"{API}/health")).json()["status"] == "ok"
        assert (await native.get("/api/sessions")).status_code == 404
        assert (await native.get("/")).status_code == 404
        foreign = {"origin": "https://evil.example"}
        refused = await native.post(f"{API}/sessions", json={"query": "x"}, headers=foreign)
        assert refused.status_code == 403
        rebound = await native.get(f"{API}/health", headers={"host": "evil.example:7777"})
        assert rebound.status_code in (403, 421)
        app = {"origin": "tauri://localhost"}  # the desktop app's own pages
        wanted = "content-type,x-client,x-client-version"
        ask = {"access-control-request-method": "PATCH", "access-control-request-headers": wanted}
        may = await native.options(f"{API}/sessions", headers={**app, **ask})
        assert may.status_code == 204
        assert may.headers["access-control-allow-origin"] == "tauri://localhost"
        for name in wanted.split(","):
            assert name in may.headers["access-control-allow-headers"]
        created = await native.post(f"{API}/sessions", json={"query": "x"}, headers=app)
        assert created.status_code == 201
        assert created.headers["access-control-allow-origin"] == "tauri://localhost"
        for origin in (
            "tauri://evil",
            "http://localhost.evil.example",
            "null",
            "http://localhost:80",
        ):
            refused = await native.get(f"{API}/sessions", headers={"origin": origin})
            assert refused.status_code == 403, origin
        through = await client.get(f"{API}/sessions", headers=app)
        assert through.status_code == 403  # the gateway is no port of that app
    made.gate.is_owner = lambda peer, here: False
    async with httpx.AsyncClient(base_url=address, timeout=60) as other:
        assert (await other.get(f"{API}/health")).status_code == 401


async def test_the_native_port_knows_no_prefix(unused_port):
    async with serving(["done"], path_prefix="/below") as made:
        address = await made.gate.open_native(DIALECT.rest, unused_port)
        async with httpx.AsyncClient(base_url=address, timeout=60) as native:
            assert (await native.get(f"{API}/health")).status_code == 200
            assert (await native.get(f"/below{API}/health")).status_code == 404


@pytest.fixture
def unused_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]
