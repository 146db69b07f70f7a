"""What every store promises, asked of each of them in the same words."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.making import make_answer, make_ask, make_batch, make_entries, make_info

from dragoman.engine.events import Noted, Who, decode_body, encode_body
from dragoman.engine.faults import (
    AlreadySettled,
    BadInput,
    InUse,
    StaleEpoch,
    StoreFailed,
    UnknownAsk,
    UnknownSession,
    WrongState,
)
from dragoman.engine.info import SessionQuery
from dragoman.engine.ports import Batch, Entry, Store
from dragoman.store.old_extra import OLD


def dead(owner: str) -> bool:
    return False


def alive(owner: str) -> bool:
    return True


async def fill(store: Store, *sessions: Any) -> None:
    """Create sessions from (id, updated_at, other) tuples."""
    for session, at, other in sessions:
        await store.create(make_info(session, at, **other), "me")


async def ids(store: Store, **query: Any) -> list[str]:
    return [info.id for info in (await store.list(SessionQuery(**query))).sessions]


# --- sessions --------------------------------------------------------------------------------


async def test_a_created_session_reads_back_the_same(store: Store) -> None:
    info = make_info(
        "s1",
        title="Größe",
        query="why?",
        extra={"humanlayer": {"run_id": "r1"}, "deep": {"a": [1]}},
    )
    assert await store.create(info, "me") >= 1
    assert await store.info("s1") == info
    assert await store.owner("s1") == "me"
    assert list(await store.entries("s1")) == []


async def test_an_id_is_created_once(store: Store) -> None:
    await store.create(make_info("s1"), "me")
    with pytest.raises(WrongState):
        await store.create(make_info("s1", title="other"), "you")
    info = await store.info("s1")
    assert info is not None and info.title == ""
    assert await store.owner("s1") == "me"


async def test_what_is_not_there_is_none_or_empty(store: Store) -> None:
    assert await store.info("no") is None
    assert await store.owner("no") is None
    assert list(await store.entries("no")) == []
    assert list(await store.ancestry("no")) == []
    assert await store.ask("no") is None
    assert await store.delete("no") is False
    assert await store.find(run_id="no") is None
    assert list(await store.asks()) == []
    assert await store.newest_gseq() == 0
    with pytest.raises(UnknownSession):
        await store.append(make_batch("no", 1))
    with pytest.raises(UnknownSession):
        await store.take("no", "me", dead)
    await store.give("no", 1)


# --- appending -------------------------------------------------------------------------------


async def test_entries_come_back_in_order_with_their_place(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    other = await store.create(make_info("s2"), "me")
    assert await store.append(make_batch("s1", epoch, 1, 3)) == 1
    assert await store.append(make_batch("s2", other, 1, 2)) == 4
    assert await store.append(make_batch("s1", epoch, 4, 1)) == 6
    entries = list(await store.entries("s1"))
    assert [(e.seq, e.gseq, e.session) for e in entries] == [
        (1, 1, "s1"),
        (2, 2, "s1"),
        (3, 3, "s1"),
        (4, 6, "s1"),
    ]
    assert entries[0].at == 1001 and entries[0].kind == "noted"
    assert decode_body(entries[0].body) == Noted("info", "x")
    assert [e.seq for e in await store.entries("s1", after=2)] == [3, 4]
    assert [e.seq for e in await store.entries("s1", after=1, limit=2)] == [2, 3]
    assert list(await store.entries("s1", limit=0)) == []
    assert list(await store.entries("s1", after=4)) == []
    since = await store.entries_since(3, 10)
    assert [(e.gseq, e.session, e.seq) for e in since] == [(4, "s2", 1), (5, "s2", 2), (6, "s1", 4)]
    assert [e.gseq for e in await store.entries_since(0, 2)] == [1, 2]
    assert await store.newest_gseq() == 6
    with pytest.raises(BadInput):
        await store.entries("s1", limit=-1)
    with pytest.raises(BadInput):
        await store.entries_since(0, -1)


async def test_a_batch_replaces_the_row(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    batch = make_batch("s1", epoch, 1, 2, status="running", title="Named", updated_at=2000)
    await store.append(batch)
    assert await store.info("s1") == batch.info


async def test_a_batch_without_entries_changes_the_row_only(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    await store.append(Batch("s1", epoch, (), make_info("s1", title="new")))
    info = await store.info("s1")
    assert info is not None and info.title == "new"
    assert await store.newest_gseq() == 0
    assert await store.append(make_batch("s1", epoch, 1, 1)) == 1


@pytest.mark.parametrize("seqs", [(2,), (0,), (1, 3), (1, 1), (2, 1)])
async def test_a_gap_in_the_numbers_is_refused_whole(store: Store, seqs: tuple[int, ...]) -> None:
    epoch = await store.create(make_info("s1"), "me")
    body = encode_body(Noted("info", "x"))
    entries = [Entry(seq, 1, "noted", body) for seq in seqs]
    with pytest.raises(StoreFailed):
        await store.append(Batch("s1", epoch, entries, make_info("s1", title="no")))
    assert list(await store.entries("s1")) == []
    info = await store.info("s1")
    assert info is not None and info.title == ""
    assert await store.append(make_batch("s1", epoch)) == 1


async def test_a_row_of_another_session_is_refused(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    with pytest.raises(BadInput):
        await store.append(Batch("s1", epoch, make_entries(1, 1), make_info("s2")))
    assert list(await store.entries("s1")) == []


async def test_one_append_is_one_transaction(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    before = store.commits
    for step in range(5):
        await store.append(make_batch("s1", epoch, 1 + 20 * step, 20))
    assert store.commits - before == 5


async def test_a_batch_may_be_posted_without_a_task(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    tasks = asyncio.all_tasks()
    told: list[Any] = []
    posted = [store.post(make_batch("s1", epoch, 1 + 2 * n, 2)) for n in range(3)]
    for future in posted:
        future.add_done_callback(lambda done: told.append(done.result()))
    assert asyncio.all_tasks() == tasks
    assert await asyncio.gather(*posted) == [1, 3, 5]
    await asyncio.sleep(0)  # newer Pythons do not wait for what is done: let the callbacks run
    assert told == [1, 3, 5]
    assert len(await store.entries("s1")) == 6


async def test_what_is_posted_in_vain_says_so_through_its_future(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    stale, unknown = store.post(make_batch("s1", epoch - 1)), store.post(make_batch("no", 1))
    with pytest.raises(StaleEpoch):
        await stale
    with pytest.raises(UnknownSession):
        await unknown
    given_up = store.post(make_batch("s1", epoch))
    given_up.cancel()
    assert await store.append(make_batch("s1", epoch, 2)) == 2  # what was posted is stored
    await store.close()
    late = store.post(make_batch("s1", epoch, 3))
    with pytest.raises(StoreFailed):
        await late


# --- writers ---------------------------------------------------------------------------------


async def test_taking_over_shuts_the_former_writer_out(store: Store) -> None:
    old = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", old, 1, 2))
    new = await store.take("s1", "you", dead)
    assert new > old
    assert await store.owner("s1") == "you"
    with pytest.raises(StaleEpoch):
        await store.append(make_batch("s1", old, 3, 2, title="late"))
    assert [e.seq for e in await store.entries("s1")] == [1, 2]
    info = await store.info("s1")
    assert info is not None and info.title == ""
    await store.append(make_batch("s1", new, 3, 1))
    assert [e.seq for e in await store.entries("s1")] == [1, 2, 3]


async def test_a_live_owner_keeps_its_session(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    asked: list[str] = []

    def is_alive(owner: str) -> bool:
        asked.append(owner)
        return True

    with pytest.raises(InUse) as caught:
        await store.take("s1", "you", is_alive)
    assert caught.value.data["owner"] == "me"
    assert asked == ["me"]
    await store.append(make_batch("s1", epoch))


async def test_an_owner_may_take_its_own_session_again(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    assert await store.take("s1", "me", alive) > epoch


async def test_what_was_given_back_is_free_and_closed_to_the_giver(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    await store.give("s1", epoch)
    assert await store.owner("s1") is None
    with pytest.raises(StaleEpoch):
        await store.append(make_batch("s1", epoch))
    assert await store.take("s1", "you", alive) > epoch
    await store.give("s1", epoch)  # an old epoch gives nothing away
    assert await store.owner("s1") == "you"


# --- approvals -------------------------------------------------------------------------------


async def test_an_approval_is_kept_until_it_is_answered(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    ask = make_ask("a1", "s1")
    await store.append(make_batch("s1", epoch, asked=[ask]))
    row = await store.ask("a1")
    assert row is not None and (row.ask, row.settled, row.settled_at) == (ask, None, None)
    assert [r.ask.id for r in await store.asks()] == ["a1"]
    answer = make_answer("a1")
    await store.append(make_batch("s1", epoch, 2, settled=[answer]))
    row = await store.ask("a1")
    assert row is not None and (row.settled, row.settled_at) == (answer, 1002)
    assert list(await store.asks()) == []
    assert [r.ask.id for r in await store.asks(pending=False)] == ["a1"]


async def test_the_first_answer_wins(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, asked=[make_ask("a1", "s1")]))
    await store.append(make_batch("s1", epoch, 2, settled=[make_answer("a1", "deny", "bob")]))
    with pytest.raises(AlreadySettled) as caught:
        await store.append(
            make_batch("s1", epoch, 3, title="late", settled=[make_answer("a1", "allow")])
        )
    assert caught.value.data["verdict"] == "deny"
    assert caught.value.data["by"] == Who("acp", name="bob")
    assert [e.seq for e in await store.entries("s1")] == [1, 2]
    info = await store.info("s1")
    assert info is not None and info.title == ""
    row = await store.ask("a1")
    assert row is not None and row.settled is not None and row.settled.verdict == "deny"


async def test_only_one_of_two_answers_at_once_is_taken(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    await store.append(make_batch("s1", epoch, asked=[make_ask("a1", "s1")]))
    results = await asyncio.gather(
        *(store.append(make_batch("s1", epoch, 2, settled=[make_answer("a1")])) for _ in range(5)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, int) for result in results) == 1
    assert [e.seq for e in await store.entries("s1")] == [1, 2]


async def test_an_answer_to_nothing_is_refused(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    other = await store.create(make_info("s2"), "me")
    await store.append(make_batch("s2", other, asked=[make_ask("a2", "s2")]))
    for ask_id in ("a1", "a2"):  # unknown, and of another session
        with pytest.raises(UnknownAsk):
            await store.append(make_batch("s1", epoch, settled=[make_answer(ask_id)]))
    assert list(await store.entries("s1")) == []


async def test_an_approval_may_be_asked_and_answered_in_one_batch(store: Store) -> None:
    epoch = await store.create(make_info("s1"), "me")
    ask = make_ask("a1", "s1")
    await store.append(make_batch("s1", epoch, asked=[ask], settled=[make_answer("a1")]))
    row = await store.ask("a1")
    assert row is not None and row.settled is not None
    with pytest.raises(WrongState):
        await store.append(make_batch("s1", epoch, 2, asked=[ask]))
    with pytest.raises(BadInput):
        await store.append(make_batch("s1", epoch, 2, asked=[make_ask("a3", "elsewhere")]))
    assert [e.seq for e in await store.entries("s1")] == [1]


async def test_approvals_are_listed_by_time_and_session(store: Store) -> None:
    for session, asks in (("s1", [("a3", 30), ("a1", 10)]), ("s2", [("a2", 20)])):
        epoch = await store.create(make_info(session), "me")
        asked = [make_ask(ask_id, session, at) for ask_id, at in asks]
        await store.append(make_batch(session, epoch, asked=asked))
    assert [r.ask.id for r in await store.asks()] == ["a1", "a2", "a3"]
    assert [r.ask.id for r in await store.asks("s1")] == ["a1", "a3"]
    assert [r.ask.id for r in await store.asks("s2", pending=False)] == ["a2"]
    assert list(await store.asks("none")) == []


# --- deleting, families ----------------------------------------------------------------------


async def test_deleting_takes_everything_of_the_session(store: Store) -> None:
    first = await store.create(make_info("s1"), "me")
    second = await store.create(make_info("s2"), "me")
    await store.append(make_batch("s2", second, 1, 2, asked=[make_ask("a2", "s2")]))
    await store.append(make_batch("s1", first, 1, 3, asked=[make_ask("a1", "s1")]))
    assert await store.delete("s1") is True
    assert await store.info("s1") is None
    assert list(await store.entries("s1")) == []
    assert [r.ask.id for r in await store.asks(pending=False)] == ["a2"]
    assert [e.session for e in await store.entries_since(0, 10)] == ["s2", "s2"]
    assert await store.newest_gseq() == 5
    with pytest.raises(UnknownSession):
        await store.append(make_batch("s1", first, 4))
    assert await store.append(make_batch("s2", second, 3)) == 6  # numbers are never used twice
    again = await store.create(make_info("s1"), "me")
    assert await store.append(make_batch("s1", again)) == 7


async def test_ancestry_is_oldest_first(store: Store) -> None:
    await fill(
        store, ("a", 1, {}), ("b", 2, {"parent": "a"}), ("c", 3, {"parent": "b"}), ("x", 4, {})
    )
    assert [i.id for i in await store.ancestry("c")] == ["a", "b", "c"]
    assert [i.id for i in await store.ancestry("a")] == ["a"]
    await store.delete("a")
    assert [i.id for i in await store.ancestry("c")] == ["b", "c"]


async def test_ancestry_of_a_ring_ends(store: Store) -> None:
    await fill(store, ("a", 1, {"parent": "b"}), ("b", 2, {"parent": "a"}))
    assert [i.id for i in await store.ancestry("a")] == ["b", "a"]


async def test_leaves_are_nobodys_parent(store: Store) -> None:
    await fill(
        store, ("a", 1, {}), ("b", 2, {"parent": "a"}), ("c", 3, {"parent": "b"}), ("x", 4, {})
    )
    assert await ids(store, leaves=True) == ["x", "c"]
    await store.delete("c")
    assert await ids(store, leaves=True) == ["x", "b"]
    await fill(store, ("d", 5, {"parent": "gone"}), ("gone", 6, {}))
    assert await ids(store, leaves=True) == ["d", "x", "b"]
    epoch = await store.take("x", "me", alive)
    await store.append(make_batch("x", epoch, updated_at=7, parent="b"))
    assert await ids(store, leaves=True) == ["x", "d"]
    assert await ids(store, parent="b") == ["x"]


# --- lists -----------------------------------------------------------------------------------


async def test_the_newest_activity_is_first(store: Store) -> None:
    await fill(store, ("a", 10, {}), ("b", 30, {}), ("c", 20, {}), ("d", 20, {}))
    assert await ids(store) == ["b", "d", "c", "a"]
    epoch = await store.take("a", "me", alive)
    await store.append(make_batch("a", epoch, updated_at=40))
    assert await ids(store) == ["a", "b", "d", "c"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "hgfedcba"),
        ({"cwd": "/p"}, "ca"),
        ({"agent": "coder"}, "b"),
        ({"parent": "a"}, "ed"),
        ({"status": ("running",)}, "fe"),
        ({"status": ("running", "failed")}, "gfe"),
        ({"status": ("running", "running", "nothing")}, "fe"),
        ({"status": ("running", "idle"), "cwd": "/p"}, "ca"),
        ({"status": ("running", "idle"), "limit": 3}, "hfe"),
        ({"archived": True}, "hg"),
        ({"archived": False}, "fedcba"),
        ({"origin": "zot"}, "db"),
        ({"text": "fix PARSER"}, "c"),
        ({"text": "größe"}, "d"),
        ({"text": "100%"}, "e"),
        ({"text": "100_"}, ""),
        ({"text": "parser"}, "gc"),
        ({"leaves": True}, "hgfedcb"),
        ({"extra": {"humanlayer": {"run_id": "r1"}}}, "f"),
        ({"extra": {"correspondent": {"key": "k"}}}, "hf"),
        ({"extra": {"team": "red"}}, "g"),
        ({"extra": {"team": {"n": 1}}}, "h"),
        ({"extra": {"level": 3, "correspondent": {"key": "k"}}}, "f"),
        ({"extra": {"humanlayer": {"run_id": 5}}}, "b"),
        ({"extra": {"missing": None}}, ""),
        ({"status": ("failed", "idle"), "extra": {"team": "red"}}, "g"),
        ({"archived": True, "status": ("failed",), "leaves": True, "agent": "main"}, "g"),
        ({"cwd": "/p", "text": "x'; DROP TABLE sessions"}, ""),
    ],
)
async def test_filters(store: Store, query: dict[str, Any], expected: str) -> None:
    await fill(
        store,
        ("a", 1, {"cwd": "/p"}),
        ("b", 2, {"agent": "coder", "origin": "zot", "extra": {"humanlayer": {"run_id": 5}}}),
        ("c", 3, {"cwd": "/p", "title": "Fix it", "query": "the Parser is broken"}),
        ("d", 4, {"parent": "a", "origin": "zot", "title": "GRÖSSE", "query": "Die GRÖßE"}),
        ("e", 5, {"parent": "a", "status": "running", "title": "is 100% done"}),
        (
            "f",
            6,
            {
                "status": "running",
                "extra": {
                    "humanlayer": {"run_id": "r1"},
                    "correspondent": {"key": "k"},
                    "level": 3,
                },
            },
        ),
        (
            "g",
            7,
            {"archived": True, "status": "failed", "query": "parser", "extra": {"team": "red"}},
        ),
        ("h", 8, {"archived": True, "extra": {"correspondent": {"key": "k"}, "team": {"n": 1}}}),
    )
    assert "".join(await ids(store, **query)) == expected


@pytest.mark.parametrize("query", [{}, {"status": ("idle", "running")}, {"extra": {"odd": 1}}])
async def test_paging_by_cursor_visits_each_session_once(
    store: Store, query: dict[str, Any]
) -> None:
    for number in range(25):
        status = "running" if number % 3 == 0 else "idle"
        await store.create(
            make_info(f"s{number:02}", 100 + number // 4, status=status, extra={"odd": 1}), "me"
        )
    seen: list[str] = []
    cursor = ""
    for _ in range(20):
        page = await store.list(SessionQuery(limit=4, cursor=cursor, **query))
        assert len(page.sessions) <= 4
        seen += [info.id for info in page.sessions]
        cursor = page.cursor
        if not cursor:
            break
    assert seen == [f"s{number:02}" for number in reversed(range(25))]


async def test_activity_during_paging_repeats_and_loses_nothing_else(store: Store) -> None:
    await fill(store, *((f"s{n}", n, {}) for n in range(6)))
    first = await store.list(SessionQuery(limit=3))
    epoch = await store.take("s0", "me", alive)
    await store.append(make_batch("s0", epoch, updated_at=100))
    rest = await store.list(SessionQuery(limit=3, cursor=first.cursor))
    assert [i.id for i in (*first.sessions, *rest.sessions)] == ["s5", "s4", "s3", "s2", "s1"]


@pytest.mark.parametrize("query", [{}, {"extra": {"odd": 1}}, {"status": ("idle", "failed")}])
async def test_paging_by_offset_tells_the_total(store: Store, query: dict[str, Any]) -> None:
    await fill(store, *((f"s{n}", n, {"extra": {"odd": 1}}) for n in range(7)))
    page = await store.list(SessionQuery(limit=3, offset=3, **query))
    assert ([i.id for i in page.sessions], page.total) == (["s3", "s2", "s1"], 7)
    assert page.cursor
    page = await store.list(SessionQuery(limit=3, offset=6, **query))
    assert ([i.id for i in page.sessions], page.total, page.cursor) == (["s0"], 7, "")
    page = await store.list(SessionQuery(limit=3, offset=9, **query))
    assert (page.sessions, page.total, page.cursor) == ((), 7, "")
    whole = await store.list(SessionQuery(limit=7, **query))
    assert (len(whole.sessions), whole.total, whole.cursor) == (7, 7, "")


@pytest.mark.parametrize(
    "cursor", ["x", "????", "YQ==", "eCx5", "ü", "OTk5OTk5OTk5OTk5OTk5OTk5OTksYQ=="]
)
async def test_a_made_up_cursor_is_bad_input(store: Store, cursor: str) -> None:
    with pytest.raises(BadInput):
        await store.list(SessionQuery(cursor=cursor))


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": -1},
        {"offset": -1},
        {"text": "a " * 501},
        {"status": ("idle",) * 65},
        {"extra": {str(n): n for n in range(65)}},
    ],
)
async def test_bad_bounds_are_bad_input(store: Store, query: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        await store.list(SessionQuery(**query))


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 10**12, "offset": 10**12},
        {"text": "q " * 500},
        {"text": "ü " * 500},
        {"status": tuple(str(n) for n in range(64))},
        {"extra": {str(n): str(n) for n in range(64)}},
    ],
)
async def test_wide_queries_are_answered(store: Store, query: dict[str, Any]) -> None:
    await store.create(make_info("s1"), "me")
    assert (await store.list(SessionQuery(**query))).sessions == ()


async def test_find_gives_the_session_created_last(store: Store) -> None:
    await fill(
        store,
        (
            "a",
            10,
            {"extra": {"humanlayer": {"run_id": "r"}, "correspondent": {"key": "k"}, "n": 1}},
        ),
        ("b", 20, {"extra": {"correspondent": {"key": "k"}, "n": 1}}),
        ("c", 20, {"extra": {"correspondent": {"key": "k"}, "n": 2}}),
    )
    epoch = await store.take("a", "me", alive)
    await store.append(
        make_batch(
            "a",
            epoch,
            updated_at=99,
            created_at=10,
            extra={"humanlayer": {"run_id": "r"}, "correspondent": {"key": "k"}, "n": 1},
        )
    )

    async def found(**extra: Any) -> str | None:
        info = await store.find(**extra)
        return info.id if info else None

    assert await found(humanlayer={"run_id": "r"}) == "a"
    assert await found(correspondent={"key": "k"}) == "c"
    assert await found(correspondent={"key": "k"}, n=1) == "b"
    assert await found(n=2) == "c"
    assert await found(correspondent={"key": "none"}) is None
    with pytest.raises(BadInput):
        await store.find()


# --- small values ----------------------------------------------------------------------------


async def test_small_values(store: Store) -> None:
    assert await store.get("tokens", "a") is None
    await store.put("tokens", "b", b"2")
    await store.put("tokens", "a", b"1")
    await store.put("other", "a", b"\x00\xff")
    await store.put("tokens", "a", b"11")
    assert await store.get("tokens", "a") == b"11"
    assert await store.get("other", "a") == b"\x00\xff"
    assert list(await store.pairs("tokens")) == [("a", b"11"), ("b", b"2")]
    await store.put("tokens", "a", None)
    await store.put("tokens", "never", None)
    await store.put("codes", "c", b"once")
    taken = await asyncio.gather(*(store.pop("codes", "c") for _ in range(8)))
    assert sorted(taken, key=bool) == [None] * 7 + [b"once"]
    assert await store.get("codes", "c") is None and await store.pop("codes", "c") is None
    assert await store.get("tokens", "a") is None
    assert list(await store.pairs("tokens")) == [("b", b"2")]
    assert list(await store.pairs("nothing")) == []


# --- together --------------------------------------------------------------------------------


async def test_many_sessions_at_once_stay_apart(store: Store) -> None:
    async def live(name: str) -> list[int]:
        epoch = await store.create(make_info(name), name)
        return [await store.append(make_batch(name, epoch, 1 + 3 * n, 3)) for n in range(10)]

    firsts = await asyncio.gather(*(live(f"s{n}") for n in range(32)))
    assert await store.newest_gseq() == 32 * 30
    every = await store.entries_since(0, 10_000)
    assert [e.gseq for e in every] == list(range(1, 32 * 30 + 1))
    for number, mine in enumerate(firsts):
        entries = await store.entries(f"s{number}")
        assert [e.seq for e in entries] == list(range(1, 31))
        assert [e.gseq for e in entries[::3]] == mine
        assert all(e.session == f"s{number}" for e in entries)


async def test_a_refused_batch_takes_no_other_with_it(store: Store) -> None:
    epochs = {f"s{n}": await store.create(make_info(f"s{n}"), "me") for n in range(20)}
    await store.take("s7", "you", dead)
    results = await asyncio.gather(
        *(store.append(make_batch(name, epoch, 1, 2)) for name, epoch in epochs.items()),
        return_exceptions=True,
    )
    assert isinstance(results[7], StaleEpoch)
    assert sum(isinstance(result, int) for result in results) == 19
    assert await store.newest_gseq() == 38
    assert list(await store.entries("s7")) == []
    assert len(await store.entries("s8")) == 2


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.create(make_info("s1"), "me")
    await store.close()
    await store.close()
    with pytest.raises(StoreFailed):
        await store.info("s1")
    with pytest.raises(StoreFailed):
        await store.put("a", "b", b"c")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
# What fields were called before traits is regrouped when it is read (test_old_extra.py).
NAME = TEXT.filter(lambda text: text not in OLD)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=st.lists(st.lists(TEXT, max_size=5), max_size=6), title=NAME, more=TEXT)
async def test_whatever_is_appended_is_read_back(
    store: Store, batches: list[list[str]], title: str, more: str
) -> None:
    name = f"s{await store.newest_gseq()}-{store.commits}"
    epoch = await store.create(make_info(name), "me")
    written: list[Entry] = []
    info = make_info(name)
    for texts in batches:
        info = make_info(
            name, title=title, query=more, extra={"correspondent": {"key": more}, title: more}
        )
        entries = [
            Entry(len(written) + n, n, "noted", encode_body(Noted("info", text)))
            for n, text in enumerate(texts, 1)
        ]
        first = await store.append(Batch(name, epoch, entries, info))
        assert (first > 0) == bool(entries)
        written += entries
    read = await store.entries(name)
    assert [(e.seq, e.at, e.kind, e.body) for e in read] == [
        (e.seq, e.at, e.kind, e.body) for e in written
    ]
    assert await store.info(name) == info
    gseqs = [e.gseq for e in read]
    assert gseqs == sorted(set(gseqs))
    if batches:
        found = await store.find(correspondent={"key": more})
        assert found is not None and found.extra["correspondent"]["key"] == more
