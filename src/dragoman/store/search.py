"""Full-text search in the database: bringing the words up to date, and finding sessions by them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.engine.info import SessionInfo, SessionQuery

from .known import Known
from .lists import find_page, sound
from .rows import Torn, entries_of
from .words import UNLIKE, has_terms, plain, terms, text_of

if TYPE_CHECKING:
    from sqlite3 import Connection

CHUNK = 2_000  # rows of events that are looked at in one transaction
_READY = 5  # letters of a word's beginning that can be looked up
_READ = 300  # rows that are read to see whether they have the words whose beginnings were looked up
SEEN = 50_000  # rows with the words that are looked at, newest first, for one answer
MOST_PLACES = 3_000  # folders or agents whose names are looked at
_RESTS = 4  # ways of having words by the place that are looked through
_PAIRS = 16  # folders and agents that together may have all words
CANDIDATES = 500  # sessions with the other words, newest first, for each
_DISTINCT = (  # from one value to the next in the index, however many sessions have each
    "WITH RECURSIVE found(value) AS (SELECT min({0}) FROM sessions UNION ALL SELECT"
    " (SELECT min({0}) FROM sessions WHERE {0} > found.value) FROM found WHERE value IS NOT NULL)"
    " SELECT value FROM found WHERE value IS NOT NULL LIMIT ?"
)
_IN = (
    "SELECT num FROM sessions INDEXED BY sessions_{0} WHERE {0} = ?"
    " ORDER BY updated_at DESC LIMIT ?"
)
_BOTH = (
    "SELECT num FROM sessions INDEXED BY sessions_cwd WHERE cwd = ? AND agent = ?"
    " ORDER BY updated_at DESC LIMIT ?"
)
_PENDING = (
    "SELECT seq, at, kind, body, gseq, '' FROM events WHERE gseq >"
    " (SELECT value FROM counters WHERE name = 'words') ORDER BY gseq LIMIT ?"
)
_OF_SESSION = (
    "SELECT seq, at, kind, body, gseq, '' FROM events WHERE session = ?"
    " AND gseq <= (SELECT value FROM counters WHERE name = 'words')"
)
_ROW = "SELECT seq, at, kind, body, gseq, '' FROM events WHERE gseq = ?"
_FIND = (
    "SELECT events.session, words.rowid FROM words CROSS JOIN events ON events.gseq = words.rowid"
    " WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT ?"
)


def is_there(connection: "Connection") -> bool:
    """Whether this database has words; one that was made without FTS5 has none."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone()
    return found is not None


def _text(row: tuple[Any, ...]) -> str:
    """What a row of events says; a damaged one says nothing, whoever reads it is told."""
    try:
        return text_of(entries_of([row]))
    except Torn:
        return ""


class Index:
    """Look at up to `CHUNK` rows of events that came since; gives how many there were."""

    def __call__(self, connection: "Connection") -> int:
        if not is_there(connection):
            return 0
        rows = connection.execute(_PENDING, (CHUNK,)).fetchall()
        made = []
        for row in rows:
            text = _text(row)
            if text:
                made.append((row[4], text))
        connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", made)
        if rows:
            newest = rows[-1][4]
            connection.execute("UPDATE counters SET value = ? WHERE name = 'words'", (newest,))
        return len(rows)

    def committed(self, known: Known) -> None:
        """Nothing that is known of sessions."""


def forget(connection: "Connection", num: int) -> None:
    """Take the words of a session out, while its events are still there."""
    if not is_there(connection):
        return
    for row in connection.execute(_OF_SESSION, (num,)).fetchall():
        text = _text(row)
        if text:
            connection.execute(
                "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (row[4], text)
            )


def search(connection: "Connection", text: str, limit: int) -> Sequence[SessionInfo]:
    """The sessions in which all words stand together, the newest such place first; then those
    whose folder or agent has some of the words, and what was said there the others.
    """
    wanted = terms(text)
    if not wanted:
        return ()
    if not is_there(connection):
        return find_page(connection, SessionQuery(text=text, limit=limit)).sessions
    found = dict.fromkeys(_said(connection, wanted, limit))
    if len(found) < limit:
        found.update(dict.fromkeys(_placed(connection, wanted, limit)))
    infos = []
    for num in [*found][:limit]:
        row = connection.execute("SELECT info FROM sessions WHERE num = ?", (num,)).fetchone()
        info = sound(row[0]) if row is not None else None
        if info is not None:
            infos.append(info)
    return infos


