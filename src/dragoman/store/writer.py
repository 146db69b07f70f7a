"""One thread that writes: whatever waits in its queue goes into one transaction."""

import queue
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.engine.faults import Fault

from .worker import Job, Worker, deliver

if TYPE_CHECKING:
    import sqlite3

GROUP = 256  # batches in one transaction at most
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
    ) -> None:
        self.commits = 0
        self._group = group
        self._idle = idle
        self._unfolded = False
        super().__init__(connection, explain)

    def _serve(self) -> bool:
        try:
            job = self._queue.get(timeout=self._idle) if self._unfolded else self._queue.get()
        except queue.Empty:
            self._fold()
            return True
        jobs: list[Job] = []
        while job is not None:
            jobs.append(job)
            if len(jobs) == self._group:
                break
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
        if jobs:
            try:
                self._write(jobs)
            except Exception as error:  # even undoing failed: the thread goes on, and says so
                for job in jobs:
                    job.error = job.error or self._explain(error)
            deliver(jobs)
        if job is None:
            self._fold()
            return False
        return True

    def _write(self, jobs: list[Job]) -> None:
        """Commit the jobs together; when the database itself fails, each for itself."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except Exception as error:
            for job in jobs:
                job.error = self._explain(error)
            return
        try:
            written = self._attempt(jobs)
            self._connection.execute("COMMIT" if written else "ROLLBACK")
        except Exception as error:
            self._connection.rollback()  # does nothing when a full disk has ended it already
            if len(jobs) == 1:
                jobs[0].error = self._explain(error)
                return
            for job in jobs:
                job.value = job.error = None
                self._write([job])
            return
        if written:
            self.commits += 1
            self._unfolded = True

    def _attempt(self, jobs: list[Job]) -> int:
        """Do the jobs inside the open transaction; returns how many are to be committed."""
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
