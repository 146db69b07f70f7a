"""The file `checkpoints.db`: contents by hash, what lies in workspaces, what turns changed."""

import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from dragoman.standing import identity

_SCHEMA = """
CREATE TABLE IF NOT EXISTS blobs (hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
  space TEXT NOT NULL, path BLOB NOT NULL, stamp BLOB NOT NULL, mode INTEGER NOT NULL, hash BLOB,
  PRIMARY KEY (space, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spaces (space TEXT PRIMARY KEY, seen INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
  n INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, turn TEXT NOT NULL,
  space TEXT NOT NULL, at INTEGER NOT NULL, undone INTEGER NOT NULL DEFAULT 0,
  scanning INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '', UNIQUE (session, turn));
CREATE TABLE IF NOT EXISTS changes (
  n INTEGER NOT NULL, path BLOB NOT NULL, before_mode INTEGER NOT NULL, before BLOB,
  after_mode INTEGER NOT NULL, after BLOB, PRIMARY KEY (n, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS others (
  n INTEGER NOT NULL, path BLOB NOT NULL, left_mode INTEGER NOT NULL, left BLOB,
  met_mode INTEGER NOT NULL, met BLOB);
CREATE INDEX IF NOT EXISTS others_n ON others (n);
"""
_VERSION = 1
_WAIT = 10.0
UNKNOWN = -1  # the mode of a file after a call that has not ended


class State(NamedTuple):
    """A file at one moment: its type and permissions, and its content. `mode` 0: there is none.

    Without a hash there is something whose content was not kept.
    """

    mode: int = 0
    hash: bytes | None = None


NOTHING = State()


class FileChange(NamedTuple):
    path: str
    before: State
    after: State


class ChangedTurn(NamedTuple):
    """One turn that changed something."""

    n: int
    turn: str
    at: int
    undone: int  # 0: not; else the number of the undo, so that a redo takes them back together
    scanning: bool
    note: str
    space: str


class Seen(NamedTuple):
    """A file as it was last seen in a workspace."""

    stamp: bytes
    state: State


def hash_of(data: bytes) -> bytes:
    return sha256(data).digest()


def short(path: str, space: str) -> str:
    """A path relative to the workspace that it is in."""
    return path[len(space) + 1 :] if path.startswith(space + "/") else path


