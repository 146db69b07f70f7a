"""Full-text search in the database: bringing the words up to date, and finding sessions by them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.engine.info import SessionInfo, SessionQuery

from .known import Known
from .lists import find_page, sound
from .rows import Torn, entries_of
from .words import terms, text_of

if TYPE_CHECKING:
    from sqlite3 import Connection

CHUNK = 2_000  # rows of events that are looked at in one transaction
_READY = 5  # letters of a word's beginning that can be looked up
_SEEN = 50_000  # rows with the words that are looked at, newest first, for one answer
_PENDING = (
    "SELECT seq, at, kind, body, gseq, '' FROM events WHERE gseq >"
    " (SELECT value FROM counters WHERE name = 'words') ORDER BY gseq LIMIT ?"
)
_OF_SESSION = (
    "SELECT seq, at, kind, body, gseq, '' FROM events WHERE session = ?"
    " AND gseq <= (SELECT value FROM counters WHERE name = 'words')"
)
_FIND = (
    "SELECT events.session FROM words CROSS JOIN events ON events.gseq = words.rowid"
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
    """The sessions in which all words stand together, the newest such place first."""
    wanted = terms(text)
    if not wanted:
        return ()
    if not is_there(connection):
        return find_page(connection, SessionQuery(text=text, limit=limit)).sessions
    # Beginnings up to `_READY` letters are indexed. Those of longer words have to be gathered,
    # which takes its time where they are many: so whole words come first, and may be enough.
    longest = max(map(len, wanted))
    found: dict[int, None] = {}
    for most in dict.fromkeys((_READY, max(longest, _READY))):
        match = " AND ".join(
            f'"{word}"*' if 1 < len(word) <= most else f'"{word}"' for word in wanted
        )
        for (num,) in connection.execute(_FIND, (match, _SEEN)):
            found[num] = None
            if len(found) == limit:
                break
        if len(found) == limit:
            break
    infos = []
    for num in found:
        row = connection.execute("SELECT info FROM sessions WHERE num = ?", (num,)).fetchone()
        info = sound(row[0]) if row is not None else None
        if info is not None:
            infos.append(info)
    return infos
