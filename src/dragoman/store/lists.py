"""Lists of sessions, each by an index that has the order it needs: what all databases share, and
those from a file.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman.engine.info import Page, SessionInfo, SessionQuery

from .rows import encode, info_of, sorted_out
from .rules import checked, encode_cursor, has_extra, place_after, words_of

if TYPE_CHECKING:
    from sqlite3 import Connection

Place = tuple[int, str] | None
ORDER = "ORDER BY moment DESC, id DESC"
ESCAPES = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})
WALKED = frozenset({"run_id", "key", "parent", "cwd", "status", "agent"})  # columns with an index


class Conditions(ABC):
    """The conditions of one part of a query; parts share the list of values.

    `part` is which sessions to look through: the hot ones, whose time and status only their rows
    know, the cold ones, whose indexes are up to date, or all, where time and status do not matter.
    """

    def __init__(
        self, query: SessionQuery, values: list[Any], place: Place = None, part: str = "all"
    ) -> None:
        self.terms: list[str] = []
        self.values = values
        self.moment, status = "updated_at", "status"
        if part == "hot":
            self.moment, status = "live_at", "live_status"
        if part != "all":
            self.flag("hot", part == "hot")
        columns, self.rest, texts = sorted_out(query.extra)
        for column, value in columns.items():
            self.equal(column, value)
        for name, value in texts.items():  # a coarse sieve, so that few rows need to be decoded
            self.holds(encode(name) + b":" + encode(value))
        # The first of these that is asked for gives its index, so they stand in the order of how
        # few sessions they usually leave.
        if query.parent is not None:
            self.equal("parent", query.parent)
        if query.cwd is not None:
            self.equal("cwd", query.cwd)
        if len(query.status) == 1:
            self.equal(status, query.status[0])
        elif query.status:
            self.among(status, query.status)
        if query.agent is not None:
            self.equal("agent", query.agent)
        if query.leaves:
            self.flag("leaf", True)
        if query.archived is not None:
            self.flag("archived", query.archived)
        if query.origin is not None:
            self.equal("origin", query.origin)
        for word in words_of(query.text):
            self.word(word)
        if place is not None:
            self.before(*place)

    def select(self, what: str) -> str:
        where = f" WHERE {' AND '.join(self.terms)}" if self.terms else ""
        return f"SELECT {what} FROM {self.table()}{where}"

    def table(self) -> str:
        return "sessions"

    @abstractmethod
    def flag(self, column: str, value: bool) -> None: ...

    @abstractmethod
    def equal(self, column: str, value: str) -> None: ...

    @abstractmethod
    def among(self, column: str, values: Sequence[str]) -> None: ...

    @abstractmethod
    def holds(self, said: bytes) -> None:
        """The row has these bytes."""

    @abstractmethod
    def word(self, word: str) -> None: ...

    @abstractmethod
    def before(self, moment: int, id: str) -> None: ...


C = TypeVar("C", bound=Conditions)


def parts_of(kind: type[C], query: SessionQuery, values: list[Any], place: Place) -> list[C]:
    """The hot sessions, then the cold ones."""
    colds = [query]
    if len(query.status) > 1 and query.parent is None and query.cwd is None:
        # Each status has its own ordered run in the index.
        each = dict.fromkeys(query.status)
        colds = [msgspec.structs.replace(query, status=(status,)) for status in each]
    hot = kind(query, values, place, "hot")
    return [hot, *(kind(cold, values, place, "cold") for cold in colds)]


def count_of(kind: type[Conditions], query: SessionQuery) -> tuple[str, list[Any]]:
    # Without a status it does not matter who is hot. With one, a session may be settled at any
    # moment, so one statement counts both.
    parts = ("hot", "cold") if query.status else ("all",)
    values: list[Any] = []
    counts = (f"({kind(query, values, None, part).select('count(*)')})" for part in parts)
    return f"SELECT {' + '.join(counts)}", values


def page_of(rows: Sequence[Any], limit: int, total: int | None, place: Place) -> Page:
    """A page of rows of (info, moment, id), one more than it holds when there are more."""
    found, more = rows[:limit], len(rows) > limit
    page = tuple(info for row in found if (info := sound(row[0])) is not None)
    if total is None and not more and place is None:
        total = len(page)
    cursor = place_after(found[-1][1], found[-1][2]) if more else ""
    return Page(page, cursor, total, len(found) - len(page))


class Sieve:
    """A page filtered by values of `extra` that no column holds."""

    def __init__(self, rest: dict[str, Any], limit: int, offset: int) -> None:
        self._rest = rest
        self._limit = limit
        self._skip = offset
        self._page: list[SessionInfo] = []
        self._damaged = 0
        self._more = False

    def fits(self, info: SessionInfo | None) -> bool:
        return info is not None and has_extra(info, self._rest)

    def full(self, info: SessionInfo | None) -> bool:
        """Take the next one in, when it fits; True: there is no room for it."""
        self._damaged += info is None
        if info is None or not has_extra(info, self._rest):
            return False
        if self._skip:
            self._skip -= 1
        elif len(self._page) == self._limit:
            self._more = True
        else:
            self._page.append(info)
        return self._more

    def page(self, total: int | None, place: Place) -> Page:
        if total is None and not self._more and place is None:
            total = len(self._page)
        cursor = encode_cursor(self._page[-1]) if self._more else ""
        return Page(tuple(self._page), cursor, total, self._damaged)


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


class Where(Conditions):
    """In a file: with the index to walk."""

    _index = ""

    @property
    def index(self) -> str:
        return self._index or "sessions_recent"

    def table(self) -> str:
        return f"sessions INDEXED BY {self.index}"

    def _add(self, term: str, *values: Any, index: str = "") -> None:
        self.terms.append(term)
        self.values.extend(values)
        self._index = self._index or index

    def flag(self, column: str, value: bool) -> None:
        walked = value or column != "hot"
        self._add(f"{column} = {int(value)}", index=f"sessions_{column}" if walked else "")

    def equal(self, column: str, value: str) -> None:
        self._add(f"{column} = ?", value, index=f"sessions_{column}" if column in WALKED else "")

    def among(self, column: str, values: Sequence[str]) -> None:
        self._add(f"{column} IN ({', '.join('?' * len(values))})", *values)

    def holds(self, said: bytes) -> None:
        self._add("instr(info, ?)", said)

    def word(self, word: str) -> None:
        if word.isascii():
            pattern = f"%{word.translate(ESCAPES)}%"
            self._add(r"(title LIKE ? ESCAPE '\' OR query LIKE ? ESCAPE '\')", pattern, pattern)
        else:  # LIKE knows upper and lower case only in ASCII
            self._add("has_word(?, title, query)", word)

    def before(self, moment: int, id: str) -> None:
        self._add(f"({self.moment}, id) < (?, ?)", moment, id)


def ordered(query: SessionQuery, place: Place) -> tuple[str, list[Any]]:
    """A statement that gives (info, moment, id) in order: the hot sessions sorted, the cold ones as
    they stand in their index, merged as far as they are read.
    """
    values: list[Any] = []
    wheres = parts_of(Where, query, values, place)
    parts = [where.select(f"info, {where.moment} AS moment, id") for where in wheres]
    return f"{' UNION ALL '.join(parts)} {ORDER}", values


def find_page(connection: "Connection", query: SessionQuery) -> Page:
    """One page, newest activity first."""
    limit, offset, place = checked(query)
    counted = offset or query.counted
    total: int | None = None
    rest = Where(query, []).rest
    if rest:
        sieve = Sieve(rest, limit, offset)
        for data, _, _ in connection.execute(*ordered(query, place)):
            if sieve.full(sound(data)):
                break
        if counted:
            rows = connection.execute(*ordered(query, None))
            total = sum(sieve.fits(sound(data)) for data, _, _ in rows)
        return sieve.page(total, place)
    sql, values = ordered(query, place)
    found = connection.execute(f"{sql} LIMIT ? OFFSET ?", (*values, limit + 1, offset)).fetchall()
    if counted:
        total = connection.execute(*count_of(Where, query)).fetchone()[0]
    return page_of(found, limit, total, place)


def find_newest(connection: "Connection", extra: dict[str, Any]) -> SessionInfo | None:
    """The session created last whose `extra` has these values."""
    where = Where(SessionQuery(extra=extra), [])
    sql = f"{where.select('info')} ORDER BY created_at DESC, num DESC"
    for (data,) in connection.execute(sql, where.values):
        info = sound(data)
        if info is not None and has_extra(info, extra):
            return info
    return None
