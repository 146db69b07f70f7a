"""What writes: whatever waits goes to the database in one statement, over one connection.

When the connection is lost, what waits stays in its order until there is a new one, up to a bound
in number and time. What was under way may have been committed, so it is looked for first.
"""

import asyncio
from array import array
from collections.abc import Awaitable, Callable
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import Fault, StoreFailed
from dragoman.holding import Holder

from ..rules import closed
from .changes import Append
from .link import PostgresLink, driver, is_lost

if TYPE_CHECKING:
    from asyncpg import Connection

    Change = Callable[[Connection[Any], bool], Awaitable[Any]]

GROUP = 256  # batches in one statement
PATIENCE = 0.002  # seconds that a patient batch waits for others
MOST = 20_000  # changes that may wait
WAIT = 30.0  # seconds that a change waits for a database that is gone
BACK_OFF = (0.05, 0.1, 0.2, 0.5, 1.0)  # seconds between tries to connect; the last one stays
TRIES = 8  # connections that one change may cost
KNOWN = 4096  # sessions whose lasting columns are remembered
HOT = 64  # sessions that may be hot before the oldest are settled
IDLE = 2.0  # seconds without a write after which hot sessions are settled
LAG = 2_000  # commits after which their words are taken up, also without a rest
SETTLE = (
    "UPDATE sessions SET updated_at = live_at, status = live_status, hot = false"
    " WHERE hot AND id = ANY ($1)"
)
# Moves a group of sessions where epoch and head are as the writer knows them, and adds their events
# with the numbers it gets. A session that was taken over is not in what returns, and the numbers of
# its events stay unused. The counter is touched after the sessions, by everybody: no two writers
# wait for each other. Lists come as text, and all bytes as one value with the place of each: the
# driver looks at every member of an array, which costs more than all the rest.
APPEND = """
WITH moved AS (
    UPDATE sessions AS s
    SET live_at = w.at, live_status = w.status, last_seq = w.upto, hot = true,
        info = substring($16::bytea FROM w.start FOR w.size)
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[], $4::text::bigint[],
        $5::text::bigint[], $6::text::text[], $7::text::int[], $8::text::int[])
        AS w(num, epoch, seq, upto, at, status, start, size)
    WHERE s.num = w.num AND s.epoch = w.epoch AND s.last_seq = w.seq
    RETURNING s.num
), counted AS (
    UPDATE counters SET value = value + $17
    WHERE name = 'gseq' AND (SELECT count(*) FROM moved) > 0
    RETURNING value - $17 AS before
), added AS (
    INSERT INTO events (gseq, session, seq, at, kind, body)
    SELECT counted.before + r.place, r.num, r.seq, r.at, r.kind,
        substring($16::bytea FROM r.start FOR r.size)
    FROM unnest($9::text::bigint[], $10::text::bigint[], $11::text::bigint[], $12::text::bigint[],
        $13::text::text[], $14::text::int[], $15::text::int[])
        AS r(num, place, seq, at, kind, start, size)
    JOIN moved ON moved.num = r.num CROSS JOIN counted
)
SELECT (SELECT array_agg(num) FROM moved) AS moved, (SELECT before FROM counted) AS before
"""


class PostgresWork(Holder):
    change: "Change"
    future: "asyncio.Future[Any]"
    since: float = msgspec.field(default_factory=monotonic)
    lost: int = 0  # times that the connection was lost over it

    @property
    def again(self) -> bool:
        """Whether it may have been committed already."""
        return self.lost > 0


