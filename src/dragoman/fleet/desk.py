"""The rows that nodes share: who is there, who has which session, what is asked of whom.

Leases are by the clock of the database alone. A session belongs to its owner as long as the owner's
lease lasts; a new owner gets a higher epoch, so what the old one still writes is refused.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput, Fault, InUse, StoreFailed, UnknownSession
from dragoman.engine.info import Whereabouts
from dragoman.engine.ports import Entry
from dragoman.engine.ports.rows import NodeRow as NodeRow
from dragoman.engine.refusal import refusal_of
from dragoman.store.postgres.changes import DEAD_NODE, NODE, PINNED, PROTOCOL
from dragoman.store.postgres.link import clean, driver
from dragoman.store.postgres.schema import STEPS
from dragoman.store.rows import entries_of

from . import words
from .words import Command, Result

if TYPE_CHECKING:
    from dragoman.store.postgres import PostgresStore

CHANNEL = "dragoman"
GUEST = "~"  # before the process of a command that is a node while it runs
DUE = "'running', 'starting', 'interrupting'"
JOIN = """
INSERT INTO nodes AS n (name, owner, lease, seen, began, labels, schema, protocol, version, facts)
VALUES ($1, $2, clock_timestamp() + $3 * interval '1 second', clock_timestamp(), clock_timestamp(),
        $4, $5, $6, $7, $8)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease = excluded.lease,
    seen = excluded.seen, began = excluded.began, labels = excluded.labels, draining = false,
    schema = excluded.schema, protocol = excluded.protocol, version = excluded.version,
    facts = excluded.facts
WHERE n.lease <= clock_timestamp() OR n.owner = excluded.owner OR n.owner = $9
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
        AND s.id <> ALL ($6::text[])
    ORDER BY s.home = $2 DESC, s.num LIMIT $4 FOR UPDATE OF s SKIP LOCKED
)
UPDATE sessions AS s SET owner = $1, epoch = epoch + 1, home = $2, written_by = {PROTOCOL},
    pinned = {PINNED.format(roots="$5")}
FROM picked WHERE s.num = picked.num RETURNING s.id
"""
SEND = """
INSERT INTO commands (id, session, sender, kind, body)
SELECT $1, num, $3, $4, $5 FROM sessions WHERE id = $2 ON CONFLICT (id) DO NOTHING
"""
OPEN = """
SELECT c.id, s.id AS session, c.kind, c.body
FROM commands AS c JOIN sessions AS s ON s.num = c.session
WHERE c.done_at IS NULL AND s.owner = $1 ORDER BY c.num LIMIT 500
"""
FINISH = """
UPDATE commands SET done_at = coalesce(done_at, clock_timestamp()), result = $2
WHERE id = $1 AND result IS NULL AND (done_at IS NULL OR NOT $3)
"""
DONE = """
SELECT w.id, c.result, c.id IS NOT NULL AS there
FROM unnest($1::text[]) AS w(id) LEFT JOIN commands AS c ON c.id = w.id
WHERE c.id IS NULL OR c.done_at IS NOT NULL
    AND (c.result IS NOT NULL OR c.done_at < clock_timestamp() - interval '1 second')
"""
FOREIGN = """
SELECT e.seq, e.at, e.kind, e.body, e.gseq, s.id FROM events AS e
JOIN sessions AS s ON s.num = e.session
WHERE e.gseq > $1 AND e.gseq <= $2 AND s.owner IS DISTINCT FROM $4 ORDER BY e.gseq LIMIT $3
"""
LOOK = """
SELECT s.id, s.home, s.pinned, s.labels,
    coalesce(n.lease > clock_timestamp(), false) AS alive,
    coalesce(n.draining AND n.owner IS DISTINCT FROM s.owner, false) AS draining,
    coalesce((extract(epoch FROM n.seen) * 1000)::bigint, 0) AS seen_ms,
    s.labels = '{}' OR EXISTS (
        SELECT FROM nodes AS o WHERE o.lease > clock_timestamp() AND s.labels <@ o.labels
            AND (NOT o.draining OR o.owner = s.owner)
    ) AS suits
FROM sessions AS s LEFT JOIN nodes AS n ON n.name = s.home WHERE s.id = ANY ($1)
"""
NODES = """
SELECT n.name, n.owner, n.lease > clock_timestamp() AS alive, n.draining, n.labels, n.schema,
    n.protocol, n.version, n.facts,
    extract(epoch FROM clock_timestamp() - n.seen)::float8 AS silent,
    (extract(epoch FROM n.seen) * 1000)::bigint AS seen_ms,
    (SELECT count(*) FROM sessions AS s WHERE s.owner = n.owner) AS sessions
