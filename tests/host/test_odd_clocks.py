"""Clocks that are set back, or ahead, while something is under way."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.engine import events as ev
from dragoman.engine.ask import Ask
from dragoman.engine.content import Text, Usage
from dragoman.engine.events import Event
from dragoman.gateway import tokens
from dragoman.gateway.spending import Spending
from dragoman.gateway.timeline import Timeline
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, turn

HOUR = 3_600_000


class Clock:
    """Both clocks of a machine; the wall's may be set."""

    def __init__(self, now: int = 1_000_000 * HOUR) -> None:
        self.now = now
        self.passed = 5.0

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.passed


@pytest.mark.parametrize("jump", [-HOUR, 0, 720 * HOUR])
def test_how_long_the_host_runs_does_not_jump_with_the_clock(jump: int) -> None:
    door, clock = memory_door(Scripted([])), Clock()
    host_of(door).clock = clock
    door.facts.began = clock.monotonic()
    clock.passed += 90
    clock.now += jump
    assert door.uptime_ms() == 90_000


@pytest.mark.parametrize("jump", [-HOUR, -700 * HOUR])
async def test_a_question_that_is_taken_over_waits_no_longer_than_it_was_given(
    jump: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    door, clock = memory_door(Scripted([]), mode="supervised"), Clock()
    host = host_of(door)
    host.clock = clock
    from dragoman.engine.host import OpenSpec

    session = await door.open(OpenSpec(cwd="/"))
    asked = Ask("ask_1", session.id, "question", "May I?", at=clock.now,
                expires_at=clock.now + 60_000)  # fmt: skip
    live = host.live[session.id]
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    real: Callable[..., Any] = loop.call_later

    def noted(delay: float, *given: Any) -> Any:
        delays.append(delay)
        return real(delay, *given)

    await live.asks.put(asked)
    live.asks.stop_timers()
    monkeypatch.setattr(loop, "call_later", noted)
    clock.now += jump
    live.asks.taken_over(asked)
    live.asks.stop_timers()
    assert 60.0 in delays and max(delays) <= 60.0


async def test_a_code_does_not_live_on_when_the_clock_is_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 2_000_000_000.0
    monkeypatch.setattr(tokens, "time", lambda: now)
    shelf = MemoryStore()
    code, link = await tokens.new_code(shelf), await tokens.new_link(shelf)
    now -= 30  # clocks are set right by seconds all the time
    assert await tokens.is_code(shelf, code) and await tokens.is_code(shelf, link)
    now -= 3_600
    assert not await tokens.is_code(shelf, code) and not await tokens.use_code(shelf, link)
    now += 3_630
    assert await tokens.use_code(shelf, code)
    assert not await tokens.use_code(shelf, link)  # it was tried


def test_times_of_a_turn_do_not_run_backwards() -> None:
    at = 1_000_000 * HOUR
    bodies: list[tuple[int, ev.Kept]] = [
        (at, ev.TurnBegan("t", (Text("go"),), None)),
        (at + 1_000, ev.Spoke("t", 1, (), "tool_use", Usage(1, 1))),
        (at + 2_000, ev.CallStarted("t", "c", "bash", {})),
        (at - HOUR, ev.CallEnded("c", "bash", "done", ())),
        (at - HOUR + 500, ev.Spoke("t", 2, (), "end_turn", Usage(1, 1))),
        (at - HOUR + 600, ev.TurnEnded("t", "completed", "end_turn")),
        (at - HOUR + 700, ev.TurnBegan("u", (Text("on"),), None)),
        (at - HOUR + 900, ev.TurnEnded("u", "completed", "end_turn")),
    ]
    line = Timeline(10)
    line.take(Event("s", when, body, number) for number, (when, body) in enumerate(bodies, 1))
    line.close()
    first, second = line.turns
    assert first.ended == at + 2_000
    assert all(bar.ended is not None and bar.ended >= bar.began for bar in first.bars)
    assert line.totals().model == 1_000 and line.totals().tools == {"bash": 0}
    assert second.ended is not None and second.ended - second.began == 200


async def test_today_has_nothing_of_days_that_a_wrong_clock_wrote() -> None:
    door = memory_door(Scripted([turn("a", usage=Usage(10, 5))] * 2), mode="full")
    clock = Clock()
    host_of(door).clock = clock
    from dragoman.engine.events import Who
    from dragoman.engine.host import OpenSpec

    session = await door.open(OpenSpec(cwd="/"))
    clock.now += 20 * 365 * 24 * HOUR
    await (await door.prompt(session.id, (Text("in 20 years"),), Who("test"))).done
    clock.now -= 20 * 365 * 24 * HOUR
    await (await door.prompt(session.id, (Text("now"),), Who("test"))).done
    assert sum(row.calls for row in await Spending(door).today()) == 1