class Writer:
    """One task that writes while there is something to write."""

    def __init__(
        self, link: PostgresLink, connection: "Connection[Any]", *, wait: float = WAIT
    ) -> None:
        self.commits = 0
        self.wait = wait
        self.stalled = ""  # why nothing can be written now
        self.on_stall: Callable[[str], None] = lambda why: None
        self.on_commit: Callable[[], None] = lambda: None
        self._link = link
        self._connection: Connection[Any] | None = None
        self._jobs: list[PostgresWork] = []
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._known: dict[str, tuple[int, tuple[Any, ...]]] = {}  # its number and lasting columns
        self._hot: dict[str, None] = {}
        self._closing = False
        self._worded = 0  # commits whose words were taken up
        self._wording: asyncio.Task[None] | None = None
        self._use(connection)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def _use(self, connection: "Connection[Any]") -> None:
        self._connection = connection
        connection.add_termination_listener(self._ended)

    def _ended(self, connection: "Connection[Any]") -> None:
        """The server is gone, which it may say while nothing is written."""
        if connection is self._connection and not self._closing:
            self._connection = None
            self._stall(ConnectionResetError("the connection was closed"))
            self._wake.set()

    def doubt(self, error: BaseException) -> None:
        """Somebody found the way to the database broken: it is made anew, and nothing begins."""
        if not self.stalled and not self._closing:
            self._stall(error)
            if self._connection is not None:
                self._connection.terminate()

    def post(self, change: "Change", *, patient: bool = False) -> "asyncio.Future[Any]":
        """Have it written in its turn. Cancelling the future does not take it back."""
        if self._closing:
            raise closed()
        if len(self._jobs) >= MOST:
            raise StoreFailed(
                f"{MOST} changes wait for the database already.", "Try again when it is back."
            )
        loop = asyncio.get_running_loop()
        job = PostgresWork(change, loop.create_future())
        self._jobs.append(job)
        if not patient:
            self._wake.set()
        elif self._timer is None:
            self._timer = loop.call_later(PATIENCE, self._wake.set)
        return job.future

    async def stop(self) -> None:
        """Write what waits, then close the connection."""
        if not self._closing:
            self._closing = True
            self._wake.set()
        await asyncio.wait({self._task})
        if self._wording is not None:
            self._wording.cancel()
            await asyncio.wait({self._wording})
        connection, self._connection = self._connection, None
        if connection is not None:
            await discard(connection)

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(IDLE if self._hot else None):
                    await self._wake.wait()
            except TimeoutError:
                await self._settle(0)
                self._take_up_words()
            self._wake.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            while self._jobs or self._connection is None and not self._closing:
                await self._some()
                if len(self._hot) > 2 * HOT:
                    await self._settle(HOT)
                if self.commits - self._worded >= LAG:
                    self._take_up_words()
            if self._closing:
                await self._settle(0)
                return

    async def _some(self) -> None:
        """Write the first of what waits, with as many after it as go together."""
        if self._connection is None or self._connection.is_closed():
            if not await self._mend():
                return
        jobs = self._together()
        if not jobs:
            return
        connection = self._connection
        assert connection is not None
        grouped = len(jobs) > 1 or self._is_known(jobs[0])
        try:
            if grouped:
                await self._write_group(connection, jobs)
            else:
                await self._write_one(connection, jobs[0])
            self.on_commit()
        except Exception as error:
            if is_lost(error):
                for job in jobs:
                    job.lost += 1
                self._connection = None
                await discard(connection)
                self._stall(error)
                if jobs[0].lost >= TRIES:  # alone since the first: what follows is not held up
                    self._finish(jobs[0], error=self._link.explain(error))
                return
            if isinstance(error, driver().DeadlockDetectedError | driver().SerializationError):
                return  # tried again: nothing of it was written
            if isinstance(error, driver().QueryCanceledError):
                # Somebody locks a table. Who has waited is refused with the first, not one by one.
                self._give_up(self.wait, self._link.explain(error))
                return
            if grouped:  # each for itself, to find the one that cannot be written
                for job in jobs:
                    self._known.pop(_session(job), None)
                return
            self._finish(jobs[0], error=self._link.explain(error))

    def _together(self) -> list[PostgresWork]:
        """The jobs that one statement can write: plain batches of known sessions, in a row."""
        jobs: list[PostgresWork] = []
        heads: dict[str, tuple[int, int]] = {}
        for job in self._jobs[:GROUP]:
            if not self._is_known(job):
                break
            change = job.change
            assert isinstance(change, Append)
            epoch, head = heads.get(change.id, (change.batch.epoch, -1))
            if epoch != change.batch.epoch or head >= 0 and change.first != head + 1:
                break
            heads[change.id] = (epoch, change.first + change.count - 1)
            jobs.append(job)
        return jobs or self._jobs[:1]

    def _is_known(self, job: PostgresWork) -> bool:
        change = job.change
        if type(change) is not Append or job.lost or not change.plain or change.first == 0:
            return False
        known = self._known.get(change.id)
        return known is not None and known[1] == change.lasting

    async def _write_group(self, connection: "Connection[Any]", jobs: list[PostgresWork]) -> None:
        moves: dict[int, tuple[Any, ...]] = {}
        rows: list[tuple[Any, ...]] = []
        parts: list[bytes] = []
        place = bytes = 0
        nums = []
        for job in jobs:
            change = job.change
            assert isinstance(change, Append)
            batch, num = change.batch, self._known[change.id][0]
            nums.append(num)
            seq = change.first - 1
            before = moves[num][2] if num in moves else seq
            for count, at, kind, body in change.rows:
                seq += count
                place += count
                rows.append((num, place, seq, at, _quoted(kind), bytes + 1, len(body)))
                parts.append(body)
                bytes += len(body)
            info = change.info
            moves[num] = (
                num, batch.epoch, before, seq, batch.info.updated_at, _quoted(batch.info.status),
                bytes + 1, len(info),
            )  # fmt: skip
            parts.append(info)
            bytes += len(info)
        values = [*map(_listed, zip(*moves.values(), strict=True))]
        values += map(_listed, zip(*rows, strict=True))
        found = await connection.fetchrow(APPEND, *values, b"".join(parts), place)
        moved, place = frozenset(found["moved"] or ()), found["before"] or 0
        if moved:
            self.commits += 1
        left = []
        for job, num in zip(jobs, nums, strict=True):
            change = job.change
            assert isinstance(change, Append)
            if num in moved:
                self._hot[change.id] = None
                if not job.future.done():
                    job.future.set_result(place + 1)
            else:  # taken over, deleted or ahead of what is stored: it is told which
                self._known.pop(change.id, None)
                left.append(job)
            place += change.count
        self._jobs[: len(jobs)] = left

    async def _write_one(self, connection: "Connection[Any]", job: PostgresWork) -> None:
        change = job.change
        try:
            async with connection.transaction():
                value = await change(connection, job.again)
        except Fault as fault:
            self._finish(job, error=fault)
            return
        self.commits += 1
        if isinstance(change, Append):
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[change.id] = (change.num, change.lasting)
            self._hot[change.id] = None
        self._finish(job, value)

    def _finish(self, job: PostgresWork, value: Any = None, error: Exception | None = None) -> None:
        self._jobs.remove(job)  # one of the first
        if not job.future.done():
            if error is not None:
                job.future.set_exception(error)
            else:
                job.future.set_result(value)

    # --- when the database is gone ---

    def _stall(self, error: BaseException) -> None:
        known, self.stalled = self.stalled, self._link.explain(error).message
        if not known:
            self.on_stall(self.stalled)

    async def _mend(self) -> bool:
        """Connect anew; False: some of what waited was given up meanwhile."""
        tries = 0
        while True:
            if self._closing and not self._jobs:
                return False
            try:
                self._use(await self._connect())
            except Exception as error:
                self._stall(error)
                pause = BACK_OFF[min(tries, len(BACK_OFF) - 1)]
                tries += 1
                if self._give_up(0.0 if self._closing else self.wait, self._link.explain(error)):
                    return False
                await asyncio.sleep(pause)  # until the next try: nobody tells us that it is back
                continue
            if self.stalled:
                self.stalled = ""
                self.on_stall("")
            return True

    async def _connect(self) -> "Connection[Any]":
        """A connection that takes changes: after a failover one to a standby may come first."""
        connection = await self._link.connect()
        try:
            if await connection.fetchval("SHOW transaction_read_only") == "off":
                return connection
        except BaseException:
            await discard(connection)
            raise
        await discard(connection)
        raise driver().ReadOnlySQLTransactionError("it takes no changes now")

    def _give_up(self, seconds: float, fault: Fault) -> bool:
        """Refuse what has waited so long; True: something has."""
        late = [job for job in self._jobs if monotonic() - job.since >= seconds]
        for job in late:
            self._finish(job, error=fault)
        return bool(late)

    # --- when there is time ---

    async def flushed(self) -> None:
        """Wait until all that was posted is written, or refused."""
        if self._jobs:
            self._wake.set()
            await asyncio.wait([self._jobs[-1].future])

    def _take_up_words(self) -> None:
        """Have the words of what was written found, over a connection of the readers."""
        self._worded = self.commits
        if self._wording is None or self._wording.done():
            self._wording = asyncio.get_running_loop().create_task(self._word())

    async def _word(self) -> None:
        from .search import catch_up

        try:
            await catch_up(self._link, wait=False)
        except Fault:
            return  # the database is gone, or we may not: the next search or writer does it

    async def _settle(self, keep: int) -> None:
        """Bring the indexes up to date for all but so many of our hot sessions."""
        count = len(self._hot) - keep
        if count <= 0 or self._connection is None:
            return
        ids = [*self._hot][:count]
        try:
            await self._connection.execute(SETTLE, ids)
        except (OSError, driver().PostgresError, driver().InterfaceError):
            # Nothing is lost: they stay hot, which every list knows, and there is a next time.
            return
        for id in ids:
            self._hot.pop(id, None)


@lru_cache(1024)
def _quoted(text: str) -> str:
    """A member of a list of texts."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _listed(values: tuple[Any, ...]) -> str:
    """A list as the database reads it from text; raises what is raised for no whole number."""
    if isinstance(values[0], str):
        return f"{{{','.join(values)}}}"
    return f"{{{str(array('q', values).tolist())[1:-1]}}}"


def _session(job: PostgresWork) -> str:
    return job.change.id if isinstance(job.change, Append) else ""


async def discard(connection: "Connection[Any]") -> None:
    """Close a connection that may be dead."""
    try:
        await connection.close(timeout=1.0)
    except (OSError, driver().PostgresError, driver().InterfaceError):
        connection.terminate()
