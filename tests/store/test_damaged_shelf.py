"""A small value that cannot be read, damaged or of a newer version, hides no other."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.engine.content import ToolCall
from dragoman.engine.events import Ask, Asked, Settled, storable
from dragoman.engine.faults import StoreFailed, UnknownRule
from dragoman.engine.host import OpenSpec
from dragoman.engine.ids import WallClock
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import Batch, Entry, Judgement, row_of
from dragoman.engine.ports.schedules import Job, When
from dragoman.engine.rules import Rules
from dragoman.engine.state import State
from dragoman.gateway import tokens
from dragoman.policy.budget import Budgets
from dragoman.schedules.timetable import JOBS, RUNS, Timetable
from dragoman.settings.profiles import Budget
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted

RUBBISH = [b"", b"\xff\xfe", b"{", b"null", b'{"id": 7}', b'"\xff"', b"[" * 3_000]


@pytest.mark.parametrize("data", RUBBISH)
def test_what_cannot_be_read_is_nothing(data: bytes) -> None:
    assert row_of(data, tokens.TokenRow) is None
    assert row_of(None, tokens.TokenRow) is None


@pytest.mark.parametrize("data", RUBBISH)
async def test_a_token_that_cannot_be_read_lets_nobody_in_and_can_be_revoked(data: bytes) -> None:
    shelf = MemoryStore()
    lost, text = await tokens.new_token(shelf, "lost")
    kept, other = await tokens.new_token(shelf, "kept")
    await shelf.put(tokens.TOKENS, lost.id, data)
    assert await tokens.find_token(shelf, text) is None
    assert await tokens.find_token(shelf, other) == kept
    found = {one.id: one.name for one in await tokens.list_tokens(shelf)}
    assert found == {lost.id: "(cannot be read)", kept.id: "kept"}
    assert await tokens.revoke_token(shelf, lost.id)
    assert await tokens.list_tokens(shelf) == [kept]


@pytest.mark.parametrize("data", RUBBISH)
async def test_a_code_that_cannot_be_read_is_wrong_and_goes(data: bytes) -> None:
    shelf = MemoryStore()
    lost = await tokens.new_code(shelf)
    ((key, _),) = await shelf.pairs(tokens.CODES)
    await shelf.put(tokens.CODES, key, data)
    assert not await tokens.is_code(shelf, lost)
    code = await tokens.new_code(shelf)
    assert len(await shelf.pairs(tokens.CODES)) == 1
    await shelf.put(tokens.CODES, key, data)
    assert not await tokens.use_code(shelf, lost) and await tokens.use_code(shelf, code)


async def test_a_code_lets_one_in_of_two_who_come_at_once() -> None:
    class Far(MemoryStore):
        """Answers when others have asked, too, as a database of two nodes."""

        async def get(self, space: str, key: str) -> bytes | None:
            found = await super().get(space, key)
            await asyncio.sleep(0)
            return found

    shelf = Far()
    code = await tokens.new_code(shelf)
    both = await asyncio.gather(*(tokens.use_code(shelf, code) for _ in range(2)))
    assert sorted(both) == [False, True]


@pytest.mark.parametrize("data", RUBBISH)
async def test_the_other_schedules_run(data: bytes) -> None:
    store = MemoryStore()
    door = memory_door(Scripted(["one", "two"]), store=store, mode="full")
    table = Timetable(door)
    lost = await table.add(Job("", "go", When(every_ms=60_000), ""))
    kept = await table.add(Job("", "go", When(every_ms=60_000), ""))
    await table.trigger(kept.id)
    await store.put(JOBS, lost.id, data)
    await store.put(RUNS, f"{kept.id}:000000001", data)
    again = Timetable(door)
    await again.load()
    assert [job.id for job in again.list()] == [kept.id]
    assert await again.runs(kept.id, 10) == []
    run = await again.trigger(kept.id)
    assert (run.number, run.status) == (2, "ok")
    # It may be of a newer version, which comes back.
    assert dict(await store.pairs(JOBS))[lost.id] == data
    await host_of(door).stop(0.0)


@pytest.mark.parametrize("data", RUBBISH)
async def test_a_rule_that_cannot_be_read_decides_nothing_and_can_be_withdrawn(
    data: bytes,
) -> None:
    store = MemoryStore()
    rules = Rules(store, WallClock())
    await store.put("rules", "rule_1", data)
    (found,) = await rules.all()
    assert found.id == "rule_1" and found.deny and "cannot be read" in found.words
    assert await rules.deny_any()  # it may: so each call is looked at
    call = ToolCall("c1", "bash", {"command": "ls"})
    with pytest.raises(StoreFailed, match="remembered answer rule_1 cannot be read") as told:
        await rules.about(call, Judgement("allow"), State("s1"))
    assert "approvals rules remove rule_1" in told.value.hint
    await rules.forget("s1")
    assert (await rules.remove("rule_1")).id == "rule_1"
    assert await rules.about(call, Judgement("allow"), State("s1")) == ()
    with pytest.raises(UnknownRule):
        await rules.remove("rule_1")


@pytest.mark.parametrize("data", RUBBISH)
async def test_a_count_that_cannot_be_read_costs_no_turn(data: bytes) -> None:
    store = MemoryStore()
    await store.put("budget", "a\nother", data)
    budget = Budgets(lambda alias: Budget(actions_per_hour=3), store, WallClock(), "one")
    await budget.afford("a", action=True)


@pytest.mark.parametrize("data", RUBBISH)
@pytest.mark.parametrize("column", ["ask", "settled"])
async def test_a_question_that_cannot_be_read_hides_no_other(
    tmp_path: Path, data: bytes, column: str
) -> None:
    path = tmp_path / "sessions.db"
    store = SqliteStore(path)
    info = SessionInfo("s1", "default", "/", "demo/demo", "supervised", "idle", 1, 1)
    epoch = await store.create(info, "me")
    asks = [Ask(f"ask_{n}", "s1", "question", "?", n) for n in range(3)]
    settled = [Settled(ask.id, "deny") for ask in asks] if column == "settled" else []
    bodies: list[Any] = [*map(Asked, asks), *settled]
    entries = [Entry(n, 1, "x", storable(body)[1]) for n, body in enumerate(bodies, 1)]
    await store.append(Batch("s1", epoch, entries, info, asks, settled))
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE asks SET {column} = ? WHERE id = 'ask_1'", (data,))
    connection.close()
    store = SqliteStore(path)
    found = await store.asks("s1", pending=column == "ask")
    assert [row.ask.id for row in found] == ["ask_0", "ask_2"]
    with pytest.raises(StoreFailed, match="Question ask_1 cannot be read"):
        await store.ask("ask_1")
    await store.close()


class Full(MemoryStore):
    """A store that takes nothing while its disk is full."""

    full = False

    async def put(self, space: str, key: str, value: bytes | None) -> None:
        if self.full:
            raise StoreFailed("The disk is full: nothing was saved.")
        await super().put(space, key, value)


async def test_a_schedule_that_could_not_be_removed_is_still_there() -> None:
    store = Full()
    door = memory_door(Scripted(["one"]), store=store, mode="full")
    table = Timetable(door)
    job = await table.add(Job("", "go", When(every_ms=60_000), ""))
    store.full = True
    with pytest.raises(StoreFailed):
        await table.remove(job.id)
    assert table.get(job.id) == job  # as after a start
    store.full = False
    await table.remove(job.id)
    assert not table.list() and not await store.pairs(JOBS)


async def test_a_session_of_another_version_is_deleted_beside_such_a_rule() -> None:
    store = MemoryStore()
    door = memory_door(Scripted(["one"]), store=store, mode="full")
    session = (await door.open(OpenSpec(cwd="/"))).id
    await store.put("rules", "rule_1", msgspec.json.encode({"id": "rule_1", "kind": "newer"}))
    assert await host_of(door).erase(session, None)


async def test_what_cannot_be_forgotten_with_a_session_is_told_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = memory_door(Scripted(["one"]), store=MemoryStore(), mode="full")
    host = host_of(door)
    session = (await door.open(OpenSpec(cwd="/"))).id
    told: list[str] = []
    host.on_trouble = lambda what, error, **data: told.append(what)

    async def broken(session_id: str) -> None:
        raise StoreFailed("Checkpoints cannot be kept.")

    monkeypatch.setattr(type(host.rules), "forget", staticmethod(broken))
    assert await host.erase(session, None)  # it is gone, and that is the answer
    assert told == ["what it had is still kept"]
