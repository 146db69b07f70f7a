"""The store port on a PostgreSQL database."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from dragoman.engine.faults import Fault, Refused
from dragoman.engine.info import Page, SessionInfo, SessionQuery
from dragoman.engine.ports import Batch, Entry

from ..rows import entries_of
from ..rules import check_find, check_limit, check_search, in_use
from ..sql import SqlStore
from ..worker import failed
from . import changes
from .link import PostgresLink, clean
from .lists import find_newest, find_page
from .roles import Role
from .schema import migrate
from .writer import WAIT, Writer, discard

ENTRIES = (  # each row has one entry or more, so so many rows are enough
    "SELECT seq, at, kind, body, gseq, $1::text FROM events"
    " WHERE session = (SELECT num FROM sessions WHERE id = $1) AND seq > $2 ORDER BY seq LIMIT $3"
)
SINCE = (
    "SELECT e.seq, e.at, e.kind, e.body, e.gseq, s.id FROM events AS e"
    " JOIN sessions AS s ON s.num = e.session"
    " WHERE e.gseq > $1 ORDER BY e.gseq LIMIT $2"
)
FRONT = "SELECT NOT has_table_privilege('sessions', 'UPDATE')"


class PostgresStore(SqlStore):
    """Opened by `open`, which raises StoreFailed when there is no database to work with.

    A database that goes away later is waited for: what was posted stays in order and is written
    when it is back, or refused after `wait` seconds. `problem` says that it is gone.
    """

    PENDING = "pending"

    def __init__(self, link: PostgresLink, writer: Writer) -> None:
        self.link = link
        self.place = link.place
        self.writer = writer
        self.node = changes.Node()
        self.taking = True  # a node that is drained takes no session any more
        self.front = False  # our role may only read, and write commands down
        self._closed = False

    @classmethod
    async def open(cls, url: str, *, wait: float = WAIT) -> "PostgresStore":
        link = PostgresLink(url)
        try:
            connection = await link.connect()
            try:
                await migrate(connection)
                front: bool = await connection.fetchval(FRONT)
            except BaseException:
                await discard(connection)
                raise
        except Exception as error:
            raise link.explain(error) from error
        made = cls(link, Writer(link, connection, wait=wait))
        made.front = front
        return made

    @property
    def problem(self) -> str:
        return self.writer.stalled

    @property
    def stalled(self) -> str:
        return self.writer.stalled

    @property
    def commits(self) -> int:
        return self.writer.commits

    def version(self) -> object:
        """Nobody tells what other machines wrote, so it differs each time."""
        return object()

    async def create(self, info: SessionInfo, owner: str) -> int:
        if self.front:
            raise Refused(
                "This daemon is a front: its role in the database may not open sessions.",
                "Open it at a node that is a host; it can be used from here.",
            )
        epoch: int = await self.writer.post(changes.Create(info, owner, self.node))
        return epoch

    async def take(self, session: str, owner: str, is_alive: Callable[[str], bool]) -> int:
        if not self.taking:
            raise in_use(session, "")
        return await super().take(
            session, owner, lambda former: former.startswith(changes.NODE) or is_alive(former)
        )

    async def try_take(
        self, session: str, owner: str, former: str | None
    ) -> tuple[int, str | None]:
        taken: tuple[int, str | None] = await self.writer.post(
            changes.Take(session, owner, former, self.node)
        )
        return taken

    async def give(self, session: str, epoch: int) -> None:
        await self.writer.post(changes.Give(session, epoch))

    def post(self, batch: Batch, *, patient: bool = False) -> "asyncio.Future[int]":
        try:
            return self.writer.post(changes.Append(batch), patient=patient)
        except Fault as fault:  # it cannot be encoded, or the store is closed
            return failed(fault)

    async def append(self, batch: Batch) -> int:
        return await self.post(batch)

    async def find(self, **extra: Any) -> SessionInfo | None:
        check_find(extra)
        async with self.link.reading() as connection:
            return await find_newest(connection, extra)

    async def entries(
        self, session: str, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        check_limit(limit)
        rows = await self.fetch(ENTRIES, clean(session), after, limit)
        found = (tuple(row)[:5] + (session,) for row in rows)
        return [*islice(entries_of(found, after), limit)]

    async def entries_since(self, gseq: int, limit: int) -> Sequence[Entry]:
        check_limit(limit)
        rows = await self.fetch(SINCE, gseq, limit)
        return [*islice(entries_of(rows, since=gseq), limit)]

    async def newest_gseq(self) -> int:
        rows = await self.fetch("SELECT value FROM counters WHERE name = 'gseq'")
        newest: int = rows[0][0]
        return newest

    async def list(self, query: SessionQuery) -> Page:
        async with self.link.reading() as connection:
            return await find_page(connection, query)

    async def search(self, text: str, limit: int = 100) -> Sequence[SessionInfo]:
        from .search import catch_up, search

        check_search(text, limit)
        await self.writer.flushed()
        if not self.front:
            await catch_up(self.link, wait=True)
        async with self.link.reading() as connection:
            return await search(connection, text, limit)

    async def delete(self, session: str) -> bool:
        gone: bool = await self.writer.post(changes.Delete(session))
        return gone

    async def put(self, space: str, key: str, value: bytes | None) -> None:
        await self.writer.post(changes.Put(space, key, value))

    async def pop(self, space: str, key: str) -> bytes | None:
        value: bytes | None = await self.writer.post(changes.Pop(space, key))
        return value

    async def grant(self, role: str, kind: Role) -> None:
        """Let another role be a host or a front. Raises BadInput, StoreFailed."""
        from .roles import grant

        async with self.link.reading() as connection:
            await grant(connection, role, kind)

    async def close(self) -> None:
        """Write what waits, and let the connections go."""
        if not self._closed:
            self._closed = True
            await self.writer.stop()
            await self.link.close()

    async def rows(self, sql: str, *values: str) -> Sequence[Any]:
        return await self.fetch(sql, *map(clean, values))

    async def fetch(self, sql: str, *values: Any) -> Sequence[Any]:
        """Rows of committed state. Raises StoreFailed."""
        async with self.link.reading() as connection:
            rows: Sequence[Any] = await connection.fetch(sql, *values)
        return rows
