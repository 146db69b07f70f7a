"""Sessions in one SQLite file that several processes may share."""

import asyncio
import os
import re
from collections.abc import Sequence
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import Fault, StoreFailed
from dragoman.engine.info import Page, SessionInfo, SessionQuery
from dragoman.engine.ports import Batch, Entry
from dragoman.standing import led_to

from . import changes, file
from .lists import find_newest, find_page
from .migrations import (
    Foreign,
    has_other_names,
    is_older,
    migrate,
    recognise,
    used_by_older,
)
from .rows import entries_of
from .rules import check_find, check_limit, check_search
from .sql import SqlStore
from .worker import StoreReader, failed
from .writer import GROUP, IDLE, Writer

if TYPE_CHECKING:
    from sqlite3 import Connection

    from .memory import MemoryStore

Rows = list[tuple[Any, ...]]
ENTRIES = (  # each row has one entry or more, so so many rows are enough
    "SELECT seq, at, kind, body, gseq, ? FROM events"
    " WHERE session = (SELECT num FROM sessions WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?"
)
SINCE = (
    "SELECT seq, at, kind, body, gseq, id FROM events"
    " CROSS JOIN sessions ON sessions.num = events.session"
    " WHERE gseq > ? ORDER BY gseq LIMIT ?"
)
LOOK = 0.002  # seconds for which a look at the log of other processes is good


