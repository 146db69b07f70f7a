"""What may be written: each change is made ready by its caller, then done by the writer inside a
transaction. One that is `again` may have been committed before the connection was lost.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.events import Ask, Settled, already
from dragoman.engine.faults import InUse, UnknownAsk, UnknownSession, WrongState
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import Batch
from dragoman.engine.traits import Trait

from ..rows import columns_of, encode, pack, settled_of
from ..rules import ask_exists, check_ask, check_batch, exists, moment
from .link import clean

if TYPE_CHECKING:
    from asyncpg import Connection

PROTOCOL = 1  # of what nodes write for each other; an older one never writes a newer session
# The columns that hardly ever change.
LASTING = ("created_at", "archived", "agent", "cwd", "parent", "origin", "run_id", "key", "words")
_MARKS = ", ".join(f"${n}" for n in range(10, 10 + len(LASTING)))
INSERT_SESSION = (
    "INSERT INTO sessions (id, owner, leaf, epoch, last_seq, updated_at, status, info, written_by,"
    f" home, pinned, labels, {', '.join(LASTING)})"
    " VALUES ($1, $2, NOT EXISTS (SELECT 1 FROM sessions WHERE parent = $1),"
    f" 1, 0, $3, $4, $5, $6, $7, $8, $9, {_MARKS}) ON CONFLICT (id) DO NOTHING RETURNING num"
)
SELECT_SESSION = (
    f"SELECT num, epoch, last_seq, {', '.join(LASTING)} FROM sessions WHERE id = $1 FOR UPDATE"
)
UPDATE_SESSION = (
    "UPDATE sessions SET live_at = $2, live_status = $3, info = $4, last_seq = $5, written_by = $6,"
    f" hot = true, {', '.join(f'{name} = ${n}' for n, name in enumerate(LASTING, 7))}"
    " WHERE num = $1"
)
SET_LEAF = (
    "UPDATE sessions SET leaf = NOT EXISTS"
    " (SELECT 1 FROM sessions AS child WHERE child.parent = sessions.id) WHERE id = $1"
)
NUMBERS = "UPDATE counters SET value = value + $1 WHERE name = 'gseq' RETURNING value - $1"
INSERT_EVENT = (
    "INSERT INTO events (gseq, session, seq, at, kind, body) VALUES ($1, $2, $3, $4, $5, $6)"
)
# A node of a fleet has a session as long as its lease lasts, by the clock of the database.
NODE = "node:"
DEAD_NODE = (
    f"(s.owner LIKE '{NODE}%' AND NOT EXISTS"
    " (SELECT 1 FROM nodes AS n WHERE n.owner = s.owner AND n.lease > clock_timestamp()))"
)
# A session whose folder only one node sees stays with it; one that wants labels needs them all.
HERE = "($4::text = '' OR (NOT s.pinned OR s.home = $4) AND s.labels <@ $5::text[])"
# Whether only its node sees a session's folder: `{roots}` are those that every node sees.
PINNED = (
    "NOT EXISTS (SELECT FROM unnest({roots}::text[]) AS shared(root)"
    " WHERE s.cwd = root OR starts_with(s.cwd, root || '/'))"
)
TAKE = (
    f"UPDATE sessions AS s SET owner = $2, epoch = epoch + 1, written_by = {PROTOCOL},"
    " home = CASE WHEN $4 = '' THEN home ELSE $4 END,"
    f" pinned = CASE WHEN $4 = '' THEN pinned ELSE {PINNED.format(roots='$6')} END"
    f" WHERE id = $1 AND written_by <= {PROTOCOL} AND {HERE}"
    f" AND (owner IS NULL OR owner = $2 OR owner = $3 OR {DEAD_NODE})"
    " RETURNING epoch"
)

MADE = 4096  # sessions whose lasting columns are at hand
_made: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}
HERE_ALONE = HERE.replace("$4", "$2").replace("$5", "$3") + " AS here"


def lasting_of(info: SessionInfo) -> tuple[Any, ...]:
    """The lasting columns of a row; what was made for its last change serves while it is right."""
    given = (
        info.title, info.query, info.extra, info.agent, info.cwd, info.parent, info.origin,
        info.archived, info.created_at,
    )  # fmt: skip
    known = _made.get(info.id)
    if known is not None and known[0] == given:
        return known[1]
    if len(_made) >= MADE:
        _made.clear()
    made = _made_of(info)
    _made[info.id] = (given, made)
    return made


def _made_of(info: SessionInfo) -> tuple[Any, ...]:
    return (
        info.created_at,
        info.archived,
        clean(info.agent),
        clean(info.cwd),
        None if info.parent is None else clean(info.parent),
        clean(info.origin),
        *(None if value is None else clean(value) for value in columns_of(info.extra)),
        clean(f"{info.title}\n{info.query}".lower()),
    )


class Wanted(Trait, frozen=True):
    """What a session wants of the node that has it."""

    NAME = "fleet"

    labels: tuple[str, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """What of a fleet this process is; without a name it is none."""

    name: str = ""
    labels: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()  # folders that every node sees

    @property
    def stems(self) -> list[str]:
        """The shared folders without a slash at their end."""
        return [root.rstrip("/") for root in self.roots]

    def pins(self, cwd: str) -> bool:
        """Whether only this node sees a folder."""
        if not self.name:
            return False
        return not any(cwd == stem or cwd.startswith(f"{stem}/") for stem in self.stems)


class Create:
    def __init__(self, info: SessionInfo, owner: str, node: Node) -> None:
        self._info = info
        self._owner = owner
        self._node = node
        self._labels = [clean(one) for one in Wanted.of(info.extra).labels]
        self._data = encode(info)

    async def __call__(self, connection: "Connection[Any]", again: bool) -> int:
        info = self._info
        id = clean(info.id)
        num = await connection.fetchval(
            INSERT_SESSION, id, self._owner, info.updated_at, info.status, self._data, PROTOCOL,
            self._node.name, self._node.pins(info.cwd), self._labels, *lasting_of(info),
        )  # fmt: skip
        if num is None:
            row = await connection.fetchrow(
                "SELECT owner, epoch, last_seq FROM sessions WHERE id = $1", id
            )
            if again and row is not None and tuple(row) == (self._owner, 1, 0):
                return 1
            raise exists(info.id)
        if info.parent is not None:
            await connection.execute(SET_LEAF, clean(info.parent))
        return 1


class Take:
    """Make `owner` the writer unless somebody other than `former`, known to be dead, has it.

    Gives the new epoch and None, or 0 and who has it.
    """

    def __init__(self, session: str, owner: str, former: str | None, node: Node) -> None:
        self._values = (clean(session), owner, former, node.name, [*node.labels])
        self._roots = node.stems
        self._session = session

    async def __call__(self, connection: "Connection[Any]", again: bool) -> tuple[int, str | None]:
        epoch = await connection.fetchval(TAKE, *self._values, self._roots)
        if epoch is not None:
            return epoch, None
        row = await connection.fetchrow(
            f"SELECT owner, written_by, home, {HERE_ALONE} FROM sessions AS s WHERE id = $1",
            self._values[0],
            *self._values[3:],
        )
        if row is None:
            raise UnknownSession(self._session)
        if row["written_by"] > PROTOCOL:
            raise InUse(
                f"Session {self._session} was written by a newer version of Dragoman.",
                "Update Dragoman on this machine, or use a node that is newer.",
                owner=row["owner"] or "",
                session=self._session,
            )
        if not row["here"]:
            raise InUse(
                f"Session {self._session} belongs to node {row['home']}.",
                "Ask that node, or move the session: dragoman fleet move.",
                owner=row["owner"] or "",
                session=self._session,
                home=row["home"],
            )
        return 0, row["owner"] or ""


class Give:
    """Nothing can be appended with the epoch that was given back: the next one is higher."""

    def __init__(self, session: str, epoch: int) -> None:
        self._values = (clean(session), epoch)

    async def __call__(self, connection: "Connection[Any]", again: bool) -> None:
        await connection.execute(
            "UPDATE sessions SET owner = NULL, epoch = epoch + 1 WHERE id = $1 AND epoch = $2",
            *self._values,
        )


class Append:
    __slots__ = (
        "_asked", "_settled", "batch", "count", "first", "id", "info", "lasting", "num", "plain",
        "rows",
    )  # fmt: skip

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.id = clean(batch.session)
        self.info = encode(batch.info)
        self.lasting = lasting_of(batch.info)
        entries = batch.entries
        self.rows = pack(entries)
        self.count = len(entries)
        self.first = entries[0].seq if entries else 0  # 0: they do not go one after the other
        for seq, entry in enumerate(entries, self.first):
            if entry.seq != seq:
                self.first = 0
        self.num = 0  # of the session's row, once it was looked up
        # Whether it adds entries and changes the row, and nothing else.
        self.plain = batch.info.id == batch.session and not batch.handled
        self._asked: Sequence[tuple[Ask, bytes]] = ()
        self._settled: Sequence[tuple[Settled, bytes]] = ()
        if batch.asked or batch.settled:
            self.plain = False
            self._asked = [(ask, encode(ask)) for ask in batch.asked]
            self._settled = [(settled, encode(settled)) for settled in batch.settled]

    async def __call__(self, connection: "Connection[Any]", again: bool) -> int:
        batch = self.batch
        row = await connection.fetchrow(SELECT_SESSION, self.id)
        if row is None:
            raise UnknownSession(batch.session)
        num, epoch, last_seq, *lasting = row
        self.num = num
        if again and epoch == batch.epoch and batch.entries:
            if last_seq >= batch.entries[-1].seq:  # nobody else has this epoch: it was ours
                return await self._placed(connection, num)
        check_batch(batch, epoch, last_seq)
        first = 0
        if self.rows:
            newest = await connection.fetchval(NUMBERS, self.count)
            first = newest + 1
            for count, at, kind, body in self.rows:
                newest += count
                last_seq += count
                await connection.execute(INSERT_EVENT, newest, num, last_seq, at, clean(kind), body)
        info = batch.info
        await connection.execute(
            UPDATE_SESSION, num, info.updated_at, info.status, self.info, last_seq, PROTOCOL,
            *self.lasting,
        )  # fmt: skip
        for ask, data in self._asked:
            await self._ask(connection, num, ask, data)
        for settled, data in self._settled:
            await self._settle(connection, num, settled, data)
        if batch.handled:
            done = await connection.fetchval(
                "UPDATE commands SET done_at = clock_timestamp() WHERE id = $1 AND session = $2"
                " AND done_at IS NULL RETURNING id",
                batch.handled,
                num,
            )
            if done is None:
                raise WrongState(f"{batch.handled} was done before.", handled=batch.handled)
        parent = lasting[LASTING.index("parent")]
        if self.lasting[LASTING.index("parent")] != parent:
            for changed in (parent, self.lasting[LASTING.index("parent")]):
                await connection.execute(SET_LEAF, changed)
        return first

    async def _placed(self, connection: "Connection[Any]", num: int) -> int:
        """Where the first entry was stored."""
        row = await connection.fetchrow(
            "SELECT seq, gseq FROM events WHERE session = $1 AND seq >= $2 ORDER BY seq LIMIT 1",
            num,
            self.batch.entries[0].seq,
        )
        assert row is not None
        first: int = row["gseq"] - (row["seq"] - self.batch.entries[0].seq)
        return first

    async def _ask(self, connection: "Connection[Any]", num: int, ask: Ask, data: bytes) -> None:
        check_ask(ask, self.batch.session)
        added = await connection.fetchval(
            "INSERT INTO asks (id, session, pending, at, expires_at, ask)"
            " VALUES ($1, $2, true, $3, $4, $5) ON CONFLICT (id) DO NOTHING RETURNING num",
            clean(ask.id), num, ask.at, ask.expires_at, data,
        )  # fmt: skip
        if added is None:
            raise ask_exists(ask.id)

    async def _settle(
        self, connection: "Connection[Any]", num: int, settled: Settled, data: bytes
    ) -> None:
        id = clean(settled.ask_id)
        done = await connection.fetchval(
            "UPDATE asks SET pending = false, settled = $1, settled_at = $2"
            " WHERE id = $3 AND session = $4 AND pending RETURNING num",
            data, moment(self.batch), id, num,
        )  # fmt: skip
        if done is not None:
            return
        row = await connection.fetchrow(
            "SELECT settled FROM asks WHERE id = $1 AND session = $2", id, num
        )
        if row is None:
            raise UnknownAsk.named(settled.ask_id)
        raise already(settled_of(row[0]))


class Delete:
    """Events and approvals go with their session."""

    def __init__(self, session: str) -> None:
        self._session = clean(session)

    async def __call__(self, connection: "Connection[Any]", again: bool) -> bool:
        row = await connection.fetchrow(
            "DELETE FROM sessions WHERE id = $1 RETURNING num, parent", self._session
        )
        if row is None:
            return again
        await connection.execute("DELETE FROM events WHERE session = $1", row["num"])
        await connection.execute("DELETE FROM words WHERE session = $1", row["num"])
        if row["parent"] is not None:
            await connection.execute(SET_LEAF, row["parent"])
        return True


class Pop:
    """Said once more after a lost connection, it may find nothing: then nobody was given it."""

    def __init__(self, space: str, key: str) -> None:
        self._place = (clean(space), clean(key))

    async def __call__(self, connection: "Connection[Any]", again: bool) -> bytes | None:
        sql = "DELETE FROM kv WHERE space = $1 AND key = $2 RETURNING value"
        value: bytes | None = await connection.fetchval(sql, *self._place)
        return value


class Put:
    def __init__(self, space: str, key: str, value: bytes | None) -> None:
        self._place = (clean(space), clean(key))
        self._value = value

    async def __call__(self, connection: "Connection[Any]", again: bool) -> None:
        if self._value is None:
            await connection.execute("DELETE FROM kv WHERE space = $1 AND key = $2", *self._place)
        else:
            await connection.execute(
                "INSERT INTO kv (space, key, value) VALUES ($1, $2, $3)"
                " ON CONFLICT (space, key) DO UPDATE SET value = excluded.value",
                *self._place,
                self._value,
            )
