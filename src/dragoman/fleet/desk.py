"""The rows that nodes share: who is there, who has which session, what is asked of whom.

Leases are by the clock of the database alone. A session belongs to its owner as long as the owner's
lease lasts; a new owner gets a higher epoch, so what the old one still writes is refused.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import Fault, InUse, UnknownSession
from dragoman.engine.ports import Entry
from dragoman.store.postgres.changes import DEAD_NODE, NODE, PROTOCOL
from dragoman.store.postgres.link import clean
from dragoman.store.postgres.schema import STEPS
from dragoman.store.rows import entries_of

from . import words
from .words import Command, Result

if TYPE_CHECKING:
    from dragoman.store.postgres import PostgresStore

CHANNEL = "dragoman"
DUE = "'running', 'starting', 'interrupting'"
JOIN = """
INSERT INTO nodes AS n (name, owner, lease, seen, began, labels, schema, protocol, version, facts)
VALUES ($1, $2, clock_timestamp() + $3 * interval '1 second', clock_timestamp(), clock_timestamp(),
        $4, $5, $6, $7, $8)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease = excluded.lease,
    seen = excluded.seen, began = excluded.began, labels = excluded.labels, draining = false,
    schema = excluded.schema, protocol = excluded.protocol, version = excluded.version,
    facts = excluded.facts
WHERE n.lease <= clock_timestamp() OR n.owner = excluded.owner
RETURNING name
"""
RENEW = """
WITH old AS (
    SELECT owner, lease > clock_timestamp() AS held FROM nodes WHERE owner = $1 FOR UPDATE
)
UPDATE nodes SET lease = clock_timestamp() + $2 * interval '1 second', seen = clock_timestamp(),
    facts = $3
FROM old WHERE nodes.owner = old.owner RETURNING old.held, nodes.draining,
    (SELECT count(*) FROM nodes AS n WHERE n.owner <> $1 AND n.lease > clock_timestamp()) AS others
"""
# Only what is due is looked at: busy sessions (which are hot, or have a status of their own in an
# index), sessions with an open command, and questions whose time is over.
CLAIM = f"""
WITH due AS (
    SELECT num FROM sessions WHERE hot AND live_status IN ({DUE})
    UNION SELECT num FROM sessions WHERE status IN ({DUE}) AND NOT hot
    UNION SELECT session FROM commands WHERE done_at IS NULL
    UNION SELECT session FROM asks WHERE pending
        AND expires_at < extract(epoch FROM clock_timestamp()) * 1000
), picked AS (
    SELECT s.num FROM sessions AS s JOIN due USING (num)
    WHERE (s.owner IS NULL OR {DEAD_NODE})
        AND (NOT s.pinned OR s.home = $2) AND s.labels <@ $3::text[] AND s.written_by <= {PROTOCOL}
    ORDER BY s.home = $2 DESC, s.num LIMIT $4 FOR UPDATE OF s SKIP LOCKED
)
UPDATE sessions AS s SET owner = $1, epoch = epoch + 1, home = $2, written_by = {PROTOCOL}
FROM picked WHERE s.num = picked.num RETURNING s.id
"""
SEND = """
INSERT INTO commands (id, session, sender, kind, body)
SELECT $1, num, $3, $4, $5 FROM sessions WHERE id = $2 ON CONFLICT (id) DO NOTHING
"""
OPEN = """
SELECT c.id, s.id AS session, c.body FROM commands AS c JOIN sessions AS s ON s.num = c.session
WHERE c.done_at IS NULL AND s.owner = $1 ORDER BY c.num LIMIT 500
"""
FINISH = """
UPDATE commands SET done_at = coalesce(done_at, clock_timestamp()), result = $2
WHERE id = $1 AND result IS NULL
"""
DONE = """
SELECT id, result FROM commands WHERE id = ANY ($1) AND done_at IS NOT NULL
AND (result IS NOT NULL OR done_at < clock_timestamp() - interval '1 second')
"""
FOREIGN = """
SELECT e.seq, e.at, e.kind, e.body, e.gseq, s.id FROM events AS e
JOIN sessions AS s ON s.num = e.session
WHERE e.gseq > $1 AND e.gseq <= $2 AND s.owner IS DISTINCT FROM $4 ORDER BY e.gseq LIMIT $3
"""
LOOK = """
SELECT s.id, s.home, s.pinned, n.name IS NOT NULL AS there,
    coalesce(n.lease > clock_timestamp(), false) AS alive,
    coalesce((extract(epoch FROM n.seen) * 1000)::bigint, 0) AS seen_ms
