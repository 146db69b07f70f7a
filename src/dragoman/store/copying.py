"""Copies everything from one store to another, also while a daemon writes to the first.

The log is copied in its own order, so events keep their order over all sessions. What is there
already is left, so that a copy that broke off can be begun again.
"""

import os
from collections.abc import Callable, Sequence

import msgspec

from dragoman.engine.events import Ask, Asked, Settled, decode_body
from dragoman.engine.faults import BadInput, InUse, StoreFailed, WrongState
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import Batch, Entry, Store

PAGE = 1000
ROWS = 1000  # sessions whose rows are at hand
PASSES = 20  # over what was written meanwhile, before it is left at that
OWNER = "copy"


class Copied(msgspec.Struct):
    """What a copy has done so far."""

    sessions: int = 0
    events: int = 0
    values: int = 0
    behind: int = 0  # events that were written while the last pass ran
    busy: int = 0  # sessions that somebody has in the target, and that lack something there


async def open_any(place: str, *, new: bool = False) -> Store:
    """The store at an address or a path; `new`: a file is made when there is none."""
    from .postgres import PostgresStore, is_address

    if is_address(place):
        return await PostgresStore.open(place)
    if not new and not _exists(place):
        raise BadInput(f"{place} does not exist.", "Give a file, or a postgresql:// address.")
    from .sqlite import SqliteStore

    return SqliteStore(place)


def _exists(path: str) -> bool:
    return os.path.exists(path)


async def copy(
    source: Store, target: Store, told: Callable[[Copied], None] = lambda done: None
) -> Copied:
    """Copy sessions, events, questions and small values. Raises StoreFailed."""
    work = _Copy(source, target, told)
    try:
        place = 0
        for _ in range(PASSES):
            newest = await source.newest_gseq()
            place = await work.events(place)
            await work.rows()
            work.done.behind = await source.newest_gseq() - newest
            if not work.done.behind:
                break
        for space in await source.spaces():
            for key, value in await source.pairs(space):
                await target.put(space, key, value)
                work.done.values += 1
    finally:
        await work.give()
    return work.done


class _Copy:
    def __init__(self, source: Store, target: Store, told: Callable[[Copied], None]) -> None:
        self._source = source
        self._target = target
        self._told = told
        self._epochs: dict[str, int] = {}
        self._heads: dict[str, int] = {}
        self._infos: dict[str, SessionInfo] = {}  # of the sessions that were met last
        self._left: set[str] = set()  # sessions that somebody has in the target
        self.done = Copied()

    async def events(self, place: int) -> int:
        """Copy the log from a place on; returns how far it got."""
        while page := await self._source.entries_since(place, PAGE):
            run: list[Entry] = []
            for entry in page:
                if run and run[-1].session != entry.session:
                    await self._add(run)
                    run = []
                run.append(entry)
            await self._add(run)
            place = page[-1].gseq
            self._told(self.done)
        return place

    async def _add(self, run: Sequence[Entry]) -> None:
        session = run[0].session
        if session in self._left:
            return
        if session not in self._epochs and not await self._begin(session):
            return
        fresh = [entry for entry in run if entry.seq > self._heads[session]]
        part: list[Entry] = []
        asked: list[Ask] = []
        for entry in fresh:
            part.append(entry)
            body = decode_body(entry.body) if entry.kind in ("asked", "settled") else None
            if isinstance(body, Asked):
                asked.append(body.ask)
            elif isinstance(body, Settled):  # its time is that of the last entry stored with it
                await self._append(session, part, asked, [body])
                part, asked = [], []
        if part:
            await self._append(session, part, asked, [])

    async def _append(
        self, session: str, part: list[Entry], asked: list[Ask], settled: list[Settled]
    ) -> None:
        info = await self._row(session)
        if info is None:  # deleted meanwhile
            return
        await self._target.append(Batch(session, self._epochs[session], part, info, asked, settled))
        self._heads[session] = part[-1].seq
        self.done.events += len(part)

    async def _begin(self, session: str) -> bool:
        """Make or take the session in the target; False when it is gone from the source, or
        somebody has it in the target.
        """
        info = await self._source.info(session)
        if info is None:
            return False
        try:
            self._epochs[session] = await self._target.create(info, OWNER)
            self._heads[session] = 0
        except WrongState:
            try:
                epoch = await self._target.take(session, OWNER, lambda owner: owner != OWNER)
            except InUse:
                self._left.add(session)
                there = await self._target.info(session)
                self.done.busy += there is not None and there.last_seq < info.last_seq
                return False
            self._epochs[session] = epoch
            entries = await self._target.entries(session)
            self._heads[session] = entries[-1].seq if entries else 0
            await self._check(session, entries)
        self.done.sessions += 1
        return True

    async def _row(self, session: str) -> SessionInfo | None:
        """A session's row in the source; the log has its sessions in runs, so few are kept."""
        info = self._infos.get(session)
        if info is None and (info := await self._source.info(session)) is not None:
            if len(self._infos) >= ROWS:
                del self._infos[next(iter(self._infos))]
            self._infos[session] = info
        return info

    async def _check(self, session: str, there: Sequence[Entry]) -> None:
        """What is there must be the beginning of what is copied."""
        ours = await self._source.entries(session, 0, len(there))
        if [entry.body for entry in ours] != [entry.body for entry in there]:
            raise StoreFailed(
                f"The target has another session {session}.",
                "Copy into an empty database.",
                session=session,
            )

    async def rows(self) -> None:
        """Bring every session's row to what the source says now."""
        self._infos.clear()  # they may have changed
        for session in tuple(self._epochs):
            info = await self._source.info(session)
            if info is None or info.last_seq != self._heads[session]:
                continue  # gone, or written since: the next pass
            if (await self._target.info(session)) != info:
                await self._target.append(Batch(session, self._epochs[session], (), info))

    async def give(self) -> None:
        for session, epoch in self._epochs.items():
            await self._target.give(session, epoch)
