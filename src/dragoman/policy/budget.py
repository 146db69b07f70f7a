"""How much an agent may spend and do in any hour and any day, across restarts and processes.

What was used is counted by the minute. Each process keeps its own counts in the store and adds up
those of the others, so two hosts on the same data share one budget.
"""

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from dragoman.engine.faults import Refused
from dragoman.engine.ports import Clock, Store

_SPACE = "budget"
_MINUTE = 60_000
_HOUR, _DAY = 60, 24 * 60  # minutes
_FRESH = 1.0  # seconds for which the counts of other processes are believed


class Allowance(Protocol):
    """What one agent may use; 0: no limit."""

    @property
    def cost_per_hour(self) -> float: ...

    @property
    def cost_per_day(self) -> float: ...

    @property
    def actions_per_hour(self) -> int: ...

    @property
    def actions_per_day(self) -> int: ...


class Used(msgspec.Struct):
    """Minute -> (USD, actions)."""

    minutes: dict[int, tuple[float, int]] = {}

    def add(self, minute: int, cost: float, actions: int) -> None:
        before = self.minutes.get(minute, (0.0, 0))
        self.minutes[minute] = (before[0] + cost, before[1] + actions)

    def trim(self, now: int) -> None:
        for minute in [m for m in self.minutes if m <= now - _DAY]:
            del self.minutes[minute]

    def since(self, minute: int) -> tuple[float, int]:
        cost, actions = 0.0, 0
        for at, (spent, done) in self.minutes.items():
            if at > minute:
                cost += spent
                actions += done
        return cost, actions


class Budgets:
    """Implements `ports.Budget` for all agents of a process."""

    def __init__(
        self, limits: Callable[[str], Allowance], store: Store, clock: Clock, owner: str
    ) -> None:
        self._limits = limits
        self._store = store
        self._clock = clock
        self._owner = owner
        self._mine: dict[str, Used] = {}
        self._others: dict[str, list[Used]] = {}
        self._read_at = -_FRESH

    def _minute(self) -> int:
        return self._clock.now_ms() // _MINUTE

    async def afford(self, agent: str, *, action: bool) -> None:
        """Raise Refused when a limit is reached; else count the action."""
        limits = self._limits(agent)
        wanted = (
            limits.cost_per_hour, limits.cost_per_day,
            limits.actions_per_hour, limits.actions_per_day,
        )  # fmt: skip
        if not any(wanted):
            return
        await self._read(agent)
        now = self._minute()
        counts = [self._mine.setdefault(agent, Used()), *self._others.get(agent, ())]
        hour = _sum(counts, now - _HOUR)
        day = _sum(counts, now - _DAY)
        _check_money(agent, "hour", hour[0], limits.cost_per_hour)
        _check_money(agent, "day", day[0], limits.cost_per_day)
        if action:
            _check_actions(agent, "hour", hour[1], limits.actions_per_hour)
            _check_actions(agent, "day", day[1], limits.actions_per_day)
            self._mine[agent].add(now, 0.0, 1)
        await self._keep(agent)

    def spent(self, agent: str, cost: float) -> None:
        """Count money; it is stored with the next question."""
        self._mine.setdefault(agent, Used()).add(self._minute(), cost, 0)

    def used(self, agent: str) -> dict[str, float]:
        """What this process knows to be used, for people to look at."""
        now = self._minute()
        counts = [self._mine.get(agent, Used()), *self._others.get(agent, ())]
        hour, day = _sum(counts, now - _HOUR), _sum(counts, now - _DAY)
        return {
            "cost_per_hour": hour[0],
            "cost_per_day": day[0],
            "actions_per_hour": hour[1],
            "actions_per_day": day[1],
        }

    async def flush(self) -> None:
        """Store what was counted since the last question."""
        for agent in self._mine:
            await self._keep(agent)

    async def _keep(self, agent: str) -> None:
        used = self._mine[agent]
        used.trim(self._minute())
        if used.minutes:
            key = f"{agent}\n{self._owner}"
            await self._store.put(_SPACE, key, msgspec.json.encode(used))

    async def _read(self, agent: str) -> None:
        """Add up what other processes, and those before us, have used."""
        now = time.monotonic()
        if now - self._read_at < _FRESH:
            return
        self._read_at = now
        minute = self._minute()
        self._others = {}
        for key, value in await self._store.pairs(_SPACE):
            alias, _, owner = key.partition("\n")
            used = msgspec.json.decode(value, type=Used)
            used.trim(minute)
            if not used.minutes and owner != self._owner:
                await self._store.put(_SPACE, key, None)
            elif owner != self._owner:
                self._others.setdefault(alias, []).append(used)
            elif alias not in self._mine:
                self._mine[alias] = used


def _sum(counts: list[Used], since: int) -> tuple[float, int]:
    sums = [used.since(since) for used in counts]
    return sum(one[0] for one in sums), sum(one[1] for one in sums)


def _check_money(agent: str, span: str, used: float, limit: float) -> None:
    if limit and used >= limit:
        raise Refused(
            f"The budget of {agent} is used up: {_usd(used)} of {_usd(limit)} USD "
            f"in the last {span}.",
            f"Wait, or raise max_cost_per_{span}_usd.",
        )


def _usd(amount: float) -> str:
    """Cents, and of less than a dollar three digits that say something."""
    return f"{amount:.2f}" if amount >= 1 or not amount else f"{amount:.3g}"


def _check_actions(agent: str, span: str, used: int, limit: int) -> None:
    if limit and used >= limit:
        raise Refused(
            f"The budget of {agent} is used up: {used} of {limit} actions in the last {span}.",
            f"Wait, or raise max_actions_per_{span}.",
        )
