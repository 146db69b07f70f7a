"""The schema, step by step: step N brings a database from version N-1 to version N.

A step that was released is never changed; a new version appends a step.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from dragoman.engine.faults import StoreFailed

if TYPE_CHECKING:
    from sqlite3 import Connection

Step = Sequence[str] | Callable[["Connection"], None]


class Foreign(StoreFailed):
    """The file is not ours to change: of a newer version, of another program, or in other use."""


APPLICATION_ID = 0x44_52_41_47  # "DRAG", in the file's header

# Version 1: sessions, their events, approvals, and small values.
#
# `num` stands for a session inside the file: events and asks repeat it, and a number is shorter
# than an id. `leaf` is kept by hand (create, delete) so that a list of leaves needs no search.
FIRST = (
    """
    CREATE TABLE sessions (
        num INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        owner TEXT,
        epoch INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        status TEXT NOT NULL,
        archived INTEGER NOT NULL,
        leaf INTEGER NOT NULL,
        agent TEXT NOT NULL,
        cwd TEXT NOT NULL,
        parent TEXT,
        origin TEXT NOT NULL,
        run_id TEXT,
        key TEXT,
        title TEXT NOT NULL,
        query TEXT NOT NULL,
        info BLOB NOT NULL
    )
    """,
    "CREATE INDEX sessions_recent ON sessions (updated_at, id)",
    "CREATE INDEX sessions_cwd ON sessions (cwd, updated_at, id)",
    "CREATE INDEX sessions_status ON sessions (status, updated_at, id)",
    "CREATE INDEX sessions_agent ON sessions (agent, updated_at, id)",
    "CREATE INDEX sessions_archived ON sessions (archived, updated_at, id)",
    "CREATE INDEX sessions_leaf ON sessions (updated_at, id) WHERE leaf = 1",
    "CREATE INDEX sessions_parent ON sessions (parent, updated_at, id) WHERE parent IS NOT NULL",
    "CREATE INDEX sessions_run_id ON sessions (run_id, created_at) WHERE run_id IS NOT NULL",
    "CREATE INDEX sessions_key ON sessions (key, created_at) WHERE key IS NOT NULL",
    """
    CREATE TABLE events (
        gseq INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (num) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (session, seq)
    )
    """,
    """
    CREATE TABLE asks (
        num INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES sessions (num) ON DELETE CASCADE,
        pending INTEGER NOT NULL,
        at INTEGER NOT NULL,
        ask BLOB NOT NULL,
        settled BLOB,
        settled_at INTEGER
    )
    """,
    "CREATE INDEX asks_session ON asks (session, at)",
    "CREATE INDEX asks_pending ON asks (at) WHERE pending = 1",
    """
    CREATE TABLE kv (
        space TEXT NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (space, key)
    ) WITHOUT ROWID
    """,
    # The newest gseq given out. Its own row, so that a number is never used twice, also after the
    # newest events were deleted; one update per batch is cheaper than AUTOINCREMENT per event.
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO counters VALUES ('gseq', 0)",
)

# Version 2: a turn leaves the indexes alone, and a batch of events is one row.
#
# Columns:
# - A busy session is `hot`: `live_at` and `live_status` are true, while `updated_at` and `status`
#   are as they were when it was last settled, so that none of the indexes with them moves while it
#   is at work. Of a session that is not hot, `updated_at` and `status` are true, and nothing else
#   is.
#
# Without a change to their tables:
# - A row of `events` with an empty kind holds several events, packed into its body; its numbers and
#   time are those of the last one. Rows of version 1 hold one event each and stay as they are.
# - The counter is at least the newest number among the events that were deleted; the newest number
#   given out is that or the newest one in `events`, whichever is higher.
SECOND = (
    "ALTER TABLE sessions ADD COLUMN hot INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN live_at INTEGER",
    "ALTER TABLE sessions ADD COLUMN live_status TEXT",
    "CREATE INDEX sessions_hot ON sessions (num) WHERE hot = 1",
)

# Version 3: the words of what was said, for full-text search.
#
# - A row of `words` has the number (`gseq`) of the row of `events` whose text it knows. It holds no
#   text, only which words are where: what an event says stays in one place.
# - The counter `words` is the newest row of `events` that was looked at. The writer goes on from
#   there when it rests, when much waits, and before a search.
# - A SQLite without FTS5 has no such table: then titles and first prompts are searched.
WORDS = (
    "CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, columnsize=0,"
    " prefix='2 3 4 5', tokenize='unicode61 remove_diacritics 2')"
)


def third(connection: "Connection") -> None:
    import sqlite3

    connection.execute("INSERT INTO counters VALUES ('words', 0)")
    try:
        connection.execute(WORDS)
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise


STEPS: tuple[Step, ...] = (FIRST, SECOND, third)


def migrate(connection: "Connection", path: str, steps: Sequence[Step] = STEPS) -> int:
    """Bring the database to the newest version in one transaction; returns the version it had."""
    before = _number(connection, "user_version")
    if before == len(steps) and _number(connection, "application_id") == APPLICATION_ID:
        return before
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = _number(connection, "user_version")  # another process may have been faster
        recognise(connection, path, steps)
        for number, step in enumerate(steps[before:], before + 1):
            if callable(step):
                step(connection)
            else:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return before


def recognise(connection: "Connection", path: str, steps: Sequence[Step] = STEPS) -> None:
    """Raise Foreign unless the file is empty, or ours and of a version that we know."""
    version, newest = _number(connection, "user_version"), len(steps)
    owner = _number(connection, "application_id")
    if owner == APPLICATION_ID and version > newest:
        raise Foreign(
            f"{path} was written by a newer version of Dragoman "
            f"(schema {version}; this one knows schemas up to {newest}).",
            "Update Dragoman, or choose another file for the session store.",
            path=path,
            version=version,
        )
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (owner or tables):
        raise Foreign(
            f"{path} is a database of another program.",
            "Choose another file for the session store.",
            path=path,
        )
    if version and (lack := lacking(connection, steps[:version])):
        raise Foreign(
            f"{path} is no whole session store: it lacks {lack}.",
            "Put back a copy of it, or move it away: a new one is begun then.",
            path=path,
        )


def lacking(connection: "Connection", steps: Sequence[Step]) -> str:
    """The first table or column of these steps that a database has not; empty: it has all.

    What a step makes that is a function may lack: the words, where there is no FTS5.
    """
    from sqlite3 import connect

    with closing(connect(":memory:")) as made:
        for step in steps:
            for statement in () if callable(step) else step:
                if statement.lstrip().startswith(("CREATE TABLE", "ALTER TABLE")):
                    made.execute(statement)
        for (table,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            found = _columns(connection, table)
            for column in _columns(made, table):
                if column not in found:
                    return f"the column {table}.{column}" if found else f"the table {table}"
    return ""


def has_other_names(path: str) -> Foreign:
    return Foreign(
        f"{path} is in use by another of its names: it has a hard link.",
        "End whoever has it open, and open it by one name alone.",
        path=path,
    )


def _columns(connection: "Connection", table: str) -> list[str]:
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return [row[0] for row in rows]


def is_older(connection: "Connection") -> bool:
    """Whether the file, which is ours, has a version from before ours."""
    return 0 < _number(connection, "user_version") < len(STEPS)


def used_by_older(path: str) -> Foreign:
    """It does not look at the version again: its numbers and ours would be the same ones."""
    return Foreign(
        f"{path} is in use by an older version of Dragoman.",
        "End that one first, the daemon before all; this version then brings the file up to date.",
        path=path,
    )


def _number(connection: "Connection", pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
