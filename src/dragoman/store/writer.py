"""One thread that writes: whatever waits in its queue goes into one transaction."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.engine.faults import Fault

from .group import gather
from .known import HOT, Known, settle
from .worker import Job, Worker, deliver

if TYPE_CHECKING:
    import sqlite3

GROUP = 256  # batches in one transaction, or up to twice as many when they come together
HOT_SESSIONS = "SELECT num FROM sessions INDEXED BY sessions_hot WHERE hot = 1 ORDER BY live_at"
PATIENCE = 0.002  # seconds that a patient batch waits for others
LAG = 4_000  # events whose words may wait while others are written
IDLE = 2.0  # seconds without a write after which the write-ahead log is folded into the file
BUSY_MS = 5000  # how long to wait for another process that writes


class Writer(Worker):
    """Writes in groups. A batch that is refused takes no other batch of its group with it."""

    name = "writer"

    def __init__(
        self,
        connection: "sqlite3.Connection",
        explain: "Callable[[Exception], Fault]",
        *,
        group: int = GROUP,
        idle: float = IDLE,
        tidy: bool = False,
    ) -> None:
        self.commits = 0
        self._group = group
        self._idle = idle
        self._unfolded = False
        self._known = Known()
        self._home: asyncio.AbstractEventLoop | None = None  # only its jobs are gathered
        self._moving = threading.Lock()
        self._outgoing: list[Job] = []
        self._hurried = False  # they will be handed over in a moment
        self._timer: asyncio.TimerHandle | None = None
        self._tidy = tidy  # settle what others left hot
        self._indexed = 0  # the newest event whose words are known, as far as we know
        super().__init__(connection, explain)

    def _send(self, job: Job, patient: bool) -> None:
        """Hand a job over, two turns of the loop later; a patient one with the next, or in time.

        The thread takes the interpreter from the loop when it wakes: so what was to be said at
        this moment is said first, and the jobs of all sessions of this moment wake it once.
        """
        loop = job.loop
        if loop is not self._home and not self._adopt(loop):
            self._queue.put([job])  # two loops have one store: rare, and nothing to gather
            return
        outgoing = self._outgoing
        outgoing.append(job)
        if not patient and not self._hurried:
            self._hurried = True
            loop.call_soon(loop.call_soon, self._hand_over)
        elif len(outgoing) == 1:
            self._timer = loop.call_later(PATIENCE, self._hand_over)

    def _adopt(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Gather the jobs of this loop from now on, if no other one lives whose jobs are."""
        with self._moving:
            if self._home is not None and not self._home.is_closed():
                return False
            self._hand_over()  # what a loop left that was closed comes first
            self._home = loop
            return True

    def _hand_over(self) -> None:
        self._hurried = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._outgoing:
            jobs, self._outgoing = self._outgoing, []
            for start in range(0, len(jobs), self._group):
                self._queue.put(jobs[start : start + self._group])

    async def stop(self) -> None:
        self._hand_over()
        await super().stop()

    def _run(self) -> None:
        if self._tidy:
            self._settle()
        super()._run()

    def _serve(self) -> bool:
        try:
            more = self._queue.get(timeout=self._idle) if self._unfolded else self._queue.get()
        except queue.Empty:
            self._rest()
            return True
        jobs: list[Job] = []
        while more is not None:
            jobs += more
            if len(jobs) >= self._group:
                break
            try:
                more = self._queue.get_nowait()
            except queue.Empty:
                break
        if jobs:
            try:
                self._write(jobs)
            except Exception as error:  # even undoing failed: the thread goes on, and says so
                for job in jobs:
                    job.error = job.error or self._told(error)
            deliver(jobs)
            self._index(LAG)
            if len(self._known.hot) > HOT:  # half of them, so that crowds do not pile up
                self._settle(len(self._known.hot) // 2)
        if more is None:
            self._rest()
            return False
        return True

    def _write(self, jobs: list[Job]) -> None:
        """Commit the jobs together; when the database itself fails, each for itself."""
        group = gather(jobs, self._known)
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
        except Exception as error:
            for job in jobs:
                job.error = self._told(error)
            return
        try:
            if group is not None:
                group.write(self._connection)
                written = len(jobs)
            else:
                written = self._attempt(jobs)
            execute("COMMIT" if written else "ROLLBACK")
        except Exception as error:
            self._connection.rollback()  # does nothing when a full disk has ended it already
            if group is not None:  # most likely what we knew was not true any more: look, then
                self._known.forget_all()
                self._write(jobs)
                return
            if len(jobs) == 1:
                jobs[0].error = self._told(error)
                return
            for job in jobs:
                job.value = job.error = None
                self._write([job])
            return
        if written:
            self.commits += 1
            self._unfolded = True
            if group is not None:
                group.committed(jobs, self._known)
            else:
                self._learn(jobs)

    def _learn(self, jobs: list[Job]) -> None:
        for job in jobs:
            if job.error is None:
                committed = getattr(job.work, "committed", None)
                if committed is None:  # anything may have been done
                    self._known.forget_all()
                else:
                    committed(self._known)

    def _attempt(self, jobs: list[Job]) -> int:
        """Do the jobs inside the open transaction; returns how many are to be committed.

        The way of all that a group does not take (`group.py`, 1.5 times as fast: decision 0073).
        """
        execute = self._connection.execute
        alone = len(jobs) == 1  # then the transaction is savepoint enough
        written = 0
        for job in jobs:
            if not alone:
                execute("SAVEPOINT job")
            try:
                job.value = job.work(self._connection)
            except Fault as fault:
                job.error = fault
                if not alone:
                    execute("ROLLBACK TO job")
            else:
                written += 1
            if not alone:
                execute("RELEASE job")
        return written

    def _rest(self) -> None:
        """Put everything into its place while nobody waits."""
        while self._index() and self._queue.empty():
            pass
        if self._known.hot:
            self._settle(len(self._known.hot))
        self._fold()

    def _index(self, lag: int = 0) -> bool:
        """Take up the words of events when more than `lag` wait; True: there may be more."""
        newest = self._known.newest
        if newest - self._indexed <= lag:
            return False
        from .search import CHUNK, Index

        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            count = Index()(self._connection)
            execute("COMMIT" if count else "ROLLBACK")
        except Exception:
            # Nothing is lost: a search goes on from there, and tells what is wrong.
            self._connection.rollback()
            self._indexed = newest
            return False
        if count < CHUNK:
            self._indexed = newest
        return count == CHUNK

    def _settle(self, count: int | None = None) -> None:
        """Bring the indexes up to date for so many of our hot sessions, those with the oldest
        activity first; without a count for all, whosever they are.
        """
        import sqlite3

        hot = self._known.hot
        found: list[int] = []
        try:
            if count is None:
                settle(self._connection)
            else:
                found = [num for (num,) in self._connection.execute(HOT_SESSIONS) if num in hot]
                settle(self._connection, found[:count])
        except sqlite3.Error:
            # Nothing is lost: they stay hot, which every list knows, and there is a next time.
            return
        self._known.settled(hot.keys() - found[count:])

    def _fold(self) -> None:
        """Move the write-ahead log into the file, unless another process reads just now."""
        import sqlite3

        self._unfolded = False
        execute = self._connection.execute
        execute("PRAGMA busy_timeout = 0")
        try:
            execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            # Nothing is lost: the log stays and is read, and the next write brings a new try.
            return
        finally:
            execute(f"PRAGMA busy_timeout = {BUSY_MS}")
