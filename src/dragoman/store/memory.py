"""Sessions that live as long as the process: for tests, and when no file can be written."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from dragoman.engine.events import already
from dragoman.engine.faults import Fault, UnknownAsk, UnknownSession
from dragoman.engine.info import Page, SessionInfo, SessionQuery
from dragoman.engine.ports import AskRow, Batch, Entry
from dragoman.holding import Holder

from .rules import (
    ask_exists,
    check_ask,
    check_batch,
    check_find,
    check_limit,
    check_search,
    checked,
    closed,
    encode_cursor,
    exists,
    has_extra,
    has_words,
    in_use,
    moment,
    words_of,
)

RECENT = 100_000  # entries that `entries_since` can still give
SLACK = RECENT // 10  # let the list grow by this much before it is cut, so cutting is rare


class MemorySession(Holder):
    """One session in memory."""

    info: SessionInfo
    owner: str | None
    epoch: int = 1
    entries: list[Entry] = []


class MemoryStore:
    """The store port in dictionaries. `problem` says why no file is used, if one was wanted."""

    durable = False
    stalled = ""
    place = ""

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        self.commits = 0
        self._sessions: dict[str, MemorySession] = {}
        self._asks: dict[str, AskRow] = {}
        self._pairs: dict[str, dict[str, bytes]] = {}
        self._recent: list[Entry] = []
        self._gseq = 0
        self._closed = False

    def version(self) -> object:
        return self.commits

    async def create(self, info: SessionInfo, owner: str) -> int:
        self._check_open()
        if info.id in self._sessions:
            raise exists(info.id)
        self._sessions[info.id] = MemorySession(info, owner)
        self.commits += 1
        return 1

    async def take(self, session: str, owner: str, is_alive: Callable[[str], bool]) -> int:
        kept = self._kept(session)
        if kept.owner is not None and kept.owner != owner and is_alive(kept.owner):
            raise in_use(session, kept.owner)
        kept.owner = owner
        kept.epoch += 1
        self.commits += 1
        return kept.epoch

    async def give(self, session: str, epoch: int) -> None:
        self._check_open()
        kept = self._sessions.get(session)
        if kept is not None and kept.epoch == epoch:
            kept.owner = None
            kept.epoch += 1  # nothing can be appended with the epoch that was given back
            self.commits += 1

    def post(self, batch: Batch, *, patient: bool = False) -> "asyncio.Future[int]":
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(self._append(batch))
        except Fault as fault:
            future.set_exception(fault)
        return future

    async def append(self, batch: Batch) -> int:
        return self._append(batch)

    def _append(self, batch: Batch) -> int:
        kept = self._kept(batch.session)
        check_batch(batch, kept.epoch, kept.entries[-1].seq if kept.entries else 0)
        asks = self._changed_asks(batch) if batch.asked or batch.settled else {}
        first = self._gseq + 1 if batch.entries else 0
        new = [
            msgspec.structs.replace(entry, gseq=gseq, session=batch.session)
            for gseq, entry in enumerate(batch.entries, first)
        ]
        self._gseq += len(new)
        kept.entries.extend(new)
        kept.info = batch.info
        self._asks.update(asks)
        self._recent.extend(new)
        if len(self._recent) > RECENT + SLACK:
            del self._recent[:-RECENT]
        self.commits += 1
        return first

    async def info(self, session: str) -> SessionInfo | None:
        self._check_open()
        kept = self._sessions.get(session)
        return kept.info if kept else None

    async def owner(self, session: str) -> str | None:
        self._check_open()
        kept = self._sessions.get(session)
        return kept.owner if kept else None

    async def find(self, **extra: Any) -> SessionInfo | None:
        self._check_open()
        check_find(extra)
        best: SessionInfo | None = None
        for kept in self._sessions.values():
            if has_extra(kept.info, extra):
                if best is None or kept.info.created_at >= best.created_at:
                    best = kept.info
        return best

    async def entries(
        self, session: str, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]:
        self._check_open()
        check_limit(limit)
        kept = self._sessions.get(session)
        if kept is None:
            return []
        start = max(after, 0)  # seq counts from 1, so the entry after `after` has this index
        return kept.entries[start : None if limit is None else start + limit]

    async def entries_since(self, gseq: int, limit: int) -> Sequence[Entry]:
        self._check_open()
        check_limit(limit)
        start = bisect_right(self._recent, gseq, key=lambda entry: entry.gseq)
        return self._recent[start : start + limit]

    async def newest_gseq(self) -> int:
        self._check_open()
        return self._gseq

    async def list(self, query: SessionQuery) -> Page:
        self._check_open()
        limit, offset, place = checked(query)
        found = sorted(
            self._matching(query), key=lambda info: (info.updated_at, info.id), reverse=True
        )
        total = len(found)
        if place is not None:
            found = [info for info in found if (info.updated_at, info.id) < place]
        page = tuple(found[offset : offset + limit])
        more = len(found) > offset + limit
        return Page(
            page,
            encode_cursor(page[-1]) if more else "",
            total if offset or query.counted or not (more or place) else None,
        )

    async def search(self, text: str, limit: int = 100) -> Sequence[SessionInfo]:
        self._check_open()
        check_search(text, limit)
        from .words import has_terms, terms, text_of

        wanted = terms(text)
        found: dict[str, int] = {}
        for kept in self._sessions.values() if wanted else ():
            place = f"\n{kept.info.cwd}\n{kept.info.agent}"
            if has_terms(wanted, place):
                found[kept.info.id] = 0
            for entry in reversed(kept.entries):
                if (said := text_of([entry])) and has_terms(wanted, said + place):
                    found[kept.info.id] = entry.gseq
                    break
        newest = sorted(found, key=lambda session: found[session], reverse=True)
        return [self._sessions[session].info for session in newest[:limit]]

    async def ancestry(self, session: str) -> Sequence[SessionInfo]:
        self._check_open()
        chain: dict[str, SessionInfo] = {}
        at: str | None = session
        while at is not None and at not in chain and at in self._sessions:
            info = chain[at] = self._sessions[at].info
            at = info.parent
        return [*reversed(chain.values())]

    async def delete(self, session: str) -> bool:
        self._check_open()
        if self._sessions.pop(session, None) is None:
            return False
        self._asks = {key: row for key, row in self._asks.items() if row.ask.session != session}
        self._recent = [entry for entry in self._recent if entry.session != session]
        self.commits += 1
        return True

    async def asks(self, session: str | None = None, *, pending: bool = True) -> Sequence[AskRow]:
        self._check_open()
        rows = (
            row
            for row in self._asks.values()
            if (session is None or row.ask.session == session)
            and not (pending and row.settled is not None)
        )
        return sorted(rows, key=lambda row: row.ask.at)

    async def ask(self, ask_id: str) -> AskRow | None:
        self._check_open()
        return self._asks.get(ask_id)

    async def put(self, space: str, key: str, value: bytes | None) -> None:
        self._check_open()
        pairs = self._pairs.setdefault(space, {})
        if value is None:
            pairs.pop(key, None)
        else:
            pairs[key] = bytes(value)
        self.commits += 1

    async def pop(self, space: str, key: str) -> bytes | None:
        self._check_open()
        self.commits += 1
        return self._pairs.get(space, {}).pop(key, None)

    async def get(self, space: str, key: str) -> bytes | None:
        self._check_open()
        return self._pairs.get(space, {}).get(key)

    async def pairs(self, space: str) -> Sequence[tuple[str, bytes]]:
        self._check_open()
        return sorted(self._pairs.get(space, {}).items())

    async def spaces(self) -> Sequence[str]:
        self._check_open()
        return sorted(space for space, pairs in self._pairs.items() if pairs)

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise closed()

    def _kept(self, session: str) -> MemorySession:
        self._check_open()
        kept = self._sessions.get(session)
        if kept is None:
            raise UnknownSession(session)
        return kept

    def _changed_asks(self, batch: Batch) -> dict[str, AskRow]:
        """The ask rows after this batch, checked before anything is written."""
        changed: dict[str, AskRow] = {}
        for ask in batch.asked:
            check_ask(ask, batch.session)
            if ask.id in self._asks or ask.id in changed:
                raise ask_exists(ask.id)
            changed[ask.id] = AskRow(ask)
        for settled in batch.settled:
            row = changed.get(settled.ask_id) or self._asks.get(settled.ask_id)
            if row is None or row.ask.session != batch.session:
                raise UnknownAsk.named(settled.ask_id)
            if row.settled is not None:
                raise already(row.settled)
            changed[settled.ask_id] = AskRow(row.ask, settled, moment(batch))
        return changed

    def _matching(self, query: SessionQuery) -> Iterable[SessionInfo]:
        words = words_of(query.text)
        parents = {kept.info.parent for kept in self._sessions.values()} if query.leaves else set()
        for kept in self._sessions.values():
            info = kept.info
            if (
                (query.cwd is None or info.cwd == query.cwd)
                and (query.agent is None or info.agent == query.agent)
                and (query.parent is None or info.parent == query.parent)
                and (not query.status or info.status in query.status)
                and (query.archived is None or info.archived == query.archived)
                and (query.origin is None or info.origin == query.origin)
                and info.id not in parents
                and (not words or has_words(words, info.title, info.query))
                and has_extra(info, query.extra)
            ):
                yield info
