"""What was spent today, by agent and model, read from the kept events of all sessions."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from dragoman.engine.events import Compacted, Event, Spoke
from dragoman.engine.faults import UnknownSession
from dragoman.engine.hub import FIRST_PAGE, next_page
from dragoman.holding import Holder

if TYPE_CHECKING:
    from dragoman.engine.door import Door

_PAGE = 1_000  # events, where they are small
_DAY_AND_MORE = 36 * 3_600_000  # from midnight into the next day, however long this one is


class Spent(msgspec.Struct, frozen=True):
    """The model calls of one agent with one model within one hour of the day."""

    agent: str
    model: str
    hour: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float


class Spending(Holder):
    """Adds up as far as the store has come; what was read is not read again that day."""

    _door: "Door"
    _day: int = 0  # ms, when it began here
    _at: int = 0  # the place up to which is counted
    _rows: dict[tuple[str, str, int], Spent] = {}
    _agents: dict[str, tuple[str, str]] = {}  # of sessions: agent, model
    _reading: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    async def today(self) -> list[Spent]:
        async with self._reading:
            day = _midnight(self._door.now_ms())
            if day != self._day:
                self._rows.clear()
                self._agents.clear()
                self._at = await self._before(day)
                self._day = day
            end = _midnight(day + _DAY_AND_MORE)  # a wrong clock may have written days to come
            most = FIRST_PAGE
            while True:
                page = await self._door.read_all(self._at, most)
                for event in page:
                    if isinstance(event.body, Spoke | Compacted) and day <= event.at < end:
                        await self._count(event, event.body)
                    self._at = event.gseq  # now it is counted; whoever asked may have left before
                if len(page) < most:
                    return sorted(self._rows.values(), key=lambda row: -row.cost)
                most = next_page(page, _PAGE)

    async def _before(self, day: int) -> int:
        """The last place before the day, found by halves: places and times grow together."""
        low, high = 0, await self._door.newest()
        while low < high:
            middle = (low + high + 1) // 2
            found = await self._door.read_all(middle - 1, 1)
            if found and found[0].at < day:
                low = middle
            else:
                high = middle - 1
        return low

    async def _count(self, event: Event, body: Spoke | Compacted) -> None:
        agent, usual = await self._of(event.session)
        model = getattr(body, "model", "") or usual
        hour = datetime.fromtimestamp(event.at / 1000).hour
        usage = body.usage
        old = self._rows.get((agent, model, hour)) or Spent(agent, model, hour, 0, 0, 0, 0.0)
        self._rows[agent, model, hour] = Spent(
            agent, model, hour, old.calls + 1,
            old.tokens_in + usage.input + usage.cache_read + usage.cache_write,
            old.tokens_out + usage.output, old.cost + body.cost,
        )  # fmt: skip

    async def _of(self, session: str) -> tuple[str, str]:
        known = self._agents.get(session)
        if known is None:
            try:
                info = await self._door.info(session)
                known = (info.agent, info.model)
            except UnknownSession:  # deleted since; it was paid all the same
                known = ("", "")
            self._agents[session] = known
        return known


def _midnight(ms: int) -> int:
    now = datetime.fromtimestamp(ms / 1000)
    return int(now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