class SqliteStore(SqlStore):
    """The store port on a file. Opening it may take a moment: do it before the loop serves.

    `synchronous` NORMAL survives a crash of the process; FULL also a loss of power.
    """

    PENDING = "pending = 1"
    problem = ""
    stalled = ""
    place = ""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "NORMAL",
        group: int = GROUP,
        idle: float = IDLE,
    ) -> None:
        self.path = led_to(os.path.abspath(path))
        self._closed = False
        self._log = f"{self.path}-wal"
        self._looked = 0.0
        self._seen = (0, 0)
        try:
            file.prepare(self.path)
            self._claim = file.Claim(self.path)
        except OSError as error:
            raise file.explain(error, self.path) from error
        try:
            write, read = self._connect(synchronous)
        except Exception as error:
            fault = file.explain(error, self.path)
            fault.data["alone"] = self._claim.alone
            self._claim.release(clean=False)
            raise fault from error
        alone = self._claim.alone  # then whoever left sessions hot has crashed
        try:
            self._claim.share()
        except OSError as error:  # the disk has no room for the mark, say
            read.close()
            write.close()
            self._anchor.close()
            self._claim.release(clean=False)
            raise file.explain(error, self.path) from error
        self.writer = Writer(write, self._explain, group=group, idle=idle, tidy=alone)
        self._reader = StoreReader(read, self._explain)

    @property
    def commits(self) -> int:
        return self.writer.commits

    def version(self) -> object:
        """Our own commits, and the write-ahead log as other processes leave it."""
        now = monotonic()
        if now - self._looked > LOOK:
            self._looked = now
            try:
                log = os.stat(self._log)
                self._seen = (log.st_mtime_ns, log.st_size)
            except OSError:
                self._seen = (0, 0)
        return (self.writer.commits, self._seen)

    async def create(self, info: SessionInfo, owner: str) -> int:
        return await self.writer.run(changes.Create(info, owner))

    async def try_take(
        self, session: str, owner: str, former: str | None
    ) -> tuple[int, str | None]:
        return await self.writer.run(changes.Take(session, owner, former))

    async def give(self, session: str, epoch: int) -> None:
        await self.writer.run(changes.Give(session, epoch))

    def post(self, batch: Batch, *, patient: bool = False) -> "asyncio.Future[int]":
        try:
            return self.writer.post(changes.Append(batch), patient=patient)
        except Fault as fault:  # it cannot be encoded, or the store is closed
            return failed(fault)

    async def append(self, batch: Batch) -> int:
        return await self.post(batch)

    async def find(self, **extra: Any) -> SessionInfo | None:
        check_find(extra)
        return await self._reader.run(lambda connection: find_newest(connection, extra))

    async def entries(
        self, session: str, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        check_limit(limit)
        wanted = (session, session, after, -1 if limit is None else limit)
        return await self._reader.run(
            lambda connection: [
                *islice(entries_of(connection.execute(ENTRIES, wanted), after), limit)
            ]
        )

    async def entries_since(self, gseq: int, limit: int) -> Sequence[Entry]:
        check_limit(limit)
        return await self._reader.run(
            lambda connection: [
                *islice(entries_of(connection.execute(SINCE, (gseq, limit)), since=gseq), limit)
            ]
        )

    async def newest_gseq(self) -> int:
        rows = await self.rows(changes.NEWEST)
        newest: int = rows[0][0]
        return newest

    async def list(self, query: SessionQuery) -> Page:
        return await self._reader.run(lambda connection: find_page(connection, query))

    async def search(self, text: str, limit: int = 100) -> Sequence[SessionInfo]:
        check_search(text, limit)
        from . import search

        while await self.writer.run(search.Index()) == search.CHUNK:
            pass
        return await self._reader.run(lambda connection: search.search(connection, text, limit))

    async def delete(self, session: str) -> bool:
        return await self.writer.run(changes.Delete(session))

    async def put(self, space: str, key: str, value: bytes | None) -> None:
        await self.writer.run(changes.Put(space, key, value))

    async def pop(self, space: str, key: str) -> bytes | None:
        return await self.writer.run(changes.Pop(space, key))

    async def close(self) -> None:
        """Write what is queued, fold the log into the file, and let it go."""
        if not self._closed:
            self._closed = True
            self._anchor.lift()
            await self._reader.stop()
            await self.writer.stop()
            self._anchor.close()
            self._claim.release(clean=True)

    async def rows(self, sql: str, *values: str) -> Rows:
        sql = re.sub(r"\$\d", "?", sql)  # they stand in their order
        return await self._reader.run(lambda connection: connection.execute(sql, values).fetchall())

    def _connect(self, synchronous: str) -> "tuple[Connection, Connection]":
        if self._claim.alone and file.used_by_other_name(self.path):
            raise has_other_names(self.path)
        write, read = file.connect(self.path), file.connect(self.path)
        try:
            recognise(write, self.path)
            if is_older(write) and not self._claim.is_alone():
                raise used_by_older(self.path)
            if self._claim.unclean:
                file.check(write, self.path, thorough=self._claim.suspect)
            fresh = self._claim.alone and file.is_fresh(self.path, synchronous)
            file.adjust(write, self.path, synchronous, fresh=fresh)
            migrate(write, self.path)
            file.heed(write, synchronous)
            write.execute("BEGIN IMMEDIATE")  # a file that cannot be written says so here
            write.execute("ROLLBACK")
            file.adjust(read, self.path, synchronous)
            read.execute("PRAGMA query_only = ON")
            self._anchor = file.Anchor(self.path)
        except BaseException:
            read.close()
            write.close()
            raise
        return write, read

    def _explain(self, error: Exception) -> Fault:
        fault = file.explain(error, self.path)
        if fault is not error:
            fault.__cause__ = error
        if isinstance(fault, file.Damaged):
            self._claim.condemn()
        return fault


def open_store(
    path: str | os.PathLike[str],
    *,
    want_file: bool = True,
    synchronous: str = "NORMAL",
    repair: bool = True,
) -> "tuple[SqliteStore | MemoryStore, Sequence[str]]":
    """The best store there is, and what the user should be told about it.

    A damaged file is moved aside for a fresh one; where nothing can be written, sessions stay in
    memory. Raises StoreFailed only for a file that must not be touched: of a newer version, of
    another program, or, without `repair`, a damaged one.
    """
    if not want_file:
        from .memory import MemoryStore

        return MemoryStore(), ()
    path = led_to(os.path.abspath(path))
    try:
        return SqliteStore(path, synchronous=synchronous), ()
    except Foreign:
        raise
    except StoreFailed as fault:
        if isinstance(fault, file.Damaged) and not repair:
            raise
        if not (isinstance(fault, file.Damaged) and fault.data["alone"]):
            return _in_memory(fault)
    try:
        aside = file.move_aside(path)
        store = SqliteStore(path, synchronous=synchronous)
    except OSError as error:
        return _in_memory(file.explain(error, path))
    except StoreFailed as fault:
        return _in_memory(fault)
    return store, (
        f"The session store {path} was damaged; it was moved to {aside} and a fresh one was begun."
        " Earlier sessions are not listed any more.",
    )


def _in_memory(fault: Fault) -> "tuple[MemoryStore, Sequence[str]]":
    from .memory import MemoryStore

    notice = f"{fault.message} Sessions are kept in memory and will not survive. {fault.hint}"
    return MemoryStore(problem=fault.message), (notice.strip(),)
