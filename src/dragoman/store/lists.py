"""Lists of sessions from the database, each by an index that has the order it needs."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.info import Page, SessionInfo, SessionQuery

from .paging import checked, encode_cursor, words_of
from .rows import INDEXED, encode, info_of
from .rules import has_extra

if TYPE_CHECKING:
    from sqlite3 import Connection

Place = tuple[int, str] | None
ORDER = "ORDER BY updated_at DESC, id DESC"
ESCAPES = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})


class Where:
    """The conditions of one query, and the index to walk."""

    __slots__ = ("index", "rest", "terms", "values")

    def __init__(self, query: SessionQuery, place: Place = None) -> None:
        self.terms: list[str] = []
        self.values: list[Any] = []
        self.index = ""
        self.rest: dict[str, Any] = {}  # what only a look into `extra` can tell
        self._extra(query.extra)
        # The first of these that is asked for gives its index, so they stand in the order of how
        # few sessions they usually leave.
        if query.parent is not None:
            self._add("parent = ?", query.parent, index="sessions_parent")
        if query.cwd is not None:
            self._add("cwd = ?", query.cwd, index="sessions_cwd")
        if len(query.status) == 1:
            self._add("status = ?", query.status[0], index="sessions_status")
        elif query.status:
            self._add(f"status IN ({', '.join('?' * len(query.status))})", *query.status)
        if query.agent is not None:
            self._add("agent = ?", query.agent, index="sessions_agent")
        if query.leaves:
            self._add("leaf = 1", index="sessions_leaf")
        if query.archived is not None:
            self._add("archived = ?", int(query.archived), index="sessions_archived")
        if query.origin is not None:
            self._add("origin = ?", query.origin)
        for word in words_of(query.text):
            self._word(word)
        if place is not None:
            self._add("(updated_at, id) < (?, ?)", *place)
        self.index = self.index or "sessions_recent"

    def select(self, what: str) -> str:
        where = f" WHERE {' AND '.join(self.terms)}" if self.terms else ""
        return f"SELECT {what} FROM sessions INDEXED BY {self.index}{where}"

    def _add(self, term: str, *values: Any, index: str = "") -> None:
        self.terms.append(term)
        self.values.extend(values)
        self.index = self.index or index

    def _extra(self, extra: dict[str, Any]) -> None:
        for name, value in extra.items():
            if name in INDEXED and isinstance(value, str):
                self._add(f"{name} = ?", value, index=f"sessions_{name}")
                continue
            self.rest[name] = value
            if isinstance(value, str):  # a coarse sieve, so that few rows need to be decoded
                self._add("instr(info, ?)", encode(name) + b":" + encode(value))

    def _word(self, word: str) -> None:
        if word.isascii():
            pattern = f"%{word.translate(ESCAPES)}%"
            self._add(r"(title LIKE ? ESCAPE '\' OR query LIKE ? ESCAPE '\')", pattern, pattern)
        else:  # LIKE knows upper and lower case only in ASCII
            self._add("has_word(?, title, query)", word)


def find_page(connection: "Connection", query: SessionQuery) -> Page:
    """One page, newest activity first."""
    limit, offset, place = checked(query)
    where = Where(query, place)
    if where.rest:
        return _sifted(connection, query, where, limit, offset, place)
    sql, values = _ordered(query, where, offset + limit + 1, place)
    rows = connection.execute(f"{sql} LIMIT ? OFFSET ?", (*values, limit + 1, offset)).fetchall()
    more = len(rows) > limit
    page = tuple(info_of(data) for (data,) in rows[:limit])
    total = None
    if offset:
        every = Where(query)
        total = connection.execute(every.select("count(*)"), every.values).fetchone()[0]
    elif not more and place is None:
        total = len(page)
    return Page(page, encode_cursor(page[-1]) if more else "", total)


def _ordered(query: SessionQuery, where: Where, want: int, place: Place) -> tuple[str, list[Any]]:
    if len(query.status) < 2 or where.index in ("sessions_parent", "sessions_cwd"):
        return f"{where.select('info')} {ORDER}", where.values
    # Each status has its own ordered run in the index: take a page of each and merge them.
    parts: list[str] = []
    values: list[Any] = []
    for status in dict.fromkeys(query.status):
        one = Where(msgspec.structs.replace(query, status=(status,)), place)
        parts.append(f"SELECT * FROM ({one.select('info, updated_at, id')} {ORDER} LIMIT ?)")
        values.extend((*one.values, want))
    return f"SELECT info FROM ({' UNION ALL '.join(parts)}) {ORDER}", values


def _sifted(
    connection: "Connection",
    query: SessionQuery,
    where: Where,
    limit: int,
    offset: int,
    place: Place,
) -> Page:
    """A page filtered by values of `extra` that no column holds."""
    page: list[SessionInfo] = []
    passed = 0
    more = False
    for (data,) in connection.execute(f"{where.select('info')} {ORDER}", where.values):
        info = info_of(data)
        if not has_extra(info, where.rest):
            continue
        passed += 1
        if passed <= offset:
            continue
        if len(page) == limit:
            more = True
            break
        page.append(info)
    total = None
    if offset:
        every = Where(query)
        rows = connection.execute(every.select("info"), every.values)
        total = sum(has_extra(info_of(data), every.rest) for (data,) in rows)
    elif not more and place is None:
        total = len(page)
    return Page(tuple(page), encode_cursor(page[-1]) if more else "", total)


def find_newest(connection: "Connection", extra: dict[str, Any]) -> SessionInfo | None:
    """The session created last whose `extra` has these values."""
    where = Where(SessionQuery(extra=extra))
    sql = f"{where.select('info')} ORDER BY created_at DESC, num DESC"
    for (data,) in connection.execute(sql, where.values):
        info = info_of(data)
        if has_extra(info, extra):
            return info
    return None