def _said(connection: "Connection", wanted: tuple[str, ...], limit: int) -> list[int]:
    """Numbers of the sessions in which these words were said together."""
    # Beginnings up to `_READY` letters are indexed. Those of longer words have to be gathered,
    # which takes its time where they are many: so whole words come first, and may be enough.
    found: dict[int, None] = {}
    whole = " AND ".join(f'"{w}"*' if 1 < len(w) <= _READY else f'"{w}"' for w in wanted)
    if _taken(connection, whole, found, limit):
        return [*found]
    long = sorted((word for word in wanted if len(word) > _READY), key=len)
    if len(long) > 1 and _begun(connection, wanted, long, found, limit):
        return [*found]
    if long:
        _taken(connection, " AND ".join(_beginning(word) for word in wanted), found, limit)
    return [*found]


def _beginning(word: str, most: int = 0) -> str:
    """The words that begin so; single letters stand for themselves."""
    return f'"{word[: most or None]}"*' if len(word) > 1 else f'"{word}"'


def _taken(connection: "Connection", match: str, found: dict[int, None], limit: int) -> bool:
    """Add the sessions of these rows, the newest first; gives whether there are enough."""
    for num, _ in connection.execute(_FIND, (match, SEEN)):
        found[num] = None
        if len(found) == limit:
            return True
    return False


def _begun(
    connection: "Connection", wanted: tuple[str, ...], long: list[str], found: dict[int, None],
    limit: int,
) -> bool:  # fmt: skip
    """The same for several long words, of which only the longest is gathered: of the others the
    indexed letters are looked up, and the rows are read. Gives whether that settled it.
    """
    match = " AND ".join(_beginning(w, 0 if w == long[-1] else _READY) for w in wanted)
    rows = connection.execute(_FIND, (match, _READ)).fetchall()
    for num, gseq in rows:
        if num not in found and has_terms(
            tuple(long), _text(connection.execute(_ROW, (gseq,)).fetchone())
        ):
            found[num] = None
            if len(found) == limit:
                return True
    return len(rows) < _READ


class PlaceMatches(NamedTuple):
    """Where words that were looked for are names of folders and agents."""

    whole: list[tuple[str, str]]  # column and value with all of them
    pairs: list[tuple[str, str]]  # folder and agent that have all of them together
    rests: list[tuple[str, ...]]  # what of them must have been said, where a place has the others


def place_matches(
    wanted: tuple[str, ...], folders: Iterable[str], agents: Iterable[str]
) -> PlaceMatches:
    """Which of these have some of the words."""
    whole: list[tuple[str, str]] = []
    rests: dict[tuple[str, ...], None] = {}
    parts: dict[str, list[tuple[str, tuple[str, ...]]]] = {"cwd": [], "agent": []}
    for column, values in (("cwd", folders), ("agent", agents)):
        for value in values:
            rest = lacking(wanted, value)
            if not rest:
                whole.append((column, value))
            elif len(rest) < len(wanted):
                rests[rest] = None
                parts[column].append((value, rest))
    pairs = [
        (folder, agent)
        for folder, lacks in parts["cwd"][:_PAIRS]
        for agent, too in parts["agent"][:_PAIRS]
        if not set(lacks) & set(too)
    ]
    return PlaceMatches(whole, pairs, [*rests][:_RESTS])


def _placed(connection: "Connection", wanted: tuple[str, ...], limit: int) -> list[int]:
    """Numbers of the sessions whose folder or agent has some of the words, and what was said there
    the others; those whose folder or agent has all of them first.
    """
    folders, agents = (
        [value for (value,) in connection.execute(_DISTINCT.format(column), (MOST_PLACES,))]
        for column in ("cwd", "agent")
    )
    found: list[int] = []
    at = place_matches(wanted, folders, agents)
    for column, value in at.whole:
        if len(found) < limit:
            rows = connection.execute(_IN.format(column), (value, limit - len(found)))
            found += [num for (num,) in rows]
    for pair in at.pairs:
        found += [num for (num,) in connection.execute(_BOTH, (*pair, limit))]
    for rest in at.rests:
        for num in _said(connection, rest, CANDIDATES):
            row = connection.execute("SELECT cwd, agent FROM sessions WHERE num = ?", (num,))
            place = row.fetchone()
            if place is not None and not set(lacking(wanted, " ".join(place))) - set(rest):
                found.append(num)
    return found


def lacking(wanted: tuple[str, ...], value: str) -> tuple[str, ...]:
    """The words that are not in the name of a folder or an agent; single letters never are."""
    low = value.lower() if value.isascii() else plain(value)
    if not any(word in low for word in wanted):
        return wanted
    begins = " " + UNLIKE.sub(" ", low)
    return tuple(word for word in wanted if len(word) == 1 or f" {word}" not in begins)
