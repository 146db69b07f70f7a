"""Lists of sessions, each by an index that has the order it needs."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.info import Page, SessionInfo, SessionQuery

from ..lists import sound
from ..rows import encode, sorted_out
from ..rules import checked, encode_cursor, has_extra, place_after, words_of
from .link import clean

if TYPE_CHECKING:
    from asyncpg import Connection

Place = tuple[int, str] | None
ORDER = "ORDER BY moment DESC, id DESC"
SIFT = 500  # rows read at a time where each must be looked into


class Where:
    """The conditions of one part of a query; parts share the list of values.

    `part` is which sessions to look through: the hot ones, whose time and status only their rows
    know, the cold ones, whose indexes are up to date, or all, where time and status do not matter.
    """

    def __init__(
        self, query: SessionQuery, values: list[Any], place: Place = None, part: str = "all"
    ) -> None:
        self._values = values
        self._terms: list[str] = []
        self.moment, status = "updated_at", "status"
        if part == "hot":
            self.moment, status = "live_at", "live_status"
            self._terms.append("hot")
        elif part == "cold":
            self._terms.append("NOT hot")
        columns, self.rest, texts = sorted_out(query.extra)
        for column, value in columns.items():
            self._add(f"{column} =", clean(value))
        for name, value in texts.items():  # a coarse sieve, so that few rows need to be decoded
            said = self._mark(encode(name) + b":" + encode(value), "bytea")
            self._terms.append(f"position({said} in info) > 0")
        if query.parent is not None:
            self._add("parent =", clean(query.parent))
        if query.cwd is not None:
            self._add("cwd =", clean(query.cwd))
        if len(query.status) == 1:
            self._add(f"{status} =", clean(query.status[0]))
        elif query.status:
            wanted = [clean(one) for one in query.status]
            self._terms.append(f"{status} = ANY ({self._mark(wanted, 'text[]')})")
        if query.agent is not None:
            self._add("agent =", clean(query.agent))
        if query.leaves:
            self._terms.append("leaf")
        if query.archived is not None:
            self._add("archived =", query.archived, "boolean")
        if query.origin is not None:
            self._add("origin =", clean(query.origin))
        for word in words_of(query.text):
            self._terms.append(f"strpos(words, {self._mark(clean(word), 'text')}) > 0")
        if place is not None:
            moment, id = place
            self._terms.append(
                f"({self.moment}, id) < ({self._mark(moment, 'bigint')},"
                f' {self._mark(clean(id), "text")} COLLATE "C")'
            )

    def select(self, what: str) -> str:
        where = f" WHERE {' AND '.join(self._terms)}" if self._terms else ""
        return f"SELECT {what} FROM sessions{where}"

    def _add(self, term: str, value: Any, kind: str = "text") -> None:
        self._terms.append(f"{term} {self._mark(value, kind)}")

    def _mark(self, value: Any, kind: str) -> str:
        self._values.append(value)
        return f"${len(self._values)}::{kind}"


def ordered(query: SessionQuery, place: Place, count: int) -> tuple[str, list[Any]]:
    """A statement that gives the first (info, moment, id) in order: the hot sessions, and the cold
    ones as they stand in their index.
    """
    values: list[Any] = []
    wheres = [Where(query, values, place, "hot")]
    if len(query.status) > 1 and query.parent is None and query.cwd is None:
        # Each status has its own ordered run in the index.
        wheres += [
            Where(msgspec.structs.replace(query, status=(status,)), values, place, "cold")
            for status in dict.fromkeys(query.status)
        ]
    else:
        wheres.append(Where(query, values, place, "cold"))
    parts = [
        f"({where.select(f'info, {where.moment} AS moment, id')} {ORDER} LIMIT {count})"
        for where in wheres
    ]
    return f"SELECT info, moment, id FROM ({' UNION ALL '.join(parts)}) AS found {ORDER}", values


async def find_page(connection: "Connection[Any]", query: SessionQuery) -> Page:
    """One page, newest activity first."""
    limit, offset, place = checked(query)
    rest = Where(query, []).rest
    if rest:
        return await _sifted(connection, query, rest, limit, offset, place)
    sql, values = ordered(query, place, limit + offset + 1)
    rows = await connection.fetch(f"{sql} LIMIT {limit + 1} OFFSET {offset}", *values)
    more = len(rows) > limit
    page = tuple(info for row in rows[:limit] if (info := sound(row[0])) is not None)
    damaged = len(rows[:limit]) - len(page)
    total = None
    if offset or query.counted:
        total = await _count(connection, query)
    elif not more and place is None:
        total = len(page)
    cursor = place_after(rows[limit - 1][1], rows[limit - 1][2]) if more else ""
    return Page(page, cursor, total, damaged)


async def _count(connection: "Connection[Any]", query: SessionQuery) -> int:
    parts = ("hot", "cold") if query.status else ("all",)
    values: list[Any] = []
    counts = " + ".join(
        f"({Where(query, values, None, part).select('count(*)')})" for part in parts
    )
    total: int = await connection.fetchval(f"SELECT {counts}", *values)
    return total


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


async def _sifted(
    connection: "Connection[Any]",
    query: SessionQuery,
    rest: dict[str, Any],
    limit: int,
    offset: int,
    place: Place,
) -> Page:
    """A page filtered by values of `extra` that no column holds."""
    page: list[SessionInfo] = []
    passed = damaged = 0
    more = False
    async for info in _walk(connection, query, place):
        if info is None:
            damaged += 1
            continue
        if not has_extra(info, rest):
            continue
        passed += 1
        if passed <= offset:
            continue
        if len(page) == limit:
            more = True
            break
        page.append(info)
    total = None
    if offset or query.counted:
        total = 0
        async for info in _walk(connection, query, None):
            total += info is not None and has_extra(info, rest)
    elif not more and place is None:
        total = len(page)
    return Page(tuple(page), encode_cursor(page[-1]) if more else "", total, damaged)


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
