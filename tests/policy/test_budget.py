"""Budgets stop work: by money and by actions, per hour and per day, across restarts."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text, Usage, text_of
from dragoman.engine.faults import Refused, StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import ModelInfo
from dragoman.host.compose import Composed, compose
from dragoman.policy.budget import Budgets
from dragoman.settings.profiles import Budget
from dragoman.store.memory import MemoryStore
from dragoman.testing.script import Scripted, call, turn

HOUR = 3_600_000


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000 * HOUR

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


def made(store: Any, clock: Clock, owner: str = "one", **limits: Any) -> Budgets:
    return Budgets(lambda alias: Budget(**limits), store, clock, owner)


async def test_actions_come_back_when_the_hour_is_over() -> None:
    clock = Clock()
    budget = made(MemoryStore(), clock, actions_per_hour=3, actions_per_day=5)
    for _ in range(3):
        await budget.afford("a", action=True)
    with pytest.raises(Refused, match="3 of 3 actions in the last hour"):
        await budget.afford("a", action=True)
    await budget.afford("a", action=False)  # looking and thinking are no actions
    await budget.afford("b", action=True)  # another agent has its own
    clock.now += HOUR + 60_000
    for _ in range(2):
        await budget.afford("a", action=True)
    with pytest.raises(Refused, match="5 of 5 actions in the last day"):
        await budget.afford("a", action=True)
    clock.now += 23 * HOUR
    await budget.afford("a", action=True)


async def test_money() -> None:
    clock = Clock()
    budget = made(MemoryStore(), clock, cost_per_hour=1.0, cost_per_day=1.5)
    budget.spent("a", 0.99)
    await budget.afford("a", action=False)
    budget.spent("a", 0.02)
    with pytest.raises(Refused, match="1.01 of 1.00 USD in the last hour"):
        await budget.afford("a", action=True)
    clock.now += 2 * HOUR
    budget.spent("a", 0.6)
    with pytest.raises(Refused, match="1.61 of 1.50 USD in the last day"):
        await budget.afford("a", action=False)


async def test_what_was_used_survives_and_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.policy.budget._FRESH", 0.0)
    store, clock = MemoryStore(), Clock()
    first = made(store, clock, actions_per_day=3)
    await first.afford("a", action=True)
    await first.afford("a", action=True)
    first.spent("a", 5.0)
    await first.flush()
    second = made(store, clock, "two", actions_per_day=3)  # another process, or after a restart
    await second.afford("a", action=True)
    assert second.used("a")["cost_per_day"] == 5.0
    for budget in (first, second):
        with pytest.raises(Refused):
            await budget.afford("a", action=True)
    clock.now += 25 * HOUR
    await made(store, clock, "three", actions_per_day=3).afford("a", action=True)
    assert [key for key, _ in await store.pairs("budget")] == ["a\nthree"]  # the old ones are gone


async def test_without_limits_nothing_is_written() -> None:
    store = MemoryStore()
    budget = made(store, Clock())
    for _ in range(100):
        await budget.afford("a", action=True)
    assert await store.pairs("budget") == []


# --- in a session ---

MODEL = ModelInfo("script", "m", price_input=1_000_000.0, price_output=0.0)  # a dollar a token


async def host_of(tmp_path: Path, script: Scripted, limits: str) -> Composed:
    (tmp_path / "config.toml").write_text(
        f'[agents.a]\nmodel = "script/m"\nmode = "full"\nrisk_profile = "tight"\n'
        f"[risk_profiles.tight]\n{limits}\n"
    )
    host = await compose(config_dir=str(tmp_path))
    host.models.offer("script", script, [MODEL])
    return host


async def talk(host: Composed, cwd: Path) -> tuple[Any, Tape]:
    info = await host.door.open(OpenSpec(cwd=str(cwd)), ME)
    tape = Tape()
    await host.door.watch(info.id, ME, tape, lambda said: None)

    async def say(text: str) -> Any:
        async with asyncio.timeout(60):
            return await (await host.door.prompt(info.id, (Text(text),), ME)).done

    return say, tape


async def test_too_many_actions_end_the_turn(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    script = Scripted([
        turn(call("write", path="1", content="x"), call("read", path="1"),
             call("write", path="2", content="x"), call("write", path="3", content="x")),
        "never said", "later",
    ])  # fmt: skip
    host = await host_of(tmp_path, script, "max_actions_per_hour = 2")
    try:
        say, tape = await talk(host, work)
        done = await say("write three files")
        assert done.outcome == "failed" and "2 of 2 actions in the last hour" in done.error
        assert sorted(p.name for p in work.iterdir()) == ["1", "2"]
        outcomes = [(e.outcome, text_of(e.content)) for e in tape.of(ev.CallEnded)]
        assert [o for o, _ in outcomes] == ["done", "done", "done", "denied"]
        assert "budget of a is used up" in outcomes[-1][1]
        assert len(script.requests) == 1  # the model is not asked what it thinks of that
    finally:
        await host.close()
    host = await host_of(tmp_path, Scripted([call("write", path="4", content="x"), "x"]),
                         "max_actions_per_hour = 2")  # fmt: skip
    try:
        say, _ = await talk(host, work)
        assert "used up" in (await say("again, after a restart")).error
        assert not (work / "4").exists()
    finally:
        await host.close()


async def test_too_much_money_ends_the_turn(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    cost = Usage(input=2)
    script = Scripted([
        turn(call("ls", path="."), usage=cost), turn(call("ls", path="."), usage=cost),
        turn("never said", usage=cost),
    ])  # fmt: skip
    host = await host_of(tmp_path, script, "max_cost_per_day_usd = 3.5")
    try:
        say, _ = await talk(host, work)
        done = await say("look around")
        assert done.outcome == "failed" and "4.00 of 3.50 USD in the last day" in done.error
        assert len(script.requests) == 2
        assert "raise max_cost_per_day_usd" in (await say("once more")).error
        assert len(script.requests) == 2
        assert host.door.facts.budget("a")["cost_per_day"] == 4.0  # type: ignore[misc]
    finally:
        await host.close()


async def test_what_a_clock_that_was_ahead_has_counted_is_old_after_a_day() -> None:
    clock, store = Clock(), MemoryStore()
    right = clock.now
    clock.now += 100_000 * HOUR
    for owner in ("one", "dead"):
        budget = made(store, clock, owner, actions_per_day=2)
        await budget.afford("a", action=True)
    clock.now = right
    later = made(store, clock, "one", actions_per_day=2)
    with pytest.raises(Refused, match="2 of 2 actions in the last day"):
        await later.afford("a", action=True)
    clock.now += 24 * HOUR
    later = made(store, clock, "two", actions_per_day=2)
    await later.afford("a", action=True)
    await later.afford("a", action=True)


async def test_nothing_is_believed_of_counts_that_could_not_be_read(monkeypatch: Any) -> None:
    clock, store = Clock(), MemoryStore()
    await made(store, clock, "other", actions_per_hour=1).afford("a", action=True)
    mine = made(store, clock, "mine", actions_per_hour=1)

    async def full(space: str) -> None:
        raise StoreFailed("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(store, "pairs", full)
        with pytest.raises(StoreFailed):
            await mine.afford("a", action=True)
    with pytest.raises(Refused, match="1 of 1 actions"):
        await mine.afford("a", action=True)
