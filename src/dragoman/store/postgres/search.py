"""Full-text search in the database: bringing the words up to date, and finding sessions by them.

The words are ours (`store/words.py`), cut and compared as in a file, so the database needs no
dictionary. A row of `words` belongs to the row of `events` with its number.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.engine.info import SessionInfo

from ..lists import sound
from ..rows import Torn, entries_of
from ..search import CANDIDATES, MOST_PLACES, SEEN, lacking, place_matches
from ..words import all_terms, terms, text_of

if TYPE_CHECKING:
    from asyncpg import Connection

    from .link import PostgresLink

CHUNK = 2_000  # rows of events that are looked at in one transaction
_DISTINCT = (  # from one value to the next in the index, however many sessions have each
    "WITH RECURSIVE found(value) AS ((SELECT {0} FROM sessions ORDER BY {0} LIMIT 1) UNION ALL"
    " SELECT (SELECT {0} FROM sessions WHERE {0} > found.value ORDER BY {0} LIMIT 1) FROM found"
    " WHERE value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL LIMIT $1"
)
_IN = "SELECT num, info FROM sessions WHERE {0} = $1 ORDER BY updated_at DESC LIMIT $2"
_BOTH = (
    "SELECT num, info FROM sessions WHERE cwd = $1 AND agent = $2 ORDER BY updated_at DESC LIMIT $3"
)
_MOST_BYTES = 500_000  # of the words of one row; the database takes a megabyte
_TURN = "SELECT value FROM counters WHERE name = 'words' FOR UPDATE"
_PENDING = (
    "SELECT seq, at, kind, body, gseq, session FROM events"
    " WHERE gseq > $1 AND gseq <= $2 ORDER BY gseq LIMIT $3"
)
_NEWEST = "SELECT value FROM counters WHERE name = 'gseq'"
_ADD = (
    "INSERT INTO words (gseq, session, words) VALUES ($1, $2, array_to_tsvector($3::text[]))"
    " ON CONFLICT (gseq) DO NOTHING"
)
_FIND = """
SELECT s.num, s.cwd, s.agent, s.info FROM (
    SELECT session, max(gseq) AS place FROM (
        SELECT session, gseq FROM words WHERE words @@ $1::text::tsquery ORDER BY gseq DESC LIMIT $3
    ) AS newest GROUP BY session ORDER BY place DESC LIMIT $2
) AS found JOIN sessions AS s ON s.num = found.session ORDER BY found.place DESC
"""


async def catch_up(link: "PostgresLink", *, wait: bool) -> None:
    """Take in the words of all that is stored; without `wait` only if nobody else does so."""
    async with link.reading() as connection:
        while await _some(connection, wait):
            pass  # each chunk is a transaction, so that others come to their turn


async def _some(connection: "Connection[Any]", wait: bool) -> bool:
    """Look at up to `CHUNK` rows; whether there may be more."""
    async with connection.transaction():
        done = await connection.fetchval(_TURN if wait else f"{_TURN} SKIP LOCKED")
        if done is None:
            return False
        newest = await connection.fetchval(_NEWEST)
        if newest <= done:
            return False
        rows = await connection.fetch(_PENDING, done, newest, CHUNK)
        made = [(row["gseq"], row["session"], found) for row in rows if (found := _words(row))]
        await connection.executemany(_ADD, made)
        upto = rows[-1]["gseq"] if len(rows) == CHUNK else newest
        await connection.execute("UPDATE counters SET value = $1 WHERE name = 'words'", upto)
    return len(rows) == CHUNK


def _words(row: Any) -> list[str]:
    """What a row of events says; a damaged one says nothing, whoever reads it is told."""
    try:
        said = text_of(entries_of([tuple(row)[:5] + ("",)]))
    except Torn:
        return []
    found, size = [], 0
    for word in all_terms(said):
        size += len(word.encode()) + 8
        if size > _MOST_BYTES:
            break
        found.append(word)
    return found


async def search(connection: "Connection[Any]", text: str, limit: int) -> Sequence[SessionInfo]:
    """The sessions in which all words stand together, the newest such place first; then those
    whose folder or agent has some of the words, and what was said there the others.
    """
    wanted = terms(text)
    if not wanted:
        return ()
    found = {row["num"]: row["info"] for row in await _said(connection, wanted, limit)}
    if len(found) < limit:
        found |= await _placed(connection, wanted, limit)
    infos = (sound(info) for info in [*found.values()][:limit])
    return [info for info in infos if info is not None]


async def _said(connection: "Connection[Any]", wanted: tuple[str, ...], limit: int) -> list[Any]:
    query = " & ".join(f"'{word}':*" if len(word) > 1 else f"'{word}'" for word in wanted)
    rows: list[Any] = await connection.fetch(_FIND, query, limit, SEEN)
    return rows


async def _placed(
    connection: "Connection[Any]", wanted: tuple[str, ...], limit: int
) -> dict[int, Any]:
    """Those whose folder or agent has some of the words, by their numbers, as in a file."""
    folders, agents = [
        [row["value"] for row in await connection.fetch(_DISTINCT.format(column), MOST_PLACES)]
        for column in ("cwd", "agent")
    ]
    found: dict[int, Any] = {}
    at = place_matches(wanted, folders, agents)
    for column, value in at.whole:
        if len(found) < limit:
            for row in await connection.fetch(_IN.format(column), value, limit - len(found)):
                found[row["num"]] = row["info"]
    for pair in at.pairs:
        for row in await connection.fetch(_BOTH, *pair, limit):
            found[row["num"]] = row["info"]
    for rest in at.rests:
        for row in await _said(connection, rest, CANDIDATES):
            if not set(lacking(wanted, f"{row['cwd']} {row['agent']}")) - set(rest):
                found[row["num"]] = row["info"]
    return found
