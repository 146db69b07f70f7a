"""Version 3: the words of what was said, for full-text search.

- A row of `words` has the number (`gseq`) of the row of `events` whose text it knows. It holds no
  text, only which words are where: what an event says stays in one place.
- The counter `words` is the newest row of `events` that was looked at. The writer goes on from
  there when it rests, when much waits, and before a search.
- A SQLite without FTS5 has no such table: then titles and first prompts are searched.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import Connection

WORDS = (
    "CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, columnsize=0,"
    " prefix='2 3 4 5', tokenize='unicode61 remove_diacritics 2')"
)


def step(connection: "Connection") -> None:
    import sqlite3

    connection.execute("INSERT INTO counters VALUES ('words', 0)")
    try:
        connection.execute(WORDS)
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise
