"""Lists of sessions from the database, each by an index that has the order it needs."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.info import Page, SessionInfo, SessionQuery

from .rows import encode, info_of, sorted_out
from .rules import checked, encode_cursor, has_extra, place_after, words_of

if TYPE_CHECKING:
    from sqlite3 import Connection

Place = tuple[int, str] | None
ORDER = "ORDER BY moment DESC, id DESC"
ESCAPES = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})


class Where:
    """The conditions of one query, and the index to walk.

    `part` is which sessions to look through: the hot ones, whose time and status only their rows
    know, the cold ones, whose indexes are up to date, or all, where time and status do not matter.
    """

    __slots__ = ("index", "moment", "rest", "terms", "values")

    def __init__(self, query: SessionQuery, place: Place = None, part: str = "all") -> None:
        self.terms: list[str] = []
        self.values: list[Any] = []
        self.index = ""
        self.moment, status = "updated_at", "status"
        if part == "hot":
            self.moment, status = "live_at", "live_status"
            self._add("hot = 1", index="sessions_hot")
        elif part == "cold":
            self._add("hot = 0")
        self._extra(query.extra)
        # The first of these that is asked for gives its index, so they stand in the order of how
        # few sessions they usually leave.
        if query.parent is not None:
            self._add("parent = ?", query.parent, index="sessions_parent")
        if query.cwd is not None:
            self._add("cwd = ?", query.cwd, index="sessions_cwd")
        if len(query.status) == 1:
            self._add(f"{status} = ?", query.status[0], index="sessions_status")
        elif query.status:
            self._add(f"{status} IN ({', '.join('?' * len(query.status))})", *query.status)
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
            self._add(f"({self.moment}, id) < (?, ?)", *place)
        self.index = self.index or "sessions_recent"

    def select(self, what: str) -> str:
        where = f" WHERE {' AND '.join(self.terms)}" if self.terms else ""
        return f"SELECT {what} FROM sessions INDEXED BY {self.index}{where}"

    def _add(self, term: str, *values: Any, index: str = "") -> None:
        self.terms.append(term)
        self.values.extend(values)
        self.index = self.index or index

    def _extra(self, extra: dict[str, Any]) -> None:
        columns, self.rest, texts = sorted_out(extra)
        for column, value in columns.items():
            self._add(f"{column} = ?", value, index=f"sessions_{column}")
        for name, value in texts.items():  # a coarse sieve, so that few rows need to be decoded
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
    rest = Where(query).rest
    if rest:
        return _sifted(connection, query, rest, limit, offset, place)
    sql, values = ordered(query, place)
    rows = connection.execute(f"{sql} LIMIT ? OFFSET ?", (*values, limit + 1, offset)).fetchall()
    more = len(rows) > limit
    page = tuple(info for row in rows[:limit] if (info := sound(row[0])) is not None)
    damaged = len(rows[:limit]) - len(page)
    total = None
    if offset or query.counted:
        total = _count(connection, query)
    elif not more and place is None:
        total = len(page)
    return Page(page, place_after(*rows[limit - 1][1:]) if more else "", total, damaged)


def sound(data: bytes) -> SessionInfo | None:
    """A session's row; None when it cannot be read: it must not hide all the others."""
    try:
        return info_of(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def damaged_rows(connection: "Connection") -> list[str]:
    """The sessions whose rows cannot be read."""
    rows = connection.execute("SELECT id, info FROM sessions")
    return [id for id, data in rows if sound(data) is None]


def ordered(query: SessionQuery, place: Place) -> tuple[str, list[Any]]:
    """A statement that gives (info, moment, id) in order: the hot sessions sorted, the cold ones as
    they stand in their index, merged as far as they are read.
    """
    wheres = [Where(query, place, "hot"), Where(query, place, "cold")]
    if len(query.status) > 1 and wheres[1].index not in ("sessions_parent", "sessions_cwd"):
        # Each status has its own ordered run in the index.
        wheres[1:] = [
            Where(msgspec.structs.replace(query, status=(status,)), place, "cold")
            for status in dict.fromkeys(query.status)
        ]
    parts = [where.select(f"info, {where.moment} AS moment, id") for where in wheres]
    values = [value for where in wheres for value in where.values]
    return f"{' UNION ALL '.join(parts)} {ORDER}", values


def _count(connection: "Connection", query: SessionQuery) -> int:
    # Without a status it does not matter who is hot. With one, a session may be settled at any
    # moment, so one statement counts both.
    parts = ("hot", "cold") if query.status else ("all",)
    wheres = [Where(query, None, part) for part in parts]
    counts = " + ".join(f"({where.select('count(*)')})" for where in wheres)
    values = [value for where in wheres for value in where.values]
    total: int = connection.execute(f"SELECT {counts}", values).fetchone()[0]
    return total


def _sifted(
    connection: "Connection",
    query: SessionQuery,
    rest: dict[str, Any],
    limit: int,
    offset: int,
    place: Place,
) -> Page:
    """A page filtered by values of `extra` that no column holds."""
    page: list[SessionInfo] = []
    passed = 0
    more = False
    damaged = 0
    for data, _, _ in connection.execute(*ordered(query, place)):
        info = sound(data)
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
        rows = connection.execute(*ordered(query, None))
        found = (sound(data) for data, _, _ in rows)
        total = sum(info is not None and has_extra(info, rest) for info in found)
    elif not more and place is None:
        total = len(page)
    return Page(tuple(page), encode_cursor(page[-1]) if more else "", total, damaged)


def find_newest(connection: "Connection", extra: dict[str, Any]) -> SessionInfo | None:
    """The session created last whose `extra` has these values."""
    where = Where(SessionQuery(extra=extra))
    sql = f"{where.select('info')} ORDER BY created_at DESC, num DESC"
    for (data,) in connection.execute(sql, where.values):
        info = sound(data)
        if info is not None and has_extra(info, extra):
            return info
    return None
