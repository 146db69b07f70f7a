"""REST: sessions, prompts as streams, approvals, live events, agents and models."""

import asyncio
import json

from tests.gateway.making import events_of, serving

from dragoman.engine.content import Text
from dragoman.engine.faults import StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Correspondent, Given
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, say, think, turn


async def test_a_session_is_opened_listed_changed_forked_and_deleted():
    async with serving() as served, served.client() as client:
        made = await client.post("/api/sessions", json={"title": "one", "mode": "readonly"})
        assert made.status_code == 201
        id = made.json()["id"]
        assert made.headers["location"] == f"/api/sessions/{id}"
        listed = (await client.get("/api/sessions?limit=5")).json()["sessions"]
        assert [one["id"] for one in listed] == [id]
        changed = await client.patch(f"/api/sessions/{id}", json={"title": "two", "mode": "full"})
        assert (changed.json()["title"], changed.json()["mode"]) == ("two", "full")
        assert (
            await client.patch(f"/api/sessions/{id}", json={"model": "no/such"})
        ).status_code == 404
        assert (await client.patch(f"/api/sessions/{id}", json={"mode": "x"})).status_code == 400
        fork = await client.post(f"/api/sessions/{id}/fork")
        assert fork.status_code == 201 and fork.json()["parent"] == id
        assert (await client.post(f"/api/sessions/{id}/close")).status_code == 204
        assert (await client.delete(f"/api/sessions/{id}")).status_code == 204
        gone = await client.get(f"/api/sessions/{id}")
        assert gone.status_code == 404 and gone.json()["error"]["code"] == "unknown_session"


async def test_a_prompt_is_answered_when_its_turn_is_over():
    async with serving(["Hello there."]) as served, served.client() as client:
        id = (await client.post("/api/sessions")).json()["id"]
        done = await client.post(f"/api/sessions/{id}/prompt", json={"text": "hi"})
        assert done.status_code == 200
        assert done.json() | {"turn": ""} == {
            "turn": "",
            "outcome": "completed",
            "stop": "end_turn",
            "text": "Hello there.",
            "error": "",
        }
        said = (await client.get(f"/api/sessions/{id}/messages")).json()
        assert [one["role"] for one in said] == ["user", "assistant"]
        kinds = [
            one["body"]["type"] for one in (await client.get(f"/api/sessions/{id}/events")).json()
        ]
        assert kinds[0] == "opened" and "spoke" in kinds and "turn_ended" in kinds
        assert (await client.post(f"/api/sessions/{id}/prompt", json={})).status_code == 400
        assert (
            await client.post("/api/sessions/nope/prompt", json={"text": "x"})
        ).status_code == 404


async def test_a_prompt_is_streamed_as_server_sent_events():
    script = [turn(think("Well."), say("One two three four.", 4))]
    async with serving(script) as served, served.client() as client:
        id = (await client.post("/api/sessions")).json()["id"]
        accept = {"accept": "text/event-stream"}
        async with client.stream(
            "POST", f"/api/sessions/{id}/prompt", json={"text": "count"}, headers=accept
        ) as stream:
            assert stream.headers["content-type"] == "text/event-stream"
            events = events_of((await stream.aread()).decode())
        names = [name for name, _ in events]
        assert names[-1] == "done" and "turn_began" in names and "turn_ended" in names
        text = "".join(
            json.loads(data)["body"]["text"] for name, data in events if name == "text_delta"
        )
        assert text == "One two three four."
        assert json.loads(events[-1][1])["text"] == "One two three four."


async def test_the_same_key_never_runs_twice():
    async with serving(["a", "b"]) as served, served.client() as client:
        id = (await client.post("/api/sessions")).json()["id"]
        body = {"text": "x", "key": "k1"}
        assert (await client.post(f"/api/sessions/{id}/prompt", json=body)).status_code == 200
        again = await client.post(f"/api/sessions/{id}/prompt", json=body)
        assert again.status_code == 409 and again.json()["error"]["data"]["turn"]
        assert len((await client.get(f"/api/sessions/{id}/messages")).json()) == 2


async def test_a_turn_outlives_the_client_that_began_it():
    async with serving([turn(call("echo", text="x")), "done"]) as served, served.client() as client:
        id = (await client.post("/api/sessions")).json()["id"]
        accept = {"accept": "text/event-stream"}
        async with client.stream(
            "POST", f"/api/sessions/{id}/prompt", json={"text": "go"}, headers=accept
        ) as stream:
            async for line in stream.aiter_lines():
                if line == "event: asked":
                    break
        asks = (await client.get("/api/approvals")).json()
        assert [one["ask"]["tool"] for one in asks] == ["echo"]
        await client.post(f"/api/approvals/{asks[0]['ask']['id']}", json={"verdict": "allow"})
        async with asyncio.timeout(60):
            await served.door.idle(id)
        assert (await client.get(f"/api/sessions/{id}")).json()["result"] == "done"