FROM nodes AS n WHERE n.lease > clock_timestamp() OR strpos(n.name, $1) = 0 ORDER BY n.name
"""
LISTEN_ONLY = """
SELECT true AS held, false AS draining,
    (SELECT count(*) FROM nodes WHERE lease > clock_timestamp()) AS others
"""


class Desk:
    """The shared rows, as one node uses them."""

    def __init__(self, store: "PostgresStore", owner: str) -> None:
        self.store = store
        self.owner = owner

    @property
    def name(self) -> str:
        """Of the row: a command that works for a moment has one beside its machine's daemon."""
        return node_of(self.owner)

    async def join(
        self, lease: float, version: str, facts: dict[str, Any], former: str = ""
    ) -> None:
        """Be a node from now on. Raises InUse when another one, not `former`, has the name."""
        labels = [*self.store.node.labels]
        made = await self.store.fetch(
            JOIN, self.name, self.owner, lease, labels, len(STEPS), PROTOCOL, version,
            words.encode(facts), former,
        )  # fmt: skip
        if not made:
            raise InUse(
                f"Another node is named {self.name}, and it is alive.",
                "Give this one a name of its own: [fleet] node.",
                owner=self.name,
            )

    async def leave(self) -> None:
        """Release every session and the lease, so that others need not wait for it to lapse."""
        await self.store.fetch(
            "UPDATE sessions SET owner = NULL, epoch = epoch + 1 WHERE owner = $1", self.owner
        )
        if GUEST in self.name:
            await self.store.fetch("DELETE FROM nodes WHERE owner = $1", self.owner)
            return
        await self.store.fetch(
            "UPDATE nodes SET lease = clock_timestamp(), draining = false WHERE owner = $1",
            self.owner,
        )

    async def claim(self, most: int, but: Sequence[str] = ()) -> Sequence[str]:
        """Own up to so many sessions that have something due and no owner; returns their ids."""
        node = self.store.node
        rows = await self.store.fetch(
            CLAIM, self.owner, node.name, [*node.labels], most, node.stems, [*but]
        )
        return [row[0] for row in rows]

    async def all_owned(self) -> dict[str, int]:
        """Every session that is ours, and its epoch."""
        rows = await self.store.fetch("SELECT id, epoch FROM sessions WHERE owner = $1", self.owner)
        return {row[0]: row[1] for row in rows}

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

    async def nodes(self) -> list[NodeRow]:
        rows = await self.store.fetch(NODES, GUEST)
        return [_node(row) for row in rows]

    async def whereabouts(self, sessions: Sequence[str]) -> dict[str, Whereabouts]:
        """Where these sessions are, and which of them wait: their folder, or a label that they
        want, is at no node that takes sessions. A session that was deleted is not in it.
        """
        rows = await self.store.fetch(LOOK, [clean(one) for one in sessions])
        return {row["id"]: Whereabouts(row["home"], _waiting(row), row["pinned"]) for row in rows}

    async def drain(self, node: str, draining: bool = True) -> bool:
        """Have a node give its sessions away; False: there is none of this name."""
        rows = await self.store.fetch(
            "UPDATE nodes SET draining = $2 WHERE name = $1 RETURNING name", node, draining
        )
        await self.hint()
        return bool(rows)

    async def move(self, session: str, node: str) -> str:
        """Have a session, given by the beginning of its id, go on on another node; returns its id.

        It is bound to that node until it was there, and then to its folder as any other.

        Raises UnknownSession, BadInput when several begin so or there is no such node.
        """
        if not any(one.name == node for one in await self.nodes()):
            raise BadInput(f"There is no node {node}.", "Look at: dragoman fleet.")
        rows = await self.store.fetch(
            "SELECT id FROM (SELECT id FROM sessions WHERE id >= $1 ORDER BY id LIMIT 2) AS next"
            " WHERE $1 <> '' AND starts_with(id, $1) ORDER BY id",
            clean(session),
        )
        found = [row[0] for row in rows]
        if not found:
            raise UnknownSession(session)
        if len(found) > 1 and found[0] != session:
            raise BadInput(f"Several sessions begin with {session}.", "Write more of the id.")
        await self.store.fetch(
            "UPDATE sessions SET home = $2, pinned = true WHERE id = $1", found[0], node
        )
        await self.hint()
        return str(found[0])

    # --- commands ---

    async def send(self, id: str, session: str, command: Command) -> None:
        """Write a command down; once this returns it is not lost. Raises UnknownSession."""
        async with self.store.link.reading() as connection:
            try:
                done = await connection.execute(
                    SEND, id, clean(session), self.owner, words.kind_of(command),
                    words.encode(command),
                )  # fmt: skip
            except driver().ForeignKeyViolationError:  # it was deleted at this moment
                raise UnknownSession(session) from None
            if done == "INSERT 0 0":
                known = await connection.fetchval("SELECT 1 FROM commands WHERE id = $1", id)
                if known is None:
                    raise UnknownSession(session)
            await connection.execute(f"NOTIFY {CHANNEL}")

    async def commands(self) -> list[tuple[str, str, Command]]:
        """What others ask of our sessions, oldest first: (id, session, command)."""
        found = []
        for row in await self.store.fetch(OPEN, self.owner):
            try:
                found.append((row["id"], row["session"], words.command_of(row["body"])))
            except msgspec.DecodeError:  # it keeps no other waiting
                text = f"Node {self.name} does not know what it was asked for ({row['kind']})."
                hint = "Update Dragoman there: the node that asked is newer."
                await self.finish(row["id"], told(BadInput(text, hint)))
        return found

    async def finish(self, id: str, result: Result) -> None:
        # A refusal of what was done already is one of its repetition.
        await self.store.fetch(FINISH, id, words.encode(result), result.refusal is not None)
        await self.hint()

    async def results(self, ids: Sequence[str]) -> dict[str, Result | None]:
        """What came of commands; None: it went with its session."""
        rows = await self.store.fetch(DONE, [*ids])
        return {row["id"]: _result(row["result"]) if row["there"] else None for row in rows}

    async def tidy(self, seconds: float) -> None:
        """Remove what was done long ago."""
        await self.store.fetch(
            "DELETE FROM commands WHERE done_at < clock_timestamp() - $1 * interval '1 second'",
            seconds,
        )
        await self.store.fetch(
            "DELETE FROM nodes WHERE strpos(name, $1) > 0"
            " AND lease < clock_timestamp() - $2 * interval '1 second'",
            GUEST,
            seconds,
        )

    async def foreign(self, after: int, upto: int, limit: int) -> tuple[list[Entry], int]:
        """Entries of sessions that others write, and up to which place they were looked for."""
        rows = await self.store.fetch(FOREIGN, after, upto, limit, self.owner)
        reached = rows[-1]["gseq"] if len(rows) == limit else upto
        return [*entries_of((tuple(row) for row in rows), since=after)], reached

    async def hint(self) -> None:
        """Have the others look; a hint that is lost costs them a poll."""
        await self.store.fetch(f"NOTIFY {CHANNEL}")


