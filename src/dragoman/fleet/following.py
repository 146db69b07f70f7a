"""Reads what other nodes store, for those who watch here and those who wait for a turn there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.events import Event
from dragoman.engine.faults import Busy, StoreFailed, UnknownSession
from dragoman.engine.host import Host
from dragoman.engine.work import Finished
from dragoman.holding import Holder

from .desk import Desk
from .mirror import FarLedger

if TYPE_CHECKING:
    from dragoman.engine.ports import Entry
    from dragoman.engine.work import Work

PAGE = 500
HEARD = {
    str(kind.__struct_config__.tag) for kind in (ev.TurnBegan, ev.Queued, ev.Dropped, ev.TurnEnded)
}


class Wait(Holder):
    """A turn that was asked for here and is taken elsewhere."""

    session: str
    after: int  # the log of the session was looked through up to here
    work: "Work"


class Following:
    """The log of all sessions that others write, from a place on."""

    def __init__(self, host: Host, desk: Desk) -> None:
        self._host = host
        self._desk = desk
        self._waits: list[Wait] = []
        self._place: int | None = None  # None: nobody was interested
        self._fresh: set[str] = set()  # mirrors that were made since the last look
        self._unreadable: set[str] = set()  # mirrors of what a newer node wrote, or a broken one
        self.lag = 0  # events that were behind at the last look

    def begin(self, session_id: str) -> None:
        """Somebody is interested in one more session."""
        self._fresh.add(session_id)
        self._unreadable.discard(session_id)

    def await_turn(self, session: str, after: int, work: "Work") -> None:
        self._waits.append(Wait(session, after, work))

    async def look(self) -> None:
        """Tell what was stored since the last look."""
        mirrors = [one.id for one in self._host.live.values() if not one.own]
        if not (mirrors or self._waits or self._host.hub.watches):
            self._place = None
            self._fresh.clear()
            return
        newest = await self._host.store.newest_gseq()
        fresh, self._fresh = self._fresh, set()
        if self._place is None:
            self._place, fresh = newest, fresh | {*mirrors}
        self.lag = newest - self._place
        if newest > self._place:
            await self._read(newest)
        for session_id in fresh:
            await self.catch_up(session_id)
        await self._settle_waits()

    async def _read(self, newest: int) -> None:
        assert self._place is not None
        while self._place < newest:
            entries, reached = await self._desk.foreign(self._place, newest, PAGE)
            gaps = set()
            for entry in entries:
                session = self._host.live.get(entry.session)
                if session is None:
                    self._tell_all(entry)
                elif isinstance(session.ledger, FarLedger):
                    if entry.seq > session.state.seq + 1:
                        gaps.add(entry.session)
                    else:
                        self._fold(session.ledger, (entry,))
            for session_id in gaps:
                await self.catch_up(session_id)
            self._place = reached

    def _fold(self, ledger: FarLedger, entries: "Sequence[Entry]") -> None:
        """Take in what a mirror's owner stored; one that cannot be read keeps no other waiting."""
        if ledger.id in self._unreadable:
            return
        try:
            ledger.fold(entries)
        except msgspec.DecodeError as error:
            self._unreadable.add(ledger.id)
            self._host.trouble("a session cannot be followed", error, session=ledger.id)

    def _tell_all(self, entry: "Entry") -> None:
        """To those who watch every session; nobody here watches this one alone."""
        hub = self._host.hub
        if hub.watches:
            try:
                body = ev.decode_body(entry.body)
            except msgspec.DecodeError as error:
                self._host.trouble("an event cannot be told", error, session=entry.session)
                return
            hub.emit_kept([Event(entry.session, entry.at, body, entry.seq, entry.gseq)])

    async def catch_up(self, session_id: str) -> None:
        """Bring one mirror up to what is stored."""
        while True:
            session = self._host.live.get(session_id)
            if session is None or not isinstance(session.ledger, FarLedger):
                return
            page = await self._host.store.entries(session_id, session.state.seq, PAGE)
            self._fold(session.ledger, page)
            if len(page) < PAGE or session_id in self._unreadable:
                return

    async def _settle_waits(self) -> None:
        for wait in tuple(self._waits):
            while not wait.work.done.done():
                page = await self._host.store.entries(wait.session, wait.after, PAGE)
                if page:  # nobody hears of a turn here that the mirror does not know yet
                    await self.catch_up(wait.session)
                for entry in page:
                    wait.after = entry.seq
                    if entry.kind in HEARD:
                        self._listen(wait.work, entry)
                if len(page) < PAGE:
                    break
            if not wait.work.done.done() and not page and wait.session not in self._host.live:
                if await self._host.store.info(wait.session) is None:
                    wait.work.fail(UnknownSession(wait.session))
        self._waits = [wait for wait in self._waits if not wait.work.done.done()]

    def _listen(self, work: "Work", entry: "Entry") -> None:
        """Take in what may be about a turn; one fact that cannot be read ends no other wait."""
        try:
            _hear(work, ev.decode_body(entry.body))
        except msgspec.DecodeError as error:
            if work.turn.encode() in entry.body:
                self._host.trouble("a turn cannot be followed", error, session=entry.session)
                work.fail(
                    StoreFailed(
                        f"What became of turn {work.turn} cannot be read here.",
                        "A newer node may have it: look at the session there, or update this one.",
                    )
                )


def _hear(work: "Work", body: ev.Kept) -> None:
    """What a stored fact says about a turn that somebody here waits for."""
    if isinstance(body, ev.TurnBegan) and body.turn == work.turn:
        work.begin()
    elif isinstance(body, ev.Queued) and body.id == work.turn:
        work.keep()
    elif isinstance(body, ev.Dropped) and body.id == work.turn:
        if work.stopped is None:
            work.fail(Busy(body.reason))
        else:
            work.finish(Finished(work.turn, "cancelled", "aborted", cause=work.stopped[0]))
    elif isinstance(body, ev.TurnEnded) and body.turn == work.turn:
        work.finish(Finished(body.turn, body.outcome, body.stop, body.text, body.error, body.cause))