async def test_an_approval_is_settled_once():
    async with serving([turn(call("echo", text="x")), "denied then"]) as served:
        async with served.client() as client:
            id = (await client.post("/api/sessions")).json()["id"]
            body = {"text": "go", "wait": False}
            assert (await client.post(f"/api/sessions/{id}/prompt", json=body)).status_code == 202
            ask = await waiting_ask(client)
            url = f"/api/approvals/{ask['id']}"
            assert (await client.post(url, json={"verdict": "perhaps"})).status_code == 400
            done = await client.post(url, json={"verdict": "deny", "comment": "not now"})
            assert done.status_code == 200 and done.json()["settled"]["verdict"] == "deny"
            assert done.json()["settled"]["by"]["dialect"] == "rest"
            late = await client.post(url, json={"verdict": "allow"})
            assert late.status_code == 409 and late.json()["error"]["code"] == "already_settled"
            assert (await client.get("/api/approvals")).json() == []
            assert len((await client.get("/api/approvals?pending=false")).json()) == 1
            assert (await client.get("/api/approvals/none")).status_code == 404


async def waiting_ask(client) -> dict:
    async with asyncio.timeout(60):
        async with client.stream("GET", "/api/events?since=0") as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: ") and '"type":"asked"' in line:
                    return json.loads(line[6:])["body"]["ask"]
    raise AssertionError


async def test_a_running_turn_is_steered_and_cancelled():
    async with serving([turn(say("Working"), hang())]) as served, served.client() as client:
        id = (await client.post("/api/sessions")).json()["id"]
        assert (await client.post(f"/api/sessions/{id}/cancel")).status_code == 409
        await client.post(f"/api/sessions/{id}/prompt", json={"text": "go", "wait": False})
        async with (
            asyncio.timeout(60),
            client.stream("GET", f"/api/sessions/{id}/stream?since=0") as s,
        ):
            async for line in s.aiter_lines():
                if line == "event: text_delta":
                    break
        steered = await client.post(f"/api/sessions/{id}/steer", json={"text": "faster"})
        assert steered.status_code == 200
        assert (await client.post(f"/api/sessions/{id}/cancel")).status_code == 200
        await served.door.idle(id)
        info = (await client.get(f"/api/sessions/{id}")).json()
        assert info["status"] in ("idle", "interrupted")


async def test_events_go_on_where_a_reader_stopped():
    async with serving(["one", "two", "three"]) as served, served.client() as client:
        info = await served.door.open(OpenSpec())
        await (await served.door.prompt(info.id, (Text("1"),))).done
        seen: list[int] = []
        last = ""
        for _ in range(2):
            headers = {"last-event-id": last} if last else {}
            url = "/api/events" + ("" if last else "?since=0")
            newest = await served.door.newest()
            async with asyncio.timeout(60), client.stream("GET", url, headers=headers) as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("id: "):
                        last = line[4:]
                        seen.append(int(last))
                        if int(last) >= newest:
                            break
            await (await served.door.prompt(info.id, (Text("2"),))).done
        assert seen == list(range(1, seen[-1] + 1))


async def test_a_session_names_no_event_that_cannot_be_read_yet():
    held, free = asyncio.Event(), asyncio.Event()

    class Slow(MemoryStore):
        """Keeps what ends a turn on its way until it is let go."""

        def post(self, batch, *, patient=False):
            if all(entry.kind != "turn_ended" for entry in batch.entries):
                return super().post(batch, patient=patient)
            held.set()

            async def later():
                await free.wait()
                return await super(Slow, self).post(batch, patient=patient)

            return asyncio.ensure_future(later())

    door = memory_door(Scripted(["the answer"]), store=Slow())
    async with serving(door=door) as served, served.client() as client:
        id = (await client.post("/api/sessions")).json()["id"]
        await client.post(f"/api/sessions/{id}/prompt", json={"text": "hi", "wait": False})
        async with asyncio.timeout(60):
            await held.wait()
        last = (await client.get(f"/api/sessions/{id}")).json()["last_seq"]
        read = (await client.get(f"/api/sessions/{id}/events")).json()
        assert read[-1]["seq"] == last
        free.set()
        url = f"/api/live?session={id}&since={last}"
        async with client.stream("GET", url) as stream, asyncio.timeout(60):
            async for line in stream.aiter_lines():
                if line.startswith("data: ") and '"spoke"' in line:
                    break
        assert f'"seq":{last + 1},' in line and "the answer" in line


async def test_the_dashboard_stream_tells_sessions_approvals_and_clients():
    async with serving([turn(call("echo", text="x")), "ok"]) as served, served.client() as client:
        info = await served.door.open(OpenSpec())
        names: set[str] = set()
        async with asyncio.timeout(60):
            async with client.stream("GET", f"/api/live?session={info.id}&since=0") as stream:
                async for line in stream.aiter_lines():
                    if not line.startswith("event: "):
                        continue
                    names.add(line[7:])
                    if line == "event: hello":
                        await served.door.prompt(info.id, (Text("go"),))
                    if line == "event: ask":
                        (row,) = await served.door.asks()
                        await served.door.answer(row.ask.id, "allow")
                    if line == "event: settled":
                        break
        assert names >= {"hello", "clients", "session", "event", "ask", "settled"}
        left = asyncio.Event()
        served.door.visitors.on_change.append(left.set)
        if served.door.visitors.clients:
            await asyncio.wait_for(left.wait(), 60)
        assert not served.door.visitors.clients


async def test_the_dashboard_opens_and_says_that_the_store_is_stalled():
    class Gone(MemoryStore):
        """Takes nothing, and answers nobody."""

        async def newest_gseq(self):
            return await asyncio.get_running_loop().create_future()

        async def asks(self, session=None, *, pending=False):
            raise StoreFailed(self.stalled)

    store = Gone()
    async with serving(door=memory_door(Scripted(["ok"]), store=store)) as served:
        store.stalled = "The database is gone."
        async with served.client() as client, asyncio.timeout(60):
            async with client.stream("GET", "/api/live") as stream:
                said = (line async for line in stream.aiter_lines() if line.startswith("data: "))
                assert json.loads((await anext(said))[6:])["stalled"] == "The database is gone."
            status = (await client.get("/api/status")).json()
            assert (status["stalled"], status["approvals"]) == ("The database is gone.", None)


async def test_agents_models_status_and_metrics():
    async with serving() as served, served.client() as client:
        (agent,) = (await client.get("/api/agents")).json()
        assert agent["alias"] == "default" and agent["default"]
        (model,) = (await client.get("/api/models")).json()
        assert model["ref"] == "scripted/test"
        status = (await client.get("/api/status")).json()
        assert status["sessions"] == 0
        await client.post("/api/sessions")
        page = (await client.get("/metrics")).text
        assert 'dragoman_sessions{status="idle"} 1' in page
        assert 'dragoman_http_requests_total{method="POST",status="201"} 1' in page
        for line in page.splitlines():
            assert line.startswith("# ") or len(line.rsplit(" ", 1)) == 2
        async with served.stranger() as stranger:
            assert (await stranger.get("/livez")).text == "ok\n"
            assert (await stranger.get("/readyz")).text == "ok\n"
            # Scrapers of this machine need no token: there are counts in it, and no names.
            assert (await stranger.get("/metrics")).text.startswith("# ")


async def test_readyz_says_when_the_host_goes_down():
    async with serving() as served, served.stranger() as client:
        host_of(served.door).stopping = True
        assert (await client.get("/readyz")).status_code == 503
        host_of(served.door).stopping = False


async def test_secrets_that_clients_keep_with_a_session_are_hidden():
    async with serving() as served, served.client() as client:
        given = Given(mcp=({"name": "x", "env": {"API_TOKEN": "very-secret-value"}},))
        info = await served.door.open(OpenSpec(traits=(given,)))
        secret = {"auth_token": "another-secret-value"}
        await served.door.keep(info.id, Correspondent, metadata=secret)
        for path in ("", "/events"):
            said = (await client.get(f"/api/sessions/{info.id}{path}")).text
            assert "secret-value" not in said and "***" in said


async def test_wrong_bodies_are_told_what_is_wrong():
    async with serving() as served, served.client() as client:
        json_type = {"content-type": "application/json"}
        for body in (b"{", b"[]", b'{"titel":"x"}', b'{"title":5}', b"\xff"):
            answer = await client.post("/api/sessions", content=body, headers=json_type)
            assert answer.status_code == 400 and answer.json()["error"]["message"], body
        answer = await client.post("/api/sessions", content=b"a=b")
        assert answer.status_code == 415
        assert (await client.get("/api/sessions?limit=0")).status_code == 400
        assert (await client.get("/api/sessions?limit=x")).status_code == 400