def _node(row: Any) -> NodeRow:
    try:
        facts = msgspec.json.decode(row["facts"], type=dict[str, Any])
    except msgspec.DecodeError:
        facts = {}
    return NodeRow(
        row["name"], row["owner"], row["alive"], row["draining"], [*row["labels"]], row["schema"],
        row["protocol"], row["version"], row["silent"], row["seen_ms"], row["sessions"], facts,
    )  # fmt: skip


def _result(data: bytes | None) -> Result:
    try:
        return words.result_of(data)
    except msgspec.DecodeError:  # it keeps no other waiting
        text = "The session's node has done it; its answer cannot be read here."
        return told(StoreFailed(text, "Update Dragoman here: that node is newer."))


def _waiting(row: Any) -> str:
    """What a session waits for that no node has."""
    if row["pinned"] and not row["alive"]:
        return f"waiting for node {row['home']}, last seen {_moment(row['seen_ms'])}"
    if row["pinned"] and row["draining"]:
        return f"waiting for node {row['home']}, which is draining"
    if not row["suits"]:
        return f"waiting for a node with {', '.join(row['labels'])}"
    return ""


def _moment(ms: int) -> str:
    from datetime import UTC, datetime

    if not ms:
        return "never"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def owner_name(node: str, mark: str) -> str:
    """The name under which one life of a node owns sessions."""
    return f"{NODE}{node}:{mark}"


def node_of(owner: str) -> str:
    """The node behind an owner's name; empty: it is none."""
    return owner.removeprefix(NODE).rpartition(":")[0] if owner.startswith(NODE) else ""


def told(fault: Fault) -> Result:
    return Result(refusal=refusal_of(fault))
