"""How much an agent may spend and do in any hour and any day, across restarts and processes.

What was used is counted by the minute. Each process keeps its own counts in the store and adds up
those of the others, so two hosts on the same data share one budget.
"""

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from dragoman.engine.faults import Refused
from dragoman.engine.ports import Clock, Store, row_of
from dragoman.engine.ports.patience import patiently
from dragoman.holding import Holder

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

    def trim(self, now: int) -> bool:
        """Forget what is old; whether something lay ahead, which a wrong clock has counted.

        That was used all the same, nobody knows when: it counts as used now, and gets old.
        """
        for minute in [m for m in self.minutes if m <= now - _DAY]:
            del self.minutes[minute]
        ahead = [m for m in self.minutes if m > now + _HOUR]
        for minute in ahead:
            self.add(now, *self.minutes.pop(minute))
        return bool(ahead)

    def since(self, minute: int) -> tuple[float, int]:
        cost, actions = 0.0, 0
        for at, (spent, done) in self.minutes.items():
            if at > minute:
                cost += spent
                actions += done
        return cost, actions


class Budgets(Holder):
    """Implements `ports.Budget` for all agents of a process."""

    _limits: Callable[[str], Allowance]
    _store: Store
    _clock: Clock
    _owner: str
    _mine: dict[str, Used] = {}
    _others: dict[str, list[Used]] = {}
    _read_at: float = -_FRESH

    def _minute(self) -> int:
        return self._clock.now_ms() // _MINUTE

    async def afford(self, agent: str, *, action: bool) -> None:
        """Raise Refused when a limit is reached; else count the action."""
        limits = self._limits(agent)
        money = {"hour": limits.cost_per_hour, "day": limits.cost_per_day}
        actions = {"hour": limits.actions_per_hour, "day": limits.actions_per_day}
        if not any((*money.values(), *actions.values())):
            return
        await self._read(agent)
        mine, now = self._mine.setdefault(agent, Used()), self._minute()
        used = self.used(agent)
        for span, limit in money.items():
            spent = used[f"cost_per_{span}"]
            if limit and spent >= limit:
                raise Refused(
                    f"The budget of {agent} is used up: {_usd(spent)} of {_usd(limit)} USD "
                    f"in the last {span}.",
                    f"Wait, or raise max_cost_per_{span}_usd.",
                )
        for span, most in actions.items() if action else ():
            done = used[f"actions_per_{span}"]
            if most and done >= most:
                raise Refused(
                    f"The budget of {agent} is used up: {done} of {most} actions "
                    f"in the last {span}.",
                    f"Wait, or raise max_actions_per_{span}.",
                )
        if action:
            mine.add(now, 0.0, 1)
        await self._keep(agent)

    def spent(self, agent: str, cost: float) -> None:
        """Count money; it is stored with the next question."""
        self._mine.setdefault(agent, Used()).add(self._minute(), cost, 0)

    def used(self, agent: str) -> dict[str, float]:
        """What this process knows to be used, for people to look at."""
        now = self._minute()
        counts = [self._mine.get(agent, Used()), *self._others.get(agent, ())]
        found: dict[str, float] = {}
        for span, minutes in (("hour", _HOUR), ("day", _DAY)):
            sums = [used.since(now - minutes) for used in counts]
            found[f"cost_per_{span}"] = sum(cost for cost, _ in sums)
            found[f"actions_per_{span}"] = sum(actions for _, actions in sums)
        return found

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
        found = await patiently(lambda: self._store.pairs(_SPACE))
        self._read_at = now
        minute = self._minute()
        self._others = {}
        for key, value in found:
            alias, _, owner = key.partition("\n")
            used = row_of(value, Used)
            if used is None:
                continue  # what it counted is over in a day
            moved = used.trim(minute)
            if moved:
                await self._store.put(_SPACE, key, msgspec.json.encode(used))
            if not used.minutes and owner != self._owner:
                await self._store.put(_SPACE, key, None)
            elif owner != self._owner:
                self._others.setdefault(alias, []).append(used)
            elif alias not in self._mine:
                self._mine[alias] = used


def _usd(amount: float) -> str:
    """Cents, and of less than a dollar three digits that say something."""
    return f"{amount:.2f}" if amount >= 1 or not amount else f"{amount:.3g}"
