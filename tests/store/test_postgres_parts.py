"""The parts of the PostgreSQL store: what is told of a failure, what is written together."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import pytest
from tests.postgres import new_database
from tests.store.making import make_batch, make_info

from dragoman.engine.faults import BadInput, Fault, InUse, Refused, StoreFailed, WrongState
from dragoman.engine.info import SessionQuery
from dragoman.store.postgres import changes, is_address, link, lists, writer
from dragoman.store.postgres import search as words
from dragoman.store.postgres.address import place_of
from dragoman.store.postgres.changes import Node
from dragoman.store.postgres.link import PostgresLink, is_lost
from dragoman.store.postgres.store import PostgresStore
from dragoman.testing.postgres import Server


@pytest.fixture
async def base(postgres: Server) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(await new_database(postgres))
    yield store
    await store.close()


async def begun(store: PostgresStore, session: str = "s1") -> int:
    """A session that the writer knows, so that its next batches go together."""
    epoch = await store.create(make_info(session), "me")
    await store.append(make_batch(session, epoch, 1))
    return epoch


# --- what is told of a failure ---


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (asyncpg.DataError("too wide"), BadInput, "cannot be stored"),
        (UnicodeEncodeError("utf-8", "x", 0, 1, "odd"), BadInput, "cannot be stored"),
        (OSError("refused"), StoreFailed, "cannot be reached"),
        (
            asyncpg.InternalClientError(
                "cannot switch to state 12; another operation (2) is in progress"
            ),
            StoreFailed,
            "cannot be reached: the connection was closed",
        ),
        (TimeoutError(), StoreFailed, "cannot be reached: it did not answer in time"),
        (asyncpg.InvalidPasswordError("no"), StoreFailed, "does not let us in"),
        (asyncpg.InsufficientPrivilegeError("no"), StoreFailed, "does not allow this"),
        (asyncpg.UndefinedTableError("no"), StoreFailed, "failed: no"),
        (StoreFailed("ours"), StoreFailed, "ours"),
    ],
)
async def test_a_failure_is_told_in_our_words(
    error: Exception, kind: type[Fault], said: str
) -> None:
    fault = PostgresLink("postgresql://ann:hush@db/work").explain(error)
    assert type(fault) is kind and said in str(fault) and "hush" not in str(fault)


def test_only_what_may_come_back_is_tried_again() -> None:
    assert is_lost(ConnectionResetError()) and is_lost(asyncpg.AdminShutdownError("bye"))
    assert is_lost(asyncpg.InterfaceError("connection is closed"))
    assert not is_lost(asyncpg.InterfaceError("another operation is in progress"))
    assert not is_lost(asyncpg.UndefinedTableError("x"))


def test_an_address_that_is_none_is_told() -> None:
    assert is_address("postgres://x") and is_address("postgresql://x")
    assert not is_address("/var/lib/sessions.db")
    with pytest.raises(BadInput, match="not valid"):
        place_of("postgresql://host:port/name")


def test_without_the_driver_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "asyncpg", None)
    with pytest.raises(BadInput, match="needs a package"):
        link.driver()


async def test_reading_says_what_is_wrong_with_the_question(base: PostgresStore) -> None:
    with pytest.raises(StoreFailed, match="failed"):
        await base.fetch("SELECT nothing FROM nowhere")
    assert base.version() != base.version()  # nobody tells what other machines wrote
    await base.put("b", "k", b"1")
    await base.put("a", "k", b"1")
    assert await base.spaces() == ["a", "b"]


# --- what goes together ---


def posted(store: PostgresStore, *batches: Any) -> "list[asyncio.Future[int]]":
    return [store.post(batch) for batch in batches]


async def outcome(futures: "list[asyncio.Future[int]]") -> list[Any]:
    found = await asyncio.gather(*futures, return_exceptions=True)
    return [type(one).__name__ if isinstance(one, Exception) else one for one in found]


async def test_a_batch_that_does_not_follow_is_refused_and_the_others_are_written(
    base: PostgresStore,
) -> None:
    epoch = await begun(base)
    gap = make_batch("s1", epoch, 4)
    torn = make_batch("s1", epoch, 3, 2)
    torn = msgspec.structs.replace(torn, entries=[torn.entries[0], torn.entries[0]])
    wrong = make_batch("s1", epoch + 1, 3)
    bare = msgspec.structs.replace(make_batch("s1", epoch, 3, title="new"), entries=())
    after = make_batch("s1", epoch, 3)
    found = await outcome(posted(base, bare, make_batch("s1", epoch, 2), gap, torn, wrong, after))
    assert [isinstance(one, int) for one in found] == [True, True, False, False, False, True]
    assert found[4] == "StaleEpoch"
    assert [entry.seq for entry in await base.entries("s1")] == [1, 2, 3]


async def test_a_session_that_was_taken_leaves_the_numbers_of_the_others_right(
    base: PostgresStore,
) -> None:
    epochs = {name: await begun(base, name) for name in ("s1", "s2", "s3")}
    await base.fetch("UPDATE sessions SET epoch = epoch + 1 WHERE id = 's2' RETURNING num")
    batches = [make_batch(name, epoch, 2, 3) for name, epoch in epochs.items()]
    batches.append(make_batch("s3", epochs["s3"], 5))
    found = await outcome(posted(base, *batches))
    assert found[1] == "StaleEpoch"
    for name, first, last in (("s1", found[0], found[0] + 2), ("s3", found[2], found[3])):
        kept = [entry.gseq for entry in (await base.entries(name))[1:]]
        assert kept == [*range(first, last + 1)]
    every = [entry.gseq for name in epochs for entry in await base.entries(name)]
    assert len(set(every)) == len(every) == 10


async def test_writers_of_the_same_sessions_do_not_wait_for_each_other_for_ever(
    postgres: Server,
) -> None:
    url = await new_database(postgres)
    stores = [await PostgresStore.open(url) for _ in range(3)]
    names = [f"s{n}" for n in range(6)]
    epochs = {name: await begun(stores[0], name) for name in names}
    for store in stores[1:]:
        store.writer._known.update(stores[0].writer._known)
    for head in range(2, 30):
        turned = [names[n:] + names[:n] for n in (0, 2, 4)]
        rounds = [
            posted(store, *(make_batch(name, epochs[name], head) for name in order))
            for store, order in zip(stores, turned, strict=True)
        ]
        async with asyncio.timeout(60):
            found = [await outcome(futures) for futures in rounds]
        for name in names:  # each is written once, by one of them
            places = [one[order.index(name)] for one, order in zip(found, turned, strict=True)]
            assert sum(isinstance(place, int) for place in places) == 1
        for store in stores:
            store.writer._known.update({n: k for s in stores for n, k in s.writer._known.items()})
    for name in names:
        assert [entry.seq for entry in await stores[0].entries(name)] == [*range(1, 30)]
    for store in stores:
        await store.close()


async def test_a_patient_batch_waits_for_others_but_not_for_ever(base: PostgresStore) -> None:
    epoch = await begun(base)
    before = base.commits
    patient = base.post(make_batch("s1", epoch, 2), patient=True)
    other = base.post(make_batch("s1", epoch, 3), patient=True)
    assert await asyncio.wait_for(patient, 60) < await asyncio.wait_for(other, 60)
    assert base.commits == before + 1
    waiting = base.post(make_batch("s1", epoch, 4), patient=True)
    await base.writer.flushed()
    assert waiting.done()
    await base.writer.flushed()  # nothing waits: at once


async def test_only_so_much_waits_for_a_database(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await begun(base)
    monkeypatch.setattr(writer, "MOST", 2)
    futures = posted(base, *(make_batch("s1", epoch, n) for n in (2, 3, 4)))
    found = await outcome(futures)
    assert found[2] == "StoreFailed" and [type(one) for one in found[:2]] == [int, int]


async def test_little_is_remembered_of_many_sessions(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "KNOWN", 2)
    monkeypatch.setattr(changes, "MADE", 2)
    epochs = {name: await begun(base, name) for name in ("a", "b", "c", "d")}
    assert len(base.writer._known) <= 2 and len(changes._made) <= 2
    for name, epoch in epochs.items():
        assert await base.append(make_batch(name, epoch, 2)) > 0


async def test_words_are_taken_up_while_much_is_written(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LAG", 2)
    epoch = await base.create(make_info("s1"), "me")
    for n in range(1, 6):
        await base.append(make_batch("s1", epoch, n, text="word"))
    wording = base.writer._wording
    assert wording is not None
    await asyncio.wait_for(asyncio.shield(wording), 60)
    base.writer._take_up_words()  # nothing is new: it looks, and leaves it at that
    assert [one.id for one in await base.search("word", 10)] == []  # of a note nothing is found
    assert base.writer._worded == base.commits


async def test_a_writer_whose_reader_is_gone_goes_on(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*given: Any, **how: Any) -> None:
        raise StoreFailed("away")

    monkeypatch.setattr(words, "catch_up", gone)
    await base.writer._word()  # told by the next search
    epoch = await begun(base)
    assert await base.append(make_batch("s1", epoch, 2)) > 0


async def test_a_broken_way_that_a_reader_finds_is_made_anew(base: PostgresStore) -> None:
    epoch = await begun(base)
    stalls: list[str] = []
    base.writer.on_stall = stalls.append
    base.writer.doubt(ConnectionResetError("gone"))
    base.writer.doubt(ConnectionResetError("again"))  # known already
    assert await asyncio.wait_for(base.append(make_batch("s1", epoch, 2)), 60) > 0
    assert len(stalls) == 2 and "cannot be reached" in stalls[0] and stalls[1] == ""


async def test_a_server_that_has_said_its_last_word_costs_no_change(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between that word and the end of the connection the driver refuses all with an odd error."""
    epoch = await begun(base)
    write, dying = base.writer._write_group, base.writer._connection

    async def refuse(connection: Any, jobs: list[Any]) -> None:
        if connection is dying:
            raise asyncpg.InternalClientError("cannot switch to state 12; another operation (2)")
        await write(connection, jobs)

    monkeypatch.setattr(base.writer, "_write_group", refuse)
    assert await asyncio.wait_for(base.append(make_batch("s1", epoch, 2)), 60) > 0
    assert base.writer._connection is not dying and base.stalled == ""


