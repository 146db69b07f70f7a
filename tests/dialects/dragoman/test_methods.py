"""Our own methods on a host in memory: `approvals`, `host`, `sessions`, `watching`."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.dialects.dragoman import approvals, host, sessions, watching
from dragoman.dialects.dragoman.shapes import (
    Answer,
    Approvals,
    Board,
    Cancel,
    Config,
    History,
    Models,
    Name,
    OfApproval,
    OfRule,
    OfSession,
    OneApp,
    Open,
    Pair,
    Prompt,
    Retract,
    Sessions,
    Tap,
    Unwatch,
    Watch,
)
from dragoman.engine import events as ev
from dragoman.engine.ask import Ask
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import BadInput, Fault, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted


class Conn:
    """A connection that keeps what it is sent."""

    def __init__(self) -> None:
        self.door = memory_door(Scripted([]))
        self.who = Who("zeroclaw", "x", "", "me")
        self.desk = SimpleNamespace(pid=7, started=0)
        self.gone = False
        self.held = SimpleNamespace(watches={}, counted=0, untap=None)
        self.sent: list[bytes] = []
        self.paused = False
        self.replies: list[Any] = []
        self.link: Any = SimpleNamespace(
            send=self.sent.append, send_blob=lambda blob: self.sent.extend(blob.messages),
            paused=False,
        )  # fmt: skip
        self.conn = self  # it is its own call

    def reply(self, value: Any) -> None:
        self.replies.append(value)

    def is_paused(self) -> bool:
        return self.paused

    async def session(self) -> str:
        return (await self.door.open(OpenSpec(cwd="/"))).id


# --- approvals ---


async def test_approvals_allow_only_what_was_seen() -> None:
    conn = Conn()
    session = await conn.session()
    await conn.door.put_ask(
        Ask("q", session, "tool", "bash", 1, tool="bash", args={"command": "ls"}, external=True)
    )
    assert len((await approvals.approvals(conn, Approvals())).approvals) == 1
    whole = await approvals.approval(conn, OfApproval("q"))
    assert whole.approval.ask.id == "q" and "ls" in whole.text
    for verdict in ("allow", "allow_always"):
        with pytest.raises(BadInput, match="names the digest"):
            await approvals.answer(conn, Answer("q", verdict))
    done = await approvals.answer(conn, Answer("q", "deny", "no"))
    assert done.settled.verdict == "deny" and done.settled.by == conn.who
    assert (await approvals.rules(conn, None)).rules == []
    with pytest.raises(Fault):
        await approvals.remove_rule(conn, OfRule("none"))


# --- host ---


async def test_host_status_survives_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    conn = Conn()
    await conn.session()
    conn.door.visitors.arrive(conn.who)
    found = await host.status(conn, None)
    assert found["sessions"]["live"] == 1 and found["clients"] == {"zeroclaw": 1}
    assert found["approvals"] == 0 and found["rss_bytes"] >= 0
    away = SimpleNamespace(durable=True, problem="", commits=1, stalled="no database", place="db")
    monkeypatch.setattr(type(conn.door), "health", away)
    stalled = await host.status(conn, None)
    assert stalled["approvals"] is None and stalled["store"]["newest"] is None
    assert stalled["store"]["stalled"] == "no database"


async def test_host_says_what_this_process_does_not_have() -> None:
    conn = Conn()
    for call, params, why in (
        (host.doctor, None, "no doctor"),
        (host.restart_app, OneApp("@a/b"), "No app @a/b is started here"),
        (host.pair, Pair(), "without its gateway"),
    ):
        with pytest.raises(BadInput, match=why):
            await call(conn, params)
    with pytest.raises(BadInput, match="no configuration"):
        await host.config(conn, Config())
    assert host.apps(conn, None) == {"kept": [], "connected": []}


async def test_host_lists_agents_that_are_broken_with_their_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conn = Conn()

    def profile(alias: str) -> Any:
        raise BadInput("its profile is gone")

    monkeypatch.setattr(conn.door, "profile", profile)
    (row,) = host.agents(conn, None).agents
    assert row.problem == "its profile is gone" and row.model == ""
    assert [one.ref for one in host.models(conn, Models()).models] == ["scripted/test"]


async def test_host_configuration_by_what_is_asked() -> None:
    conn = Conn()
    done: list[Any] = []

    async def changed(*given: Any) -> None:
        done.append(given)

    conn.door.config = SimpleNamespace(  # type: ignore[assignment]
        get=lambda path: 1, set=changed, reload=lambda: done.append("reload")
    )
    for op in ("get", "set", "unset", "reload"):
        assert await host.config(conn, Config(op, "a", 2)) == {"path": "a", "value": 1}
    assert done == [("a", 2), ("a", None), "reload"]
    assert await host.config(conn, Config("explain")) == {"keys": []}
    with pytest.raises(BadInput, match="value is missing"):
        await host.config(conn, Config("set", "a"))
    await host.config(conn, Config("set", "a", None))
    assert done[3:] == [("a", None)]


# --- sessions ---


async def test_sessions_are_opened_read_and_paged() -> None:
    conn = Conn()
    conn.desk.state = conn.door.look
    made = (await sessions.opened(conn, Open(cwd="/", title="T"))).session
    page = await sessions.history(conn, History(made.id, limit=1))
    assert len(page.events) == 1 and page.more
    assert (await sessions.facts(conn, OfSession(made.id))).live
    assert [row.id for row in (await sessions.listed(conn, Sessions(limit=10**9))).sessions]
    for id in ("  ", "x" * 300, "nul\0"):
        with pytest.raises(BadInput):
            await sessions.opened(conn, Open(cwd="/", id=id))


async def test_sessions_the_board_shows_who_waits_even_beyond_its_limit() -> None:
    conn = Conn()
    first, second = await conn.session(), await conn.session()
    await conn.door.put_ask(Ask("q", first, "tool", "bash", 1, external=True))
    board = await sessions.board(conn, Board(limit=1))
    waiting = {row.session.id: row.asks for row in board.rows}
    assert waiting[first] == 1 and set(waiting) <= {first, second}


async def test_sessions_without_a_prompt_or_a_turn_nothing_happens() -> None:
    conn = Conn()
    id = await conn.session()
    conn.desk.settings = SimpleNamespace(queue=1)
    with pytest.raises(BadInput, match="no prompt"):
        await sessions.prompt(conn, Prompt(id))
    with pytest.raises(Fault):
        await sessions.cancel(conn, Cancel(id))
    with pytest.raises(Fault):
        await sessions.retract(conn, Retract(id, "k"))


# --- watching ---


def test_watching_speaks_the_same_bytes_kept_or_all() -> None:
    kept = Event('s"', 5, ev.Renamed("T"), 2, 9)
    passing = Event("s", 5, ev.TextDelta("t", "x"))
    told = json.loads(watching.line(kept))
    assert told["params"] == {
        "session": 's"', "seq": 2, "gseq": 9, "at": 5, "event": {"type": "renamed", "title": "T"},
    }  # fmt: skip
    assert len(watching.Native(True).speak([kept, passing]).messages) == 2
    assert len(watching.Native(False).speak([kept, passing]).messages) == 1
    assert (
        watching.Native(False).speak([passing]) is None and watching.Native(True).speak([]) is None
    )


async def test_watching_the_same_again_takes_the_place_of_the_first() -> None:
    conn = Conn()
    session = await conn.session()
    await watching.watch(conn, Watch(session))
    await watching.watch(conn, Watch(session, passing=False))
    await watching.watch(conn, Watch())
    assert [one.watch for one in conn.replies] == ["w1", "w2", "w3"]
    assert list(conn.held.watches) == ["w2", "w3"]
    with pytest.raises(UnknownSession):
        await watching.watch(conn, Watch("nope"))
    assert watching.unwatch(conn, Unwatch("w2")) == {"watch": "w2", "ended": True}
    assert watching.unwatch(conn, Unwatch("w2"))["ended"] is False
    conn.gone = True
    await watching.watch(conn, Watch())
    assert conn.held.watches == {}  # nobody is left to watch


async def test_watching_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_MOST", 1)
    conn = Conn()
    await watching.watch(conn, Watch(await conn.session()))
    with pytest.raises(BadInput, match="1 watches already"):
        await watching.watch(conn, Watch(await conn.session()))


async def test_watching_a_name_is_taken_once_for_all() -> None:
    conn = Conn()
    conn.door.visitors.arrive(conn.who)
    assert watching.hello(conn, Name("n" * 200)) == {"id": "me", "name": "n" * 100}
    assert [row.name for row in watching.clients(conn, None).clients] == ["n" * 100]


async def test_watching_taps_what_belongs_to_a_session_and_counts_what_is_lost() -> None:
    conn = Conn()
    with pytest.raises(Fault, match="not available"):
        watching.tap(conn, Tap())
    told: list[Any] = []
    ended: list[bool] = []

    class Taps:
        def follow(self, own: Any, heard: Any) -> Any:
            told.append(heard)
            return lambda: ended.append(True)

    conn.door.facts.taps = Taps()
    watching.tap(conn, Tap(session_id="s1"))

    def row(connection: str, line: str, direction: str = "in") -> dict[str, Any]:
        return {
            "connection": connection,
            "line": line,
            "direction": direction,
            "client": connection,
        }

    told[0](row("a", "nothing of it"))
    assert conn.sent == []
    told[0](row("a", "about s1"))
    conn.link.paused = True
    told[0](row("a", "now everything of a"))
    conn.link.paused = False
    told[0](row("a", "again"))
    told[0](row("b", "names s1", "out"))
    told[0](row("b", "else"))
    said = [json.loads(one)["params"] for one in conn.sent]
    assert [(one["line"], one["lost"]) for one in said] == [
        ("about s1", 0), ("again", 1), ("names s1", 0),
    ]  # fmt: skip
    assert watching.tap(conn, Tap(False)) == {"on": False} and ended == [True]
