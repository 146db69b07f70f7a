"""Plain batches of known sessions, written together.

Each statement costs time, and the hand-over of a lock between threads besides, so there are few:
one per session moves its row, one per batch adds its events. Nothing is looked up before. Instead
the first says what is taken for granted, and finds no row when another process has written since.
One by one (`Writer._attempt`) the same takes 1.5 times as long (decision 0073).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .changes import INSERT_EVENT, MOVE, NEWEST, Append
from .known import Known
from .worker import Job

if TYPE_CHECKING:
    from sqlite3 import Connection

MOVE_KNOWN = (
    f"{MOVE} WHERE num = ? AND hot = 1 AND id = ? AND epoch = ? AND last_seq = ? AND ({NEWEST}) = ?"
)


class Moved(Exception):
    """Another process has written what we thought we knew."""


class Group:
    """What one transaction writes, in flat lists of values."""

    __slots__ = ("_events", "_firsts", "_granted", "_moves", "_newest")

    def __init__(self, newest: int) -> None:
        self._granted = newest
        self._newest = newest
        self._firsts: list[int] = []
        self._moves: dict[str, list[Any]] = {}
        self._events: list[tuple[Any, ...]] = []

    def add(self, work: Append, known: Known) -> bool:
        """Take a batch in; False when it needs a look at the database."""
        batch = work.batch
        session = batch.session
        place = known.places.get(session)
        if (
            place is None
            or place.epoch != batch.epoch
            or place.lasting != work.lasting
            or batch.info.id != session
            or not work.plain
        ):
            return False
        move = self._moves.get(session)
        seq: int = place.last_seq if move is None else move[3]
        for expected, entry in enumerate(batch.entries, seq + 1):
            if entry.seq != expected:
                return False
        num = place.num
        newest = self._newest
        self._firsts.append(newest + 1 if batch.entries else 0)
        for count, at, kind, body in work.rows:
            newest += count
            seq += count
            self._events.append((newest, num, seq, at, kind, body))
        self._newest = newest
        if move is None:
            at, status, info = work.moving
            granted = self._granted
            self._moves[session] = [
                at, status, info, seq, num, session, place.epoch, place.last_seq, granted
            ]  # fmt: skip
        else:
            move[:4] = (*work.moving, seq)
        return True

    def write(self, connection: "Connection") -> None:
        """Write it all inside the open transaction, or raise Moved."""
        moves = [*self._moves.values()]
        if connection.executemany(MOVE_KNOWN, moves).rowcount != len(moves):
            raise Moved
        connection.executemany(INSERT_EVENT, self._events)

    def committed(self, jobs: Iterable[Job], known: Known) -> None:
        """Say what is true now."""
        for job, first in zip(jobs, self._firsts, strict=True):
            job.value = first
        for session, move in self._moves.items():
            known.places[session].last_seq = move[3]
        known.newest = self._newest


def gather(jobs: Iterable[Job], known: Known) -> Group | None:
    """The jobs as one group; None when one of them needs a look at the database."""
    group = Group(known.newest)
    for job in jobs:
        if type(job.work) is not Append or not group.add(job.work, known):
            return None
    return group