async def test_a_change_that_costs_every_connection_holds_up_no_other(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs = {name: await begun(base, name) for name in ("a", "b")}
    write = base.writer._write_one

    async def break_off(connection: Any, jobs: list[Any]) -> None:
        raise ConnectionResetError("gone")

    async def odd(connection: Any, job: Any) -> None:
        if job.change.id == "a":
            raise ConnectionResetError("gone")
        await write(connection, job)

    monkeypatch.setattr(base.writer, "_write_group", break_off)
    monkeypatch.setattr(base.writer, "_write_one", odd)
    found = await asyncio.wait_for(
        asyncio.gather(
            *(base.append(make_batch(name, epoch, 2)) for name, epoch in epochs.items()),
            return_exceptions=True,
        ),
        30,
    )
    assert isinstance(found[0], StoreFailed) and isinstance(found[1], int)


async def test_what_cannot_be_written_with_others_is_tried_alone(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of the whole group: one by one, and only the bad one is refused."""
    epochs = {name: await begun(base, name) for name in ("a", "b")}
    group, failures = base.writer._write_group, [
        asyncpg.DeadlockDetectedError("deadlock"), asyncpg.DataError("odd"),
    ]  # fmt: skip

    async def fail(connection: Any, jobs: list[Any]) -> None:
        if failures:
            raise failures.pop(0)
        await group(connection, jobs)

    monkeypatch.setattr(base.writer, "_write_group", fail)
    found = await outcome(posted(base, *(make_batch(n, e, 2) for n, e in epochs.items())))
    assert [type(one) for one in found] == [int, int] and failures == []
    failures.append(asyncpg.DataError("odd"))
    assert [type(one) for one in await outcome(posted(base, make_batch("a", epochs["a"], 3)))] == [
        int
    ]
    assert [entry.seq for entry in await base.entries("a")] == [1, 2, 3]


@pytest.mark.parametrize(
    "odd",
    [{"at": 2**70}, {"at": "5"}, {"at": "1,2"}, {"body": "text"}, {"kind": "\udc80"}],
    ids=str,
)
async def test_what_is_no_number_text_or_bytes_is_refused_and_holds_up_no_other(
    base: PostgresStore, odd: dict[str, Any]
) -> None:
    epochs = {name: await begun(base, name) for name in ("a", "b", "c")}
    batches = [make_batch(name, epoch, 2) for name, epoch in epochs.items()]
    entry = msgspec.structs.replace(batches[1].entries[0], **odd)
    batches[1] = msgspec.structs.replace(batches[1], entries=[entry])
    found = await outcome(posted(base, *batches))
    assert found[1] == "BadInput" and [type(one) for one in (found[0], found[2])] == [int, int]
    counts = {name: len(await base.entries(name)) for name in epochs}
    assert counts == {"a": 2, "b": 1, "c": 2}
    assert await outcome(posted(base, batches[1])) == ["BadInput"]  # also alone
    assert await base.append(make_batch("b", epochs["b"], 2)) > 0


async def test_odd_texts_and_bytes_come_back_as_they_went(base: PostgresStore) -> None:
    """Written together, where many lists and all bytes are each one value."""
    texts = ['"', "\\", '\\"', "{}", "a,b", "", " ", "NULL", "\n\t", "é🦊", "'", "x\0", '{"a"}']
    bodies = [bytes(range(256)), b"", b"\0", b"{}", b"\\x00", *(b"x" * n for n in range(8))]
    epochs = {f"s{n}{text}": await begun(base, f"s{n}{text}") for n, text in enumerate(texts)}
    batches, before = [], base.commits
    for (name, epoch), text, body in zip(epochs.items(), texts, bodies, strict=True):
        for first, count in ((2, 1), (3, 3)):
            batch = make_batch(name, epoch, first, count)
            entries = [msgspec.structs.replace(e, kind=text, body=body) for e in batch.entries]
            batches.append(msgspec.structs.replace(batch, entries=entries))
    found = await outcome(posted(base, *batches))
    assert {type(one) for one in found} == {int} and base.commits > before
    for name, text, body in zip(epochs, texts, bodies, strict=True):
        kept = await base.entries(name)
        assert [entry.seq for entry in kept] == [1, 2, 3, 4, 5]
        assert {entry.body for entry in kept[1:]} == {body}
        assert kept[-1].kind == text
        assert (await base.info(name)) == batches[2 * [*epochs].index(name) + 1].info


async def test_indexes_that_cannot_be_brought_up_to_date_wait(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(base)
    monkeypatch.setattr(writer, "SETTLE", "SELECT nothing FROM nowhere WHERE $1::text[] IS NULL")
    await base.writer._settle(0)
    assert list(base.writer._hot) == ["s1"]  # still to be done


async def test_a_dead_connection_is_dropped() -> None:
    ended: list[str] = []

    class Dead:
        async def close(self, timeout: float) -> None:
            raise ConnectionResetError

        def terminate(self) -> None:
            ended.append("terminated")

    dead: Any = Dead()
    await writer.discard(dead)
    assert ended == ["terminated"]


# --- whose a session is ---


async def test_a_newer_version_and_another_node_keep_what_is_theirs(base: PostgresStore) -> None:
    epoch = await begun(base)
    await base.give("s1", epoch)
    base.node = Node("n1")
    epoch = await base.take("s1", "me", lambda owner: False)
    await base.give("s1", epoch)
    base.node = Node("n2")
    with pytest.raises(InUse, match="belongs to node n1"):
        await base.take("s1", "me", lambda owner: False)
    connection = base.writer._connection
    assert connection is not None
    await connection.execute("UPDATE sessions SET written_by = 99, pinned = false")
    with pytest.raises(InUse, match="newer version"):
        await base.take("s1", "me", lambda owner: False)
    base.taking = False
    with pytest.raises(InUse):
        await base.take("s1", "me", lambda owner: False)


def test_a_folder_that_all_nodes_see_pins_nothing() -> None:
    node = Node("n1", roots=("/shared/",))
    assert not node.pins("/shared") and not node.pins("/shared/a") and node.pins("/sharedx")
    assert not Node().pins("/anywhere")


async def test_a_front_opens_nothing(base: PostgresStore) -> None:
    base.front = True
    with pytest.raises(Refused, match="is a front"):
        await base.create(make_info("s1"), "me")


async def test_a_command_is_done_once(base: PostgresStore) -> None:
    epoch = await begun(base)
    batch = make_batch("s1", epoch, 2)
    with pytest.raises(WrongState, match="was done before"):
        await base.append(msgspec.structs.replace(batch, handled="cmd_unknown"))
    assert len(await base.entries("s1")) == 1


async def test_a_list_with_words_is_sifted_page_by_page(
    base: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "SIFT", 2)
    for number in range(7):
        title = "a needle" if number in (0, 5) else "hay"
        await base.create(make_info(f"s{number}", 1000 + number, title=title), "me")
    found = await base.list(SessionQuery(text="needle"))
    assert [one.id for one in found.sessions] == ["s5", "s0"]


async def test_a_damaged_row_is_left_out_and_told(base: PostgresStore) -> None:
    await begun(base)
    await begun(base, "s2")
    connection = base.writer._connection
    assert connection is not None
    await connection.execute("UPDATE sessions SET info = 'torn' WHERE id = 's1'")
    page = await base.list(SessionQuery())
    assert [one.id for one in page.sessions] == ["s2"] and page.damaged == 1
