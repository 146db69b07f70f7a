"""A store copied into another: whole, again without doubling, and never over something else."""

from pathlib import Path

import pytest
from tests.store.making import make_answer, make_ask, make_batch, make_info

from dragoman.engine.events import Asked, Noted, encode_body
from dragoman.engine.faults import BadInput, StoreFailed
from dragoman.engine.info import SessionQuery
from dragoman.engine.ports import Batch, Entry, Store
from dragoman.store import copying
from dragoman.store.copying import Copied, copy, open_any
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore


async def filled() -> MemoryStore:
    """Two sessions whose events alternate, a question that was answered, one open, some values."""
    store = MemoryStore()
    epochs = {name: await store.create(make_info(name), "me") for name in ("s1", "s2")}
    for first in (1, 2, 3):
        for name, epoch in epochs.items():
            await store.append(make_batch(name, epoch, first, text=f"{name}-{first}"))
    ask, other = make_ask("a1", "s1"), make_ask("a2", "s1", 1001)
    settled = make_answer("a1")
    entries = [
        Entry(4, 1004, "asked", encode_body(Asked(ask))),
        Entry(5, 1005, "asked", encode_body(Asked(other))),
        Entry(6, 1006, "settled", encode_body(settled)),
        Entry(7, 1007, "noted", encode_body(Noted("info", "end"))),
    ]
    info = make_info("s1", 1007, last_seq=7, title="named")
    await store.append(Batch("s1", epochs["s1"], entries, info, [ask, other], [settled]))
    await store.put("rules", "r1", b"one")
    await store.put("rules", "r2", b"two")
    await store.put("drafts", "s1", b"three")
    await store.give("s1", epochs["s1"])
    return store


async def same(one: Store, other: Store) -> None:
    query = SessionQuery()
    assert (await one.list(query)).sessions == (await other.list(query)).sessions
    for name in ("s1", "s2"):
        ours, theirs = await one.entries(name), await other.entries(name)
        assert [(e.seq, e.at, e.kind, e.body) for e in ours] == [
            (e.seq, e.at, e.kind, e.body) for e in theirs
        ]
    mine, its = await one.asks(None, pending=False), await other.asks(None, pending=False)
    assert [(row.ask, row.settled) for row in mine] == [(row.ask, row.settled) for row in its]
    for space in await one.spaces():
        assert await one.pairs(space) == await other.pairs(space)


async def test_few_rows_are_at_hand_and_what_is_deleted_meanwhile_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "ROWS", 3)
    monkeypatch.setattr(copying, "PAGE", 7)
    source, target = MemoryStore(), MemoryStore()
    names = [f"s{n}" for n in range(10)]
    epochs = {name: await source.create(make_info(name), "me") for name in names}
    for first in (1, 2, 3):  # in turn: the worst for what remembers the last
        for name, epoch in epochs.items():
            await source.append(make_batch(name, epoch, first, text=f"{name}-{first}"))
    work = copying._Copy(source, target, lambda so_far: None)
    most: list[int] = []
    append = target.append

    async def watched(batch: Batch) -> int:
        most.append(len(work._infos))
        if batch.session == "s3" and "s4" in epochs:
            del epochs["s4"]
            await source.delete("s4")
        return await append(batch)

    monkeypatch.setattr(target, "append", watched)
    await work.events(0)
    await work.rows()
    assert max(most) == 3 and len(most) > 20
    for name in epochs:
        assert [e.body for e in await target.entries(name)] == [
            e.body for e in await source.entries(name)
        ]


async def test_a_copy_is_the_same_and_made_once(tmp_path: Path) -> None:
    source = await filled()
    target = SqliteStore(tmp_path / "copy.db")
    told: list[int] = []
    done = await copy(source, target, lambda so_far: told.append(so_far.events))
    assert done == Copied(sessions=2, events=10, values=3, behind=0)
    assert told and told[-1] == 10
    await same(source, target)
    again = await copy(source, target, lambda so_far: None)
    assert again.events == 0  # what is there is not added once more
    await same(source, target)
    await target.close()


async def test_what_is_written_meanwhile_comes_with_the_next_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "PAGE", 2)
    source, target = await filled(), MemoryStore()
    epoch = await source.take("s2", "me", lambda owner: False)
    seqs = iter(range(4, 7))

    def write(so_far: Copied) -> None:
        seq = next(seqs, None)
        if seq is not None:
            source._append(make_batch("s2", epoch, seq, text="late"))

    done = await copy(source, target, write)
    assert done.behind == 0
    await same(source, target)
    assert len(await target.entries("s2")) == 6


async def test_a_session_deleted_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = await filled(), MemoryStore()
    info, asked = source.info, []

    async def gone(session: str) -> object:
        asked.append(session)
        return None if session == "s2" else await info(session)

    monkeypatch.setattr(source, "info", gone)
    done = await copy(source, target, lambda so_far: None)
    assert done.sessions == 1 and asked.count("s2") >= 1
    assert [one.id for one in (await target.list(SessionQuery())).sessions] == ["s1"]


async def test_another_history_is_not_written_over() -> None:
    source, target = await filled(), MemoryStore()
    epoch = await target.create(make_info("s2"), "me")
    await target.append(make_batch("s2", epoch, 1, text="something else"))
    await target.give("s2", epoch)
    with pytest.raises(StoreFailed):
        await copy(source, target, lambda so_far: None)
    assert len(await target.entries("s2")) == 1


async def test_only_what_is_there_is_opened(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with pytest.raises(BadInput, match="does not exist"):
        await open_any(str(place))
    made = await open_any(str(place), new=True)
    assert isinstance(made, SqliteStore)
    await made.close()
    again = await open_any(str(place))
    assert (await again.list(SessionQuery())).sessions == ()
    await again.close()


async def test_a_session_that_somebody_has_in_the_target_holds_up_no_other() -> None:
    source, target = await filled(), MemoryStore()
    await copy(source, target)
    epoch = await target.take("s2", "somebody", lambda owner: False)
    again = await copy(source, target)
    assert (again.busy, again.events) == (0, 0)  # nothing is new, so nothing is missing
    for name in ("s1", "s2"):
        mine = await source.take(name, "me", lambda owner: False)
        head = len(await source.entries(name))
        await source.append(make_batch(name, mine, head + 1, text="new"))
    again = await copy(source, target)
    assert (again.busy, again.events) == (1, 1)
    await target.give("s2", epoch)
    again = await copy(source, target)
    assert (again.busy, again.events) == (0, 1)


async def test_a_copy_that_breaks_off_keeps_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = await filled(), MemoryStore()

    async def broken() -> list[str]:
        raise StoreFailed("gone")

    monkeypatch.setattr(source, "spaces", broken)
    with pytest.raises(StoreFailed):
        await copy(source, target)
    assert [await target.owner(name) for name in ("s1", "s2")] == [None, None]