FROM sessions AS s LEFT JOIN nodes AS n ON n.name = s.home WHERE s.id = ANY ($1)
"""
NODES = """
SELECT n.name, n.owner, n.lease > clock_timestamp() AS alive, n.draining, n.labels, n.schema,
    n.protocol, n.version, n.facts,
    extract(epoch FROM clock_timestamp() - n.seen)::float8 AS silent,
    (extract(epoch FROM n.seen) * 1000)::bigint AS seen_ms,
    (SELECT count(*) FROM sessions AS s WHERE s.owner = n.owner) AS sessions
FROM nodes AS n ORDER BY n.name
"""


class NodeRow(msgspec.Struct, frozen=True):
    """One node as the database knows it."""

    name: str
    owner: str
    alive: bool
    draining: bool
    labels: list[str]
    schema: int
    protocol: int
    version: str
    silent: float  # seconds since it was last heard of
    seen_ms: int
    sessions: int
    facts: dict[str, Any] = {}


class Place(msgspec.Struct, frozen=True):
    """Where a session is: who writes it, and where it belongs."""

    owner: str
    home: str
    pinned: bool
    alive: bool  # its owner is
    epoch: int


class Desk:
    """The shared rows, as one node uses them."""

    def __init__(self, store: "PostgresStore", owner: str) -> None:
        self.store = store
        self.owner = owner

    async def join(self, lease: float, version: str, facts: dict[str, Any]) -> None:
        """Be a node from now on. Raises InUse when another one has the name."""
        node = self.store.node
        made = await self._write(
            JOIN, node.name, self.owner, lease, [*node.labels], len(STEPS), PROTOCOL, version,
            words.encode(facts),
        )  # fmt: skip
        if not made:
            raise InUse(
                f"Another node is named {node.name}, and it is alive.",
                "Give this one a name of its own: [fleet] node.",
                owner=node.name,
            )

    async def leave(self) -> None:
        """Release every session and the lease, so that others need not wait for it to lapse."""
        await self._write(
            "UPDATE sessions SET owner = NULL, epoch = epoch + 1 WHERE owner = $1", self.owner
        )
        await self._write(
            "UPDATE nodes SET lease = clock_timestamp(), draining = false WHERE owner = $1",
            self.owner,
        )

    async def claim(self, most: int) -> Sequence[str]:
        """Own up to so many sessions that have something due and no owner; returns their ids."""
        node = self.store.node
        rows = await self._write(CLAIM, self.owner, node.name, [*node.labels], most)
        return [row[0] for row in rows]

    async def owned(self, sessions: Sequence[str]) -> dict[str, int]:
        """Those of these sessions that are still ours, and their epochs."""
        rows = await self.store.fetch(
            "SELECT id, epoch FROM sessions WHERE id = ANY ($1) AND owner = $2",
            [clean(one) for one in sessions],
            self.owner,
        )
        return {row[0]: row[1] for row in rows}

    async def strangers(self) -> Sequence[str]:
        """Sessions of ours that belong to another node now: somebody moved them."""
        rows = await self.store.fetch(
            "SELECT id FROM sessions WHERE owner = $1 AND pinned AND home <> $2",
            self.owner,
            self.store.node.name,
        )
        return [row[0] for row in rows]

    async def place(self, session: str) -> Place:
        """Where a session is. Raises UnknownSession."""
        rows = await self.store.fetch(
            "SELECT owner, home, pinned, epoch, coalesce((SELECT lease > clock_timestamp()"
            " FROM nodes WHERE nodes.owner = sessions.owner), false) AS alive"
            " FROM sessions WHERE id = $1",
            clean(session),
        )
        if not rows:
            raise UnknownSession(session)
        row = rows[0]
        return Place(row["owner"] or "", row["home"], row["pinned"], row["alive"], row["epoch"])

    async def nodes(self) -> list[NodeRow]:
        rows = await self.store.fetch(NODES)
        return [_node(row) for row in rows]

    async def absent(self, sessions: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Those of these sessions whose folder only a node has that is gone: which, and when it
        was last seen.
        """
        rows = await self.store.fetch(LOOK, [clean(one) for one in sessions])
        return {
            row["id"]: (row["home"], row["seen_ms"])
            for row in rows
            if row["pinned"] and not row["alive"]
        }

    async def homes(self, sessions: Sequence[str]) -> dict[str, str]:
        """The node that has or had each session."""
        rows = await self.store.fetch(
            "SELECT id, home FROM sessions WHERE id = ANY ($1)", [clean(one) for one in sessions]
        )
        return {row[0]: row[1] for row in rows}

    async def drain(self, node: str, draining: bool = True) -> bool:
        """Have a node give its sessions away; False: there is none of this name."""
        rows = await self._write(
            "UPDATE nodes SET draining = $2 WHERE name = $1 RETURNING name", node, draining
        )
        await self.hint()
        return bool(rows)

    async def move(self, session: str, node: str) -> None:
        """Have a session go on on another node. Raises UnknownSession, InUse."""
        if not any(one.name == node for one in await self.nodes()):
            raise InUse(f"There is no node {node}.", "Look at: dragoman fleet.", owner=node)
        rows = await self._write(
            "UPDATE sessions SET home = $2, pinned = true WHERE id = $1 RETURNING id",
            clean(session),
            node,
        )
        if not rows:
            raise UnknownSession(session)
        await self.hint()

    # --- commands ---

    async def send(self, id: str, session: str, command: Command) -> None:
        """Write a command down; once this returns it is not lost. Raises UnknownSession."""
        async with self.store.link.reading() as connection:
            done = await connection.execute(
                SEND, id, clean(session), self.owner, words.kind_of(command), words.encode(command)
            )
            if done == "INSERT 0 0":
                known = await connection.fetchval("SELECT 1 FROM commands WHERE id = $1", id)
                if known is None:
                    raise UnknownSession(session)
            await connection.execute(f"NOTIFY {CHANNEL}")

    async def commands(self) -> list[tuple[str, str, Command]]:
        """What others ask of our sessions, oldest first: (id, session, command)."""
        rows = await self.store.fetch(OPEN, self.owner)
        return [(row["id"], row["session"], words.command_of(row["body"])) for row in rows]

    async def finish(self, id: str, result: Result) -> None:
        await self._write(FINISH, id, words.encode(result))
        await self.hint()

    async def results(self, ids: Sequence[str]) -> dict[str, Result]:
        rows = await self.store.fetch(DONE, [*ids])
        return {row["id"]: words.result_of(row["result"]) for row in rows}

    async def tidy(self, seconds: float) -> None:
        """Remove what was done long ago."""
        await self._write(
            "DELETE FROM commands WHERE done_at < clock_timestamp() - $1 * interval '1 second'",
            seconds,
        )

    async def foreign(self, after: int, upto: int, limit: int) -> tuple[list[Entry], int]:
        """Entries of sessions that others write, and up to which place they were looked for."""
        rows = await self.store.fetch(FOREIGN, after, upto, limit, self.owner)
        reached = rows[-1]["gseq"] if len(rows) == limit else upto
        return [*entries_of((tuple(row) for row in rows), since=after)], reached

    async def hint(self) -> None:
        """Have the others look; a hint that is lost costs them a poll."""
        await self._write(f"NOTIFY {CHANNEL}")

    async def _write(self, sql: str, *values: Any) -> Sequence[Any]:
        return await self.store.fetch(sql, *values)


def _node(row: Any) -> NodeRow:
    try:
        facts = msgspec.json.decode(row["facts"], type=dict[str, Any])
    except msgspec.DecodeError:
        facts = {}
    return NodeRow(
        row["name"], row["owner"], row["alive"], row["draining"], [*row["labels"]], row["schema"],
        row["protocol"], row["version"], row["silent"], row["seen_ms"], row["sessions"], facts,
    )  # fmt: skip


def owner_name(node: str, mark: str) -> str:
    """The name under which one life of a node owns sessions."""
    return f"{NODE}{node}:{mark}"


def node_of(owner: str) -> str:
    """The node behind an owner's name; empty: it is none."""
    return owner.removeprefix(NODE).rpartition(":")[0] if owner.startswith(NODE) else ""


def told(fault: Fault) -> Result:
    return Result(refusal=words.refusal_of(fault))
