"""What may be written to the database: each change is made ready by its caller, then done in the
writer's thread inside a transaction.

A change touches nothing but the database, so it can be done again when its group had to be undone.
What the writer knows of sessions is brought up to date by `committed`, once it is true.
"""

from typing import TYPE_CHECKING

from dragoman.engine.events import Ask, Settled, already
from dragoman.engine.faults import UnknownAsk, UnknownSession
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import Batch

from .known import Known, RowPlace
from .rows import INFO_COLUMNS, LASTING, MOVING, encode, info_values, pack, settled_of
from .rules import ask_exists, check_ask, check_batch, exists, moment

if TYPE_CHECKING:
    from sqlite3 import Connection

INSERT_SESSION = (
    f"INSERT OR IGNORE INTO sessions (id, owner, leaf, {', '.join(INFO_COLUMNS)}, epoch, last_seq)"
    " VALUES (?, ?, NOT EXISTS (SELECT 1 FROM sessions WHERE parent = ?),"
    f" {', '.join('?' * len(INFO_COLUMNS))}, 1, 0)"
)
SELECT_SESSION = (
    f"SELECT num, epoch, last_seq, hot, {', '.join(LASTING)} FROM sessions WHERE id = ?"
)
# Only columns that change are named: each index with a named column is written anew.
MOVE = "UPDATE sessions SET live_at = ?, live_status = ?, info = ?, last_seq = ?"
UPDATE_HOT = f"{MOVE} WHERE num = ?"
UPDATE_COLD = f"{MOVE}, hot = 1 WHERE num = ?"
UPDATE_ALL = f"{MOVE}, hot = 1, {', '.join(f'{name} = ?' for name in LASTING)} WHERE num = ?"
NEWEST = (
    "SELECT max(value, (SELECT coalesce(max(gseq), 0) FROM events))"
    " FROM counters WHERE name = 'gseq'"
)
INSERT_EVENT = "INSERT INTO events (gseq, session, seq, at, kind, body) VALUES (?, ?, ?, ?, ?, ?)"
SET_LEAF = (
    "UPDATE sessions SET leaf = NOT EXISTS"
    " (SELECT 1 FROM sessions AS child WHERE child.parent = sessions.id) WHERE id = ?"
)


class Create:
    def __init__(self, info: SessionInfo, owner: str) -> None:
        self._info = info
        self._values = (info.id, owner, info.id, *info_values(info))

    def __call__(self, connection: "Connection") -> int:
        if connection.execute(INSERT_SESSION, self._values).rowcount != 1:
            raise exists(self._info.id)
        if self._info.parent is not None:
            connection.execute(SET_LEAF, (self._info.parent,))
        return 1

    def committed(self, known: Known) -> None:
        """A new row is nothing that was known."""


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

    def committed(self, known: Known) -> None:
        known.forget(self._session)


class Give:
    """Nothing can be appended with the epoch that was given back: the next one is higher."""

    def __init__(self, session: str, epoch: int) -> None:
        self._values = (session, epoch)

    def __call__(self, connection: "Connection") -> None:
        connection.execute(
            "UPDATE sessions SET owner = NULL, epoch = epoch + 1 WHERE id = ? AND epoch = ?",
            self._values,
        )

    def committed(self, known: Known) -> None:
        known.forget(self._values[0])


class Append:
    __slots__ = ("_asked", "_settled", "batch", "lasting", "moving", "newest", "place", "rows")

    def __init__(self, batch: Batch) -> None:
        values = info_values(batch.info)
        self.batch = batch
        self.moving = values[: len(MOVING)]
        self.lasting = values[len(MOVING) :]
        self.rows = pack(batch.entries)
        self._asked = [(ask, encode(ask)) for ask in batch.asked]
        self._settled = [(settled, encode(settled)) for settled in batch.settled]

    def __call__(self, connection: "Connection") -> int:
        batch = self.batch
        row = connection.execute(SELECT_SESSION, (batch.session,)).fetchone()
        if row is None:
            raise UnknownSession(batch.session)
        num, epoch, last_seq, hot, *lasting = row
        check_batch(batch, epoch, last_seq)
        self.newest = connection.execute(NEWEST).fetchone()[0]
        first = self.newest + 1 if batch.entries else 0
        for count, *event in self.rows:
            self.newest += count
            last_seq += count
            connection.execute(INSERT_EVENT, (self.newest, num, last_seq, *event))
        if self.lasting != tuple(lasting):
            values = (*self.moving, last_seq, *self.lasting, num)
            connection.execute(UPDATE_ALL, values)
        else:
            connection.execute(UPDATE_HOT if hot else UPDATE_COLD, (*self.moving, last_seq, num))
        for ask, data in self._asked:
            self._ask(connection, num, ask, data)
        for settled, data in self._settled:
            self._settle(connection, num, settled, data)
        parent = lasting[LASTING.index("parent")]
        if batch.info.parent != parent:
            for changed in (parent, batch.info.parent):
                connection.execute(SET_LEAF, (changed,))
        self.place = RowPlace(num, epoch, last_seq, self.lasting)
        return first

    def committed(self, known: Known) -> None:
        known.learn(self.batch.session, self.place, self.newest)

    @property
    def plain(self) -> bool:
        """Whether it adds entries and changes the row, and nothing else."""
        return not (self._asked or self._settled)

    def _ask(self, connection: "Connection", num: int, ask: Ask, data: bytes) -> None:
        check_ask(ask, self.batch.session)
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
            (data, moment(self.batch), settled.ask_id, num),
        )
        if done.rowcount == 1:
            return
        row = connection.execute(
            "SELECT settled FROM asks WHERE id = ? AND session = ?", (settled.ask_id, num)
        ).fetchone()
        if row is None:
            raise UnknownAsk.named(settled.ask_id)
        raise already(settled_of(row[0]))


class Delete:
    """Events and approvals go with their session."""

    def __init__(self, session: str) -> None:
        self._session = session

    def __call__(self, connection: "Connection") -> bool:
        row = connection.execute(
            "SELECT parent, num FROM sessions WHERE id = ?", (self._session,)
        ).fetchone()
        if row is None:
            return False
        from .search import forget

        forget(connection, row[1])
        # A number is never used twice, also after the newest events are gone.
        connection.execute(f"UPDATE counters SET value = ({NEWEST}) WHERE name = 'gseq'")
        connection.execute("DELETE FROM sessions WHERE id = ?", (self._session,))
        if row[0] is not None:
            connection.execute(SET_LEAF, row[:1])
        return True

    def committed(self, known: Known) -> None:
        known.forget(self._session)


class Pop:
    def __init__(self, space: str, key: str) -> None:
        self._place = (space, key)

    def __call__(self, connection: "Connection") -> bytes | None:
        sql = "SELECT value FROM kv WHERE space = ? AND key = ?"
        row = connection.execute(sql, self._place).fetchone()
        connection.execute("DELETE FROM kv WHERE space = ? AND key = ?", self._place)
        return None if row is None else bytes(row[0])

    def committed(self, known: Known) -> None:
        """Small values are nothing that is known of sessions."""


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

    def committed(self, known: Known) -> None:
        """Small values are nothing that is known of sessions."""
