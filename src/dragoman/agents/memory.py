"""An agent's long-term memory: entries in a database of its own, found by their words.

One file per agent, so nothing passes between agents. Recall asks only for the rarest words of a
question, so its cost does not grow with how often common words occur.
"""

import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput, StoreFailed, in_words
from dragoman.engine.ports.rows import MemoryEntry as MemoryEntry
from dragoman.standing import identity

if TYPE_CHECKING:
    import sqlite3

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL,
    category TEXT NOT NULL, session TEXT NOT NULL, created INTEGER NOT NULL,
    updated INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS by_updated ON entries (updated DESC);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    key, content, content='entries', content_rowid='id', tokenize='unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab (words, 'row');
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON entries BEGIN
    INSERT INTO words (rowid, key, content) VALUES (new.id, new.key, new.content); END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON entries BEGIN
    INSERT INTO words (words, rowid, key, content)
    VALUES ('delete', old.id, old.key, old.content); END;
CREATE TRIGGER IF NOT EXISTS changed AFTER UPDATE ON entries BEGIN
    INSERT INTO words (words, rowid, key, content)
    VALUES ('delete', old.id, old.key, old.content);
    INSERT INTO words (rowid, key, content) VALUES (new.id, new.key, new.content); END;
"""
_WORD = re.compile(r"\w{2,}")
_EMPTY = frozenset(
    "about and any are can did does for from had has have how into its not our said say she that "
    "the their them they this was were what when where which who why will with you your".split()
)
_TERMS = 8  # words of a question that are looked for
_COMMON = 2_000  # a word in more entries than this says nothing


class Memory:
    """The memory of one agent. Methods block; call them in a thread."""

    def __init__(self, path: str, *, limit: int = 100_000, longest: int = 8_192) -> None:
        self._path = path
        self._limit = limit
        self._longest = longest
        self._lock = threading.Lock()
        self._file: tuple[int, int] | None = None
        self._made: sqlite3.Connection | None = None
        with self._using():
            pass

    @contextmanager
    def _using(self) -> "Iterator[sqlite3.Connection]":
        """The file that is there now: somebody may have moved it away. Raises StoreFailed."""
        import sqlite3

        with self._lock:
            try:
                if self._made is None or self._file != identity(self._path):
                    self._open()
                assert self._made is not None
                yield self._made
            except (OSError, sqlite3.Error) as error:
                raise self._explained(error) from error

    def _open(self) -> None:
        import sqlite3

        if self._made is not None:
            self._made.close()
            self._made = None
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._file = identity(self._path)
        made = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = NORMAL")
            made.execute("PRAGMA busy_timeout = 5000")
            made.executescript(_SCHEMA)
        except BaseException:
            made.close()
            raise
        self._made = made

    def _explained(self, error: Exception) -> StoreFailed:
        import sqlite3

        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        hint = "Move the file away to start anew."
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            hint = "Make room on its disk; what was remembered before is safe."
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            hint = "Make it and its folder writable, and end what keeps it locked."
        return StoreFailed(f"The memory {self._path} cannot be used: {in_words(error)}.", hint)

    def store(
        self, key: str, content: str, category: str = "note", session: str = ""
    ) -> MemoryEntry:
        """Remember something; the same key again replaces what was there."""
        key = key.strip()
        if not key or not content.strip():
            raise BadInput("A memory needs a key and a content.")
        if len(content.encode()) > self._longest:
            raise BadInput(f"The content is longer than {self._longest} bytes.", "Make it shorter.")
        now = time.time_ns() // 1_000_000
        with self._using() as db:
            db.execute(
                "INSERT INTO entries (key, content, category, session, created, updated) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "content = excluded.content, category = excluded.category, "
                "session = excluded.session, updated = excluded.updated",
                (key, content, category, session, now, now),
            )
            self._trim(db)
        return MemoryEntry(key, content, category, session, now, now)

    def _trim(self, db: "sqlite3.Connection") -> None:
        (count,) = db.execute("SELECT count(*) FROM entries").fetchone()
        if count > self._limit:
            db.execute(
                "DELETE FROM entries WHERE id IN "
                "(SELECT id FROM entries ORDER BY updated, id LIMIT ?)",
                (count - self._limit,),
            )

    def recall(self, query: str, limit: int = 5) -> list[MemoryEntry]:
        """What is remembered about the words of a question, best first."""
        with self._using() as db:
            terms = self._rarest(db, {word.lower() for word in _WORD.findall(query)} - _EMPTY)
            if not terms:
                return []
            match = " OR ".join(f'"{term}"' for term in terms)
            return _select(
                db,
                "words JOIN entries e ON e.id = words.rowid "
                "WHERE words MATCH ? ORDER BY rank LIMIT ?",
                match, max(1, min(limit, 100)),
            )  # fmt: skip

    def _rarest(self, db: "sqlite3.Connection", words: set[str]) -> list[str]:
        """The words of a question that distinguish best."""
        counted: list[tuple[int, str]] = []
        for word in words:
            row = db.execute("SELECT doc FROM vocabulary WHERE term = ?", (word,)).fetchone()
            if row is not None:
                counted.append((row[0], word))
        counted.sort()
        telling = [word for count, word in counted if count <= _COMMON][:_TERMS]
        return telling or [word for _, word in counted[:1]]

    def forget(self, key: str) -> bool:
        with self._using() as db:
            return db.execute("DELETE FROM entries WHERE key = ?", (key,)).rowcount > 0

    def get(self, key: str) -> MemoryEntry | None:
        with self._using() as db:
            return next(iter(_select(db, "entries e WHERE key = ?", key)), None)

    def all(self, category: str = "", limit: int = 1_000) -> Sequence[MemoryEntry]:
        """Everything, newest first."""
        where, values = (" WHERE category = ?", [category]) if category else ("", [])
        with self._using() as db:
            return _select(db, f"entries e{where} ORDER BY updated DESC LIMIT ?", *values, limit)

    def purge(self, category: str = "") -> int:
        """Forget everything, or everything of one category; returns how much."""
        where, values = (" WHERE category = ?", (category,)) if category else ("", ())
        with self._using() as db:
            return int(db.execute(f"DELETE FROM entries{where}", values).rowcount)

    def close(self) -> None:
        with self._lock:
            if self._made is not None:
                self._made.close()
                self._made = None


def _select(db: "sqlite3.Connection", rest: str, *values: object) -> list[MemoryEntry]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM {rest}", values).fetchall()
    return [MemoryEntry(*row) for row in rows]


_COLUMNS = "e.key, e.content, e.category, e.session, e.created, e.updated"


class Memories:
    """The memories of all agents, opened when they are first needed."""

    def __init__(self, folder: str, *, limit: int = 100_000, longest: int = 8_192) -> None:
        self._folder = folder
        self._options: dict[str, Any] = {"limit": limit, "longest": longest}
        self._open: dict[str, Memory] = {}

    def of(self, agent: str) -> Memory:
        found = self._open.get(agent)
        if found is None:
            name = re.sub(r"[^\w.-]", "_", agent)
            if name != agent or agent.startswith("."):  # two aliases must not share a file
                import hashlib

                name = f"{name}-{hashlib.sha256(agent.encode()).hexdigest()[:8]}"
            path = os.path.join(self._folder, f"{name}.db")
            found = self._open[agent] = Memory(path, **self._options)
        return found

    def close(self) -> None:
        for memory in self._open.values():
            memory.close()
        self._open.clear()
