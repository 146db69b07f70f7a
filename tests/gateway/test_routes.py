"""Each route by itself, on a host in memory: `access`, `agents`, `approvals`, `config`, `health`,
`live`, `prompts`, `sessions`, `story`, and the `table` that finds them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from dragoman.engine.ask import Ask
from dragoman.engine.content import Text
from dragoman.engine.door import Door
from dragoman.engine.events import Event, TurnEnded, Who
from dragoman.engine.faults import BadInput, StoreFailed, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.gateway.auth import Auth
from dragoman.gateway.http import Refusal, Request, Response, Stream, joined
from dragoman.gateway.routes import (
    access,
    agents,
    all_routes,
    approvals,
    config,
    health,
    live,
    prompts,
    sessions,
    story,
    table,
)
from dragoman.gateway.routes.table import Route, find, who_of
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang

ME = Who("rest", id="me")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    made = memory_door(Scripted(["hello", hang()]))
    yield made
    await host_of(made).stop(0.2)


def asked(method: str = "GET", target: str = "/", body: bytes = b"", **headers: str) -> Request:
    rows = [(name.replace("_", "-"), value) for name, value in headers.items()]
    made = Request(method, target, joined(rows), peer="1.2.3.4:5")
    made.body = body
    return made


def called(door: Any, **more: Any) -> Any:
    """One request on its way through a route."""
    gate = SimpleNamespace(
        door=door, prefix="", cwd="/work", audit=lambda *a, **k: noted.append(a),
        meter=SimpleNamespace(cost=0.5), watch_work=lambda work: None, keep_awake=lambda out: None,
        shape=lambda passing: None, spawn=asyncio.ensure_future,
    )  # fmt: skip
    noted: list[Any] = []
    usual = {"path": {}, "query": None, "body": None, "request": asked(), "wants_events": bool}
    made = SimpleNamespace(door=door, gate=gate, who=ME, noted=noted, **{**usual, **more})
    if hasattr(door, "shelf"):
        gate.auth = Auth(door.shelf, required=True, cookie="c")
        gate.check_tokens = lambda: asyncio.sleep(0)
    return made


async def opened(door: Door) -> str:
    return (await door.open(OpenSpec(cwd="/"))).id


# --- table ---


@pytest.mark.parametrize(
    ("path", "parts", "found"),
    [
        ("/", ("",), {}),
        ("/a/{id}", ("a", "x"), {"id": "x"}),
        ("/a/{id}", ("a", ""), None),
        ("/a/{id}", ("a",), None),
        ("/a/{id}", ("a", "x", "y"), None),
        ("/a/{rest...}", ("a", "x", "y"), {"rest": "x/y"}),
        ("/a/{rest...}", ("a",), {"rest": ""}),
        ("/a", ("b",), None),
    ],
)
def test_table_matches_paths(path: str, parts: tuple[str, ...], found: Any) -> None:
    assert Route("GET", path, None, "").match(parts) == found


def test_table_says_what_is_allowed_where_the_path_is_right() -> None:
    routes = [Route("GET", "/a", None, "x"), Route("POST", "/a", None, "y")]
    assert find(routes, asked("HEAD", "/a"))[0].summary == "x"
    with pytest.raises(Refusal) as wrong:
        find(routes, asked("DELETE", "/a"))
    assert wrong.value.status == 405 and wrong.value.headers == {"allow": "GET, HEAD, POST"}
    with pytest.raises(Refusal, match="nothing at this path"):
        find(routes, asked("GET", "/b"))


class Body(msgspec.Struct, forbid_unknown_fields=True):
    n: int = 0
    any: object = None


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"n":1}', "text/plain", 415),
        (b'{"n":"x"}', "application/json", 400),
        (b"\xff", "application/json", 400),
        (b'{"any":' * 100_000, "application/json", 400),
        (b'{"m":1}', "application/problem+json", 400),
        (b"", "", 400),
    ],
)
def test_table_refuses_bodies_that_are_none(body: bytes, kind: str, status: int) -> None:
    with pytest.raises(Refusal) as found:
        table._body(Route("POST", "/", None, "", body=Body), asked(body=body, content_type=kind))
    assert found.value.status == status
    assert table._body(Route("POST", "/", None, "", body=Body, optional_body=True), asked()).n == 0


def test_table_reads_queries_and_who_asks() -> None:
    route = Route("GET", "/", None, "", query=Body)
    assert table._query(route, asked(target="/?n=7&token=secret")).n == 7
    with pytest.raises(Refusal, match="cannot be used"):
        table._query(route, asked(target="/?n=x"))
    request = asked(x_client_name="n" * 200, x_dragoman="1")
    request.token_id = "t1"
    assert who_of(request) == Who("dashboard", "http:1.2.3.4:5", "n" * 100, "t1")
    assert who_of(asked()).dialect == "rest" and who_of(asked()).id == "1.2.3.4:5"


async def test_table_turns_results_into_answers(door: Door) -> None:
    async def gives(value: Any) -> Any:
        route = Route("GET", "/", lambda call: asyncio.sleep(0, value), "", status=201)
        return await table.run(SimpleNamespace(route=route))

    assert (await gives(None)).status == 204 and (await gives([1])).status == 201
    ready = Response(418)
    assert await gives(ready) is ready


def test_table_every_route_has_a_name_of_its_own() -> None:
    names = Counter((route.method, route.path) for route in all_routes())
    assert max(names.values()) == 1


# --- access ---


async def test_access_a_code_becomes_a_token_once(door: Door) -> None:
    made = await access.new_code(called(door))
    request = asked(x_pairing_code=made.pairing_code, x_client_name="phone")
    paired = await access.pair(called(door, body=access.Pairing(), request=request))
    assert paired.paired and paired.token
    assert [one.name for one in await access.list_tokens(called(door))] == ["phone"]
    with pytest.raises(Refusal):
        await access.pair(called(door, body=access.Pairing(), request=request))
    with pytest.raises(Refusal, match="No code"):
        await access.pair(called(door, body=access.Pairing()))


async def test_access_a_browser_gets_a_cookie_and_can_leave(door: Door) -> None:
    code = (await access.new_code(called(door))).pairing_code
    answer = await access.pair(called(door, body=access.Pairing(code, browser=True)))
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and b'"token"' not in answer.body
    request = asked()
    request.via, request.token_id = "cookie", (await access.list_tokens(called(door)))[0].id
    left = await access.leave(called(door, request=request))
    assert (
        "Max-Age=0" in left.headers["set-cookie"] and await access.list_tokens(called(door)) == []
    )


async def test_access_tokens_are_made_and_revoked(door: Door) -> None:
    call = called(door, body=access.NewToken("ci"))
    made = await access.make_token(call)
    assert call.noted == [("token made",)]
    await access.revoke(called(door, path={"id": made.id}))
    with pytest.raises(Refusal, match="no token"):
        await access.revoke(called(door, path={"id": made.id}))
    assert (await access.me(called(door))).authed is False
    door.visitors.arrive(ME)
    assert [one.who for one in await access.clients(called(door))] == [ME]


# --- agents ---


async def test_agents_one_that_is_broken_hides_no_other(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = door.profile

    def profile(alias: str) -> Any:
        if alias == "broken":
            raise BadInput("its profile is gone")
        return known("default")

    monkeypatch.setattr(door, "agents", lambda: ["default", "broken"])
    monkeypatch.setattr(door, "profile", profile)
    good, bad = await agents.agents(called(door))
    assert good.model == "scripted/test" and not good.problem and good.default
    assert bad.alias == "broken" and bad.problem == "its profile is gone"
    (model,) = await agents.models(called(door, query=agents.ModelQuery()))
    assert model.ref == "scripted/test" and model.name == "test"


# --- approvals ---


async def test_approvals_long_ones_are_answered_by_their_digest(door: Door) -> None:
    session = await opened(door)
    long = Ask(
        "q", session, "tool", "bash", 1, tool="bash", args={"command": "x" * 90_000},
        external=True, digest="d",
    )  # fmt: skip
    await door.put_ask(long)
    (row,) = await approvals.list_(called(door, query=approvals.AskQuery(session)))
    assert row.ask.id == "q" and (await approvals.read(called(door, path={"id": "q"}))).ask == long
    call = called(door, path={"id": "q"}, body=approvals.Verdict("allow"))
    with pytest.raises(BadInput, match="leaves out"):
        await approvals.answer(call)
    call.body = approvals.Verdict("deny", comment="no")
    assert (await approvals.answer(call)).settled.verdict == "deny"
    assert await approvals.rules(called(door)) == []


# --- config ---


async def test_config_of_a_host_without_one(door: Door) -> None:
    for route in (config.read, config.write, config.fields):
        with pytest.raises(Refusal, match="without a configuration"):
            await route(called(door, query=config.PathQuery(), body=config.Setting("a", 1)))


async def test_config_is_read_set_and_taken_out(door: Door) -> None:
    done: list[Any] = []

    async def changed(*given: Any) -> None:
        done.append(given)

    door.config = SimpleNamespace(get=lambda path: None, set=changed)  # type: ignore[assignment]
    for value in (5, None):
        call = called(door, body=config.Setting("acp.max_sessions", value))
        assert (await config.write(call)).key == "acp.max_sessions"
    assert done == [("acp.max_sessions", 5), ("acp.max_sessions", None)]
    for path in ("no.such", "a..b"):
        with pytest.raises(BadInput):
            await config.read(called(door, query=config.PathQuery(path)))


# --- health ---


async def test_health_is_ready_only_when_the_store_answers(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await health.livez(called(door))).status == 200
    assert (await health.readyz(called(door))).status == 200

    async def broken() -> int:
        raise StoreFailed("the disk is full")

    monkeypatch.setattr(door, "newest", broken)
    assert (await health.readyz(called(door))).status == 503
    stopping = SimpleNamespace(stopping=True)
    assert (await health.readyz(called(stopping))).status == 503


async def test_health_status_says_what_a_session_may_be_given(door: Door) -> None:
    await opened(door)
    found = await health.status(called(door))
    assert found.sessions == 1 and found.cost == 0.5 and "worktree" in found.options
    assert found.modes == ("readonly", "plan", "supervised", "full")


# --- live ---


@pytest.mark.parametrize(
    ("header", "query", "since"),
    [("", None, None), ("", 3, 3), ("7", 3, 7), ("²", 3, 3), ("-1", None, None),
     ("9" * 40, 3, 3)],
)  # fmt: skip
def test_live_takes_up_where_the_client_was(header: str, query: Any, since: Any) -> None:
    call = called(None, request=asked(last_event_id=header), query=live.SinceQuery(query))
    assert live._since(call) == since


async def test_live_streams_begin_when_they_are_read(door: Door) -> None:
    session = await opened(door)
    assert isinstance(await live.events(called(door, query=live.SinceQuery(99))), Stream)
    call = called(door, path={"id": session}, query=live.SessionSince())
    assert isinstance(await live.session_events(call), Stream)
    with pytest.raises(UnknownSession):
        await live.live(called(door, query=live.LiveQuery("nope")))


# --- prompts ---


def test_prompts_are_never_empty() -> None:
    assert prompts.content_of(prompts.PromptBody("x")) == (Text("x"),)
    assert prompts.content_of(prompts.PromptBody("x", (Text("y"),))) == (Text("y"),)
    with pytest.raises(Refusal, match="empty"):
        prompts.content_of(prompts.PromptBody("  "))


async def test_prompts_are_waited_for_or_not(door: Door) -> None:
    session = await opened(door)
    path = {"id": session}
    with pytest.raises(Refusal, match="Nothing runs"):
        await prompts.cancel(
            called(SimpleNamespace(info=door.info, live=lambda id: None), path=path)
        )
    done = await prompts.prompt(called(door, path=path, body=prompts.PromptBody("hi")))
    assert (done.outcome, done.text) == ("completed", "hello")
    answer = await prompts.prompt(called(door, path=path, body=prompts.PromptBody("x", wait=False)))
    assert answer.status == 202
    await door.begun(session)
    assert (await prompts.cancel(called(door, path=path))).turn
    await door.idle(session)


async def test_prompts_notice_the_end_of_their_turn_only() -> None:
    shape = prompts.TurnShape()
    shape.turn = "t1"
    shape.speak([Event("s", 1, TurnEnded("t0", "completed", "end_turn"), 1, 1)])
    assert not shape.said.done()
    said = shape.speak([Event("s", 1, TurnEnded("t1", "failed", "error"), 2, 2)])
    assert said is not None and b"turn_ended" in said
    assert shape.said.done()
    shape.end()  # twice does no harm


# --- sessions ---


async def test_sessions_are_made_changed_and_gone(door: Door) -> None:
    made = await sessions.create(called(door, body=sessions.NewSession(title="one", cwd="/")))
    assert made.status == 201
    id = made.headers["location"].rpartition("/")[2]
    change = sessions.Change(title="two", mode="plan", archived=True, reasoning="high")
    changed = await sessions.change(called(door, path={"id": id}, body=change))
    assert (changed.title, changed.mode, changed.archived) == ("two", "plan", True)
    page = await sessions.list_(
        called(door, query=sessions.ListQuery(archived=True, counted=True, status="idle,failed"))
    )
    assert page.total == 1 and page.sessions[0].id == id
    forked = await sessions.fork(called(door, path={"id": id}))
    assert forked.status == 201
    kept = await sessions.events(called(door, path={"id": id}, query=sessions.EventQuery(after=1)))
    assert kept and kept[0].seq == 2
    await sessions.close(called(door, path={"id": id}))
    with pytest.raises(Refusal, match="not open"):
        await sessions.close(called(door, path={"id": id}))
    await sessions.delete(called(door, path={"id": id}))
    for route in (sessions.read, sessions.delete, sessions.messages, sessions.close):
        with pytest.raises(UnknownSession):
            await route(called(door, path={"id": id}))


# --- story ---


async def test_story_ends_a_worktree_by_the_users_word(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await opened(door)
    merge = story.EndWorktree("merge")
    with pytest.raises(BadInput, match="has no worktree"):
        await story.end_worktree(called(door, path={"id": id}, body=merge))
    with pytest.raises(UnknownSession):
        await story.end_worktree(called(door, path={"id": "nobody"}, body=merge))
    heard: list[Any] = []

    async def end(*given: Any) -> str:
        heard.append(given)
        return "Merged."

    monkeypatch.setattr(door, "end_worktree", end)
    done = await story.end_worktree(called(door, path={"id": id}, body=merge))
    assert done.done == "Merged." and heard == [(id, "merge", ME)]
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"how": "burn"}', type=story.EndWorktree)
