"""All sessions as encoded rows, kept fresh by looking only at what changed since.

The protocol lists every session in one answer, so the rows are kept encoded while somebody lists:
an unchanged list is the same bytes again, a changed one encodes the touched rows. Our own changes
are always in the list; those of other processes too, because the store is asked what is new, at
most every 50 ms. When nobody listed for a minute, all of it is let go.

A hundred thousand sessions are 100 MB: what is that long is put together in a thread (joining bytes
lets others run), so that nobody else waits for it.
"""

import asyncio
from collections.abc import Callable, Iterable
from operator import attrgetter

import msgspec

from dragoman.engine.door import Door
from dragoman.engine.faults import UnknownSession
from dragoman.engine.info import SessionInfo, SessionQuery, each_session
from dragoman.engine.traits import Waiver
from dragoman.wire.codec import encode

from .rows import row_of, status_of
from .shapes import RecentPath
from .times import seconds

_KEEP_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_RELOAD_SECONDS = 10.0  # deletions by other processes leave no event
_CHANGES = 256
_PAGE = 500  # encoded at one go
LONG = 1_000_000  # bytes of a result


class SessionRow(msgspec.Struct, frozen=True, gc=False):
    """What the lists need of one session."""

    place: tuple[int, int, bool, str]  # in the order of the lists
    updated_at: int
    id: str
    parent: str | None
    status: str
    archived: bool
    cwd: str
    seq: int
    timed: bool  # permissions are asked for again after a while: the row changes by itself then
    row: bytes


class SessionRows:
    """The sessions of the store, newest activity first."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._entries: dict[str, SessionRow] = {}
        self._order: list[SessionRow] = []
        self._all: bytes | None = None
        self._place = -1
        self._deletions = -1
        self._loaded = -_RELOAD_SECONDS
        self._looked = -_LOOK_SECONDS  # when the store was asked last
        self._used = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._lock = asyncio.Lock()
        self._joining = asyncio.Lock()
        self._line: tuple[bytes | None, bytes] = (None, b"")  # the result, and the whole response

    def line(self) -> bytes | None:
        """The response to `listSessions` but for its id, when it is certainly still right."""
        now = asyncio.get_running_loop().time()
        if self._all is None or not self._is_current(now) or now - self._looked >= _LOOK_SECONDS:
            return None
        if len(self._all) >= LONG:
            return None
        self._used = now
        if self._line[0] is not self._all:
            made = b'{"jsonrpc":"2.0","result":' + self._all.replace(b"%", b"%%") + b',"id":%d}'
            self._line = (self._all, made)
        return self._line[1]

    async def rows(self) -> bytes:
        """The result of `listSessions`."""
        await self._refresh()
        if self._all is not None:
            return self._all
        async with self._joining:  # one for all who ask
            if self._all is None:
                order = self._order
                made = await _result([entry.row for entry in order])
                if order is not self._order:
                    return made
                self._all = made
            return self._all

    async def chosen(self, wanted: Callable[[SessionRow, frozenset[str]], bool]) -> bytes:
        """The same for those entries that are wanted, given the ids of all parents."""
        await self._refresh()
        parents = frozenset(entry.parent for entry in self._order if entry.parent)
        return await _result([entry.row for entry in self._order if wanted(entry, parents)])

    async def paths(self, limit: int) -> list[RecentPath]:
        """The working directories that were used last."""
        await self._refresh()
        found: dict[str, list[int]] = {}
        for entry in self._order:
            if entry.cwd not in ("", "."):
                found.setdefault(entry.cwd, [entry.updated_at, 0])[1] += 1
        return [
            RecentPath(path, seconds(last), count)
            for path, (last, count) in list(found.items())[:limit]
        ]

    async def _refresh(self) -> None:
        loop = asyncio.get_running_loop()
        self._used = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(_KEEP_SECONDS, self._let_go)
        if not self._lock.locked() and await self._is_fresh():
            return
        async with self._lock:
            if not await self._is_fresh():
                await self._catch_up()

    def _is_current(self, now: float) -> bool:
        """Whether everything that this process did is in."""
        return (
            self._deletions == self._door.deletions
            and self._place >= self._door.told
            and now - self._loaded < _RELOAD_SECONDS
        )

    async def _is_fresh(self) -> bool:
        now = asyncio.get_running_loop().time()
        if not self._is_current(now):
            return False
        if now - self._looked < _LOOK_SECONDS:
            return True
        if self._place != await self._door.newest():
            return False
        self._looked = now
        return True

    async def _catch_up(self) -> None:
        deletions = self._door.deletions
        place = await self._door.newest()
        late = asyncio.get_running_loop().time() - self._loaded >= _RELOAD_SECONDS
        touched: Iterable[str] | None = None
        if deletions == self._deletions and self._place >= 0 and not late:
            changes = await self._door.touched(self._place, _CHANGES)
            if len(changes) < _CHANGES:
                touched = dict.fromkeys(changes)
        if touched is None:
            await self._load()
        else:
            for session_id in touched:
                await self._renew(session_id)
        self._order = sorted(self._entries.values(), key=attrgetter("place"), reverse=True)
        self._all = None
        self._place, self._deletions = place, deletions
        self._looked = asyncio.get_running_loop().time()

    async def _load(self) -> None:
        before = self._entries
        now = self._door.now_ms()
        entries: dict[str, SessionRow] = {}
        async for info in each_session(self._door.list, SessionQuery(limit=_PAGE)):
            entries[info.id] = _entry(info, now, before.get(info.id))
        self._entries = entries
        self._loaded = asyncio.get_running_loop().time()

    async def _renew(self, session_id: str) -> None:
        try:
            info = await self._door.info(session_id)
        except UnknownSession:
            self._entries.pop(session_id, None)
            return
        self._entries[session_id] = _entry(info, self._door.now_ms(), None)

    def _let_go(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        unused = loop.time() - self._used
        if unused < _KEEP_SECONDS:
            self._timer = loop.call_later(_KEEP_SECONDS - unused, self._let_go)
            return
        self._entries, self._order, self._all, self._place = {}, [], None, -1

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _entry(info: SessionInfo, now: int, before: SessionRow | None) -> SessionRow:
    if before is not None and before.seq == info.last_seq and not before.timed:
        return before
    # Within one millisecond: a child is younger than its parent.
    place = (info.updated_at, info.created_at, info.parent is not None, info.id)
    return SessionRow(
        place,
        info.updated_at,
        info.id,
        info.parent,
        status_of(info),
        info.archived,
        info.cwd,
        info.last_seq,
        Waiver.of(info.extra).until is not None,
        encode(row_of(info, now)),
    )


async def _result(rows: list[bytes]) -> bytes:
    size = sum(map(len, rows))
    if size < LONG:
        return b'{"sessions":[' + b",".join(rows) + b"]}"
    rows[0] = b'{"sessions":[' + rows[0]
    rows[-1] += b"]}"
    return await asyncio.to_thread(b",".join, rows)
