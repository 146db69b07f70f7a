"""What may be written to the database: each change is made ready by its caller, then done in the
writer's thread inside a transaction.

A change touches nothing but the database, so it can be done again when its group had to be undone.
"""

from typing import TYPE_CHECKING

from dragoman.engine.events import Ask, Settled
from dragoman.engine.faults import UnknownSession
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import Batch

from .rows import INFO_COLUMNS, encode, info_values, settled_of
from .rules import already, ask_exists, check_ask, check_batch, exists, moment, no_ask

if TYPE_CHECKING:
    from sqlite3 import Connection

INSERT_SESSION = (
    f"INSERT OR IGNORE INTO sessions (id, owner, leaf, {', '.join(INFO_COLUMNS)}, epoch, last_seq)"
    " VALUES (?1, ?2, NOT EXISTS (SELECT 1 FROM sessions WHERE parent = ?1),"
    f" {', '.join('?' * len(INFO_COLUMNS))}, 1, 0)"
)
UPDATE_SESSION = (
    f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in INFO_COLUMNS)}, last_seq = ?"
    " WHERE num = ?"
)
SET_LEAF = (
    "UPDATE sessions SET leaf = NOT EXISTS"
    " (SELECT 1 FROM sessions AS child WHERE child.parent = ?1) WHERE id = ?1"
)


class Create:
    def __init__(self, info: SessionInfo, owner: str) -> None:
        self._info = info
        self._values = (info.id, owner, *info_values(info))

    def __call__(self, connection: "Connection") -> int:
        if connection.execute(INSERT_SESSION, self._values).rowcount != 1:
            raise exists(self._info.id)
        if self._info.parent is not None:
            connection.execute(SET_LEAF, (self._info.parent,))
        return 1


class Take:
    """Make `owner` the writer unless somebody other than `former`, known to be dead, has it.

    Gives the new epoch and None, or 0 and who has it.
    """

    def __init__(self, session: str, owner: str, former: str | None) -> None:
        self._session = session
        self._owner = owner
        self._former = former

    def __call__(self, connection: "Connection") -> tuple[int, str | None]:
        row = connection.execute(
            "SELECT owner, epoch, num FROM sessions WHERE id = ?", (self._session,)
        ).fetchone()
        if row is None:
            raise UnknownSession(self._session)
        holder, epoch, num = row
        if holder is not None and holder not in (self._owner, self._former):
            return 0, holder
        connection.execute(
            "UPDATE sessions SET owner = ?, epoch = ? WHERE num = ?", (self._owner, epoch + 1, num)
        )
        return epoch + 1, None


class Give:
    """Nothing can be appended with the epoch that was given back: the next one is higher."""

    def __init__(self, session: str, epoch: int) -> None:
        self._values = (session, epoch)

    def __call__(self, connection: "Connection") -> None:
        connection.execute(
            "UPDATE sessions SET owner = NULL, epoch = epoch + 1 WHERE id = ? AND epoch = ?",
            self._values,
        )


class Append:
    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._values = info_values(batch.info)
        self._asked = [(ask, encode(ask)) for ask in batch.asked]
        self._settled = [(settled, encode(settled)) for settled in batch.settled]

    def __call__(self, connection: "Connection") -> int:
        batch = self._batch
        row = connection.execute(
            "SELECT num, epoch, last_seq, parent FROM sessions WHERE id = ?", (batch.session,)
        ).fetchone()
        if row is None:
            raise UnknownSession(batch.session)
        num, epoch, last_seq, parent = row
        check_batch(batch, epoch, last_seq)
        first = self._entries(connection, num) if batch.entries else 0
        last_seq += len(batch.entries)
        connection.execute(UPDATE_SESSION, (*self._values, last_seq, num))
        for ask, data in self._asked:
            self._ask(connection, num, ask, data)
        for settled, data in self._settled:
            self._settle(connection, num, settled, data)
        if batch.info.parent != parent:
            for changed in (parent, batch.info.parent):
                connection.execute(SET_LEAF, (changed,))
        return first

    def _entries(self, connection: "Connection", num: int) -> int:
        entries = self._batch.entries
        newest = connection.execute("SELECT value FROM counters WHERE name = 'gseq'").fetchone()[0]
        first: int = newest + 1
        connection.executemany(
            "INSERT INTO events (gseq, session, seq, at, kind, body) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (gseq, num, entry.seq, entry.at, entry.kind, entry.body)
                for gseq, entry in enumerate(entries, first)
            ],
        )
        connection.execute(
            "UPDATE counters SET value = ? WHERE name = 'gseq'", (newest + len(entries),)
        )
        return first

    def _ask(self, connection: "Connection", num: int, ask: Ask, data: bytes) -> None:
        check_ask(ask, self._batch.session)
        added = connection.execute(
            "INSERT OR IGNORE INTO asks (id, session, pending, at, ask) VALUES (?, ?, 1, ?, ?)",
            (ask.id, num, ask.at, data),
        )
        if added.rowcount != 1:
            raise ask_exists(ask.id)

    def _settle(self, connection: "Connection", num: int, settled: Settled, data: bytes) -> None:
        done = connection.execute(
            "UPDATE asks SET pending = 0, settled = ?, settled_at = ?"
            " WHERE id = ? AND session = ? AND pending = 1",
            (data, moment(self._batch), settled.ask_id, num),
        )
        if done.rowcount == 1:
            return
        row = connection.execute(
            "SELECT settled FROM asks WHERE id = ? AND session = ?", (settled.ask_id, num)
        ).fetchone()
        if row is None:
            raise no_ask(settled.ask_id)
        raise already(settled_of(row[0]))


class Delete:
    """Events and approvals go with their session."""

    def __init__(self, session: str) -> None:
        self._session = session

    def __call__(self, connection: "Connection") -> bool:
        row = connection.execute(
            "SELECT parent FROM sessions WHERE id = ?", (self._session,)
        ).fetchone()
        if row is None:
            return False
        connection.execute("DELETE FROM sessions WHERE id = ?", (self._session,))
        if row[0] is not None:
            connection.execute(SET_LEAF, row)
        return True


class Put:
    def __init__(self, space: str, key: str, value: bytes | None) -> None:
        self._place = (space, key)
        self._value = value

    def __call__(self, connection: "Connection") -> None:
        if self._value is None:
            connection.execute("DELETE FROM kv WHERE space = ? AND key = ?", self._place)
        else:
            connection.execute(
                "INSERT OR REPLACE INTO kv (space, key, value) VALUES (?, ?, ?)",
                (*self._place, self._value),
            )
