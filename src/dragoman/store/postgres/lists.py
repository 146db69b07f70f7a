"""Lists of sessions from a PostgreSQL database."""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.engine.info import Page, SessionInfo, SessionQuery

from ..lists import ORDER, Conditions, Place, Sieve, count_of, page_of, parts_of, sound
from ..rules import checked, has_extra
from .link import clean

if TYPE_CHECKING:
    from asyncpg import Connection

SIFT = 500  # rows read at a time where each must be looked into


class Where(Conditions):
    """In PostgreSQL, whose planner finds the index by itself."""

    def _mark(self, value: Any, kind: str = "text") -> str:
        self.values.append(clean(value) if isinstance(value, str) else value)
        return f"${len(self.values)}::{kind}"

    def flag(self, column: str, value: bool) -> None:
        self.terms.append(column if value else f"NOT {column}")

    def equal(self, column: str, value: str) -> None:
        self.terms.append(f"{column} = {self._mark(value)}")

    def among(self, column: str, values: Sequence[str]) -> None:
        wanted = [clean(one) for one in values]
        self.terms.append(f"{column} = ANY ({self._mark(wanted, 'text[]')})")

    def holds(self, said: bytes) -> None:
        self.terms.append(f"position({self._mark(said, 'bytea')} in info) > 0")

    def word(self, word: str) -> None:
        self.terms.append(f"strpos(words, {self._mark(word)}) > 0")

    def before(self, moment: int, id: str) -> None:
        at, name = self._mark(moment, "bigint"), self._mark(id)
        self.terms.append(f'({self.moment}, id) < ({at}, {name} COLLATE "C")')


def ordered(query: SessionQuery, place: Place, count: int) -> tuple[str, list[Any]]:
    """A statement that gives the first (info, moment, id) in order: the hot sessions, and the cold
    ones as they stand in their index.
    """
    values: list[Any] = []
    parts = [
        f"({where.select(f'info, {where.moment} AS moment, id')} {ORDER} LIMIT {count})"
        for where in parts_of(Where, query, values, place)
    ]
    return f"SELECT info, moment, id FROM ({' UNION ALL '.join(parts)}) AS found {ORDER}", values


async def find_page(connection: "Connection[Any]", query: SessionQuery) -> Page:
    """One page, newest activity first."""
    limit, offset, place = checked(query)
    counted = offset or query.counted
    total: int | None = None
    rest = Where(query, []).rest
    if rest:
        sieve = Sieve(rest, limit, offset)
        async for info in _walk(connection, query, place):
            if sieve.full(info):
                break
        if counted:
            total = 0
            async for info in _walk(connection, query, None):
                total += sieve.fits(info)
        return sieve.page(total, place)
    sql, values = ordered(query, place, limit + offset + 1)
    rows = await connection.fetch(f"{sql} LIMIT {limit + 1} OFFSET {offset}", *values)
    if counted:
        sql, values = count_of(Where, query)
        total = await connection.fetchval(sql, *values)
    return page_of(rows, limit, total, place)


async def _walk(
    connection: "Connection[Any]", query: SessionQuery, place: Place
) -> AsyncIterator[SessionInfo | None]:
    """All rows in order, some at a time; None for one that cannot be read."""
    while True:
        sql, values = ordered(query, place, SIFT)
        rows = await connection.fetch(f"{sql} LIMIT {SIFT}", *values)
        for data, _, _ in rows:
            yield sound(data)
        if len(rows) < SIFT:
            return
        place = (rows[-1][1], rows[-1][2])


async def find_newest(connection: "Connection[Any]", extra: dict[str, Any]) -> SessionInfo | None:
    """The session created last whose `extra` has these values."""
    values: list[Any] = []
    where = Where(SessionQuery(extra=extra), values)
    sql = f"{where.select('info')} ORDER BY created_at DESC, num DESC"
    async with connection.transaction():
        async for row in connection.cursor(sql, *values):
            info = sound(row[0])
            if info is not None and has_extra(info, extra):
                return info
    return None