class Database:
    """One connection; whoever uses it holds the keeper's lock."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.close(fd)
        self.file = identity(path)
        self._db = sqlite3.connect(
            path, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        self._db.execute("PRAGMA auto_vacuum=INCREMENTAL")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        with self.writing():
            found = self._db.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, _VERSION):  # of another release: nothing in it is worth a failure
                for table in ("blobs", "files", "spaces", "turns", "changes", "others"):
                    self._db.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version={_VERSION}")

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # --- contents ---

    def put(self, data: bytes) -> bytes:
        """Keep a content; returns its hash."""
        key = hash_of(data)
        known = self._db.execute("SELECT 1 FROM blobs WHERE hash=?", (key,)).fetchone()
        if known is None:
            self._db.execute("INSERT INTO blobs VALUES (?,?)", (key, zlib.compress(data, 1)))
        return key

    def get(self, key: bytes) -> bytes | None:
        """A content; None: it was not kept, or is damaged."""
        found = self._db.execute("SELECT data FROM blobs WHERE hash=?", (key,)).fetchone()
        try:
            data = zlib.decompress(found[0]) if found else None
        except zlib.error:
            return None
        return data if data is not None and hash_of(data) == key else None

    # --- workspaces ---

    def seen(self, space: str) -> dict[str, Seen]:
        """The files of a workspace whose content is kept, by path."""
        rows = self._db.execute(
            "SELECT path, stamp, mode, hash FROM files WHERE space=?", (space,)
        ).fetchall()
        return {os.fsdecode(path): Seen(stamp, State(mode, key)) for path, stamp, mode, key in rows}

    def saw(self, space: str, found: Iterable[tuple[str, Seen]], gone: Iterable[str]) -> None:
        """Remember how the files of a workspace are now."""
        self._db.executemany(
            "DELETE FROM files WHERE space=? AND path=?",
            [(space, os.fsencode(path)) for path in gone],
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?,?,?,?,?)",
            [
                (space, os.fsencode(path), one.stamp, one.state.mode, one.state.hash)
                for path, one in found
            ],
        )
        self._db.execute(
            "INSERT OR REPLACE INTO spaces VALUES (?,?)", (space, time.time_ns() // 1_000_000)
        )

    # --- turns ---

    def turn(self, session: str, turn: str, space: str) -> ChangedTurn:
        """The row of a turn, made when it is the first change of it."""
        self._db.execute(
            "INSERT OR IGNORE INTO turns (session, turn, space, at) VALUES (?,?,?,?)",
            (session, turn, space, time.time_ns() // 1_000_000),
        )
        return next(row for row in self.turns(session) if row.turn == turn)

    def turns(self, session: str) -> list[ChangedTurn]:
        rows = self._db.execute(
            "SELECT n, turn, at, undone, scanning, note, space FROM turns "
            "WHERE session=? ORDER BY n",
            (session,),
        ).fetchall()
        return [ChangedTurn(n, turn, at, undone, bool(s), note, space) for
                n, turn, at, undone, s, note, space in rows]  # fmt: skip

    def mark(self, n: int, *, scanning: bool | None = None, note: str = "") -> None:
        if scanning is not None:
            self._db.execute("UPDATE turns SET scanning=? WHERE n=?", (int(scanning), n))
        if note:
            self._db.execute(
                "UPDATE turns SET note = CASE WHEN instr(note, ?) THEN note "
                "ELSE trim(note || ' ' || ?) END WHERE n=?",
                (note, note, n),
            )

    def undone(self, numbers: Sequence[int], value: int) -> None:
        self._db.executemany("UPDATE turns SET undone=? WHERE n=?", [(value, n) for n in numbers])
        if value:  # nothing of others is in the way any more
            self._db.executemany("DELETE FROM others WHERE n=?", [(n,) for n in numbers])

    def drop(self, numbers: Iterable[int]) -> None:
        for n in numbers:
            self._db.execute("DELETE FROM changes WHERE n=?", (n,))
            self._db.execute("DELETE FROM others WHERE n=?", (n,))
            self._db.execute("DELETE FROM turns WHERE n=?", (n,))

    def changes(self, n: int) -> list[FileChange]:
        return self._listed("path, before_mode, before, after_mode, after FROM changes", n, "path")

    def change(self, n: int, change: FileChange) -> None:
        """Add a change, or make it the newer end of one that is there; drop what changed back."""
        path = os.fsencode(change.path)
        self._db.execute(
            "INSERT INTO changes VALUES (?,?,?,?,?,?) ON CONFLICT (n, path) DO UPDATE SET "
            "after_mode=excluded.after_mode, after=excluded.after",
            (n, path, *change.before, *change.after),
        )
        self._db.execute(
            "DELETE FROM changes WHERE n=? AND path=? AND before_mode=after_mode "
            "AND before IS after AND (before IS NOT NULL OR before_mode=0)",
            (n, path),
        )

    def others(self, n: int) -> list[FileChange]:
        """What others did to files between two changes of a turn, in order."""
        return self._listed("path, left_mode, left, met_mode, met FROM others", n, "rowid")

    def _listed(self, what: str, n: int, order: str) -> list[FileChange]:
        rows = self._db.execute(f"SELECT {what} WHERE n=? ORDER BY {order}", (n,)).fetchall()
        return [
            FileChange(os.fsdecode(path), State(bm, b), State(am, a)) for path, bm, b, am, a in rows
        ]

    def met(self, n: int, other: FileChange) -> None:
        """Add what others did to a file since the turn changed it."""
        self._db.execute(
            "INSERT INTO others VALUES (?,?,?,?,?,?)",
            (n, os.fsencode(other.path), *other.before, *other.after),
        )

    # --- size ---

    def size(self) -> int:
        pages = self._db.execute("PRAGMA page_count").fetchone()[0]
        free = self._db.execute("PRAGMA freelist_count").fetchone()[0]
        return int((pages - free) * self._db.execute("PRAGMA page_size").fetchone()[0])

    def shrink(self, limit: int, space: str) -> None:
        """Let the oldest go until no more than `limit` bytes are used; `space` last of all."""
        while self.size() > limit:
            with self.writing():
                oldest = self._db.execute("SELECT n FROM turns ORDER BY n").fetchall()
                others = self._db.execute(
                    "SELECT space FROM spaces WHERE space != ? ORDER BY seen LIMIT 1", (space,)
                ).fetchone()
                if others is not None:
                    self._leave(others[0])
                elif oldest:
                    self.drop(n for (n,) in oldest[: max(1, len(oldest) // 4)])
                else:
                    self._leave(space)
                self._sweep()
            self._db.execute("PRAGMA incremental_vacuum")
            if others is None and not oldest:
                return

    def _leave(self, space: str) -> None:
        self._db.execute("DELETE FROM files WHERE space=?", (space,))
        self._db.execute("DELETE FROM spaces WHERE space=?", (space,))

    def _sweep(self) -> None:
        self._db.execute(
            "DELETE FROM blobs WHERE hash NOT IN (SELECT hash FROM files WHERE hash NOT NULL "
            "UNION SELECT before FROM changes WHERE before NOT NULL "
            "UNION SELECT after FROM changes WHERE after NOT NULL "
            "UNION SELECT left FROM others WHERE left NOT NULL "
            "UNION SELECT met FROM others WHERE met NOT NULL)"
        )
