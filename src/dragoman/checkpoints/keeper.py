"""Keeps what calls change, turn by turn, and brings it back (`ports.Checkpoints`)."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from dragoman.engine.faults import BadInput, StoreFailed, in_words
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports.checkpoints import (
    ChangedFile,
    Checkpoint,
    Restored,
    TouchedFile,
)
from dragoman.engine.reading import counted
from dragoman.engine.traits import Continues, StartedBy
from dragoman.observe.log import get_log
from dragoman.standing import identity, move_aside

from .beside import OpenLook, told_apart
from .comparing import compared, fate_of
from .database import NOTHING, UNKNOWN, ChangedTurn, Database, FileChange, State, short
from .looking import LookLimits, WorkspaceLook, differences, kept_state, look
from .restoring import between, keep_theirs, plan, refuse, restore

T = TypeVar("T")
log = get_log("checkpoints")
_LOOKS = 64  # sessions whose running command has a look to be compared with
# Kept with the turn, said when it is undone.
_BY_WHOMEVER = "What changed in the folder while a command ran counts as the command's change."
_SHRINK = 64  # calls after which the size is looked at


class Keeper:
    """One for a process; others may use the same file. All methods but `close` are awaited."""

    def __init__(
        self, path: str, limits: LookLimits | None = None, max_bytes: int = 512 * 1024 * 1024
    ) -> None:
        self._path = path
        self._limits = limits or LookLimits()
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._db: Database | None = None
        # Of commands that run side by side the first look counts for all of them.
        self._looks: dict[tuple[str, str, str], OpenLook] = {}
        self._begun: dict[tuple[str, str, str], State] = {}  # files before calls that name them
        self._open: dict[tuple[str, str], int] = {}  # calls that run now, by turn
        self._calls = 0

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    async def _do(self, work: Callable[[Database], T]) -> T:
        def run() -> T:
            with self._lock:
                try:
                    return work(self._ready())
                except (sqlite3.Error, OSError) as error:
                    raise self._explained(error) from error

        return await asyncio.to_thread(run)

    def _ready(self) -> Database:
        """The file that is there; a damaged one, or one that was taken away, is begun anew."""
        if self._db is not None and self._db.file != identity(self._path):
            self._db.close()
            self._db = None
        if self._db is None:
            try:
                self._db = Database(self._path)
            except sqlite3.Error as error:
                if not _is_damaged(error):
                    raise
                self._put_aside()
                self._db = Database(self._path)
        return self._db

    def _put_aside(self) -> str:
        aside = move_aside(self._path)
        log.error("checkpoints were damaged, and are begun anew", moved=aside)
        return aside

    def _explained(self, error: Exception) -> StoreFailed:
        db = self._db
        if db is not None and _is_damaged(error):
            db.close()
            self._db = None
            if db.file == identity(self._path):  # else somebody has moved it already
                try:
                    aside = self._put_aside()
                except OSError as problem:
                    error = problem
                else:
                    return StoreFailed(
                        f"The checkpoints in {self._path} were damaged and moved to {aside}.",
                        "They are begun anew: what turns changed before cannot be undone.",
                    )
        return StoreFailed(
            f"Checkpoints cannot be kept in {self._path}: {in_words(error)}.",
            "Look at the disk; without them nothing can be undone.",
        )

    # --- around a call ---

    async def before(self, session: SessionInfo, turn: str, paths: Sequence[str] | None) -> None:
        owner, turn = _owner(session, turn)
        space = session.cwd
        await self._do(lambda db: self._before(db, owner, turn, space, paths))

    async def after(self, session: SessionInfo, turn: str, paths: Sequence[str] | None) -> None:
        owner, turn = _owner(session, turn)
        space = session.cwd
        await self._do(lambda db: self._after(db, owner, turn, space, paths, _line(session)))

    def _before(
        self, db: Database, session: str, turn: str, space: str, paths: Sequence[str] | None
    ) -> None:
        key = (session, turn, space)
        open_look = self._looks.get(key)
        if paths is None and open_look is None:
            while len(self._looks) >= _LOOKS:
                self._looks.pop(next(iter(self._looks)))
            open_look = OpenLook(look(db, space, self._limits))
        seen = None if open_look is None else open_look.seen
        with db.writing():
            row = db.turn(session, turn, space)
            known = {one.path: one for one in db.changes(row.n)}
            if not self._open.get((session, turn)):  # else it may be the work of that call
                self._meet(db, row, [known[path] for path in paths or known if path in known], seen)
            if paths is None and seen is not None:
                db.mark(row.n, scanning=True, note=seen.note)
            for path in paths or ():
                if path in known:
                    if self._looks:
                        self._begun[session, turn, path] = kept_state(db, path, self._limits.file)
                else:
                    state = seen.files.get(short(path, space)) if seen is not None else None
                    if state is None:
                        state = kept_state(db, path, self._limits.file)
                    db.change(row.n, FileChange(path, state, State(UNKNOWN)))
                    self._begun[session, turn, path] = state
        if paths is None and open_look is not None:
            self._looks[key] = open_look
            open_look.count += 1
        self._open[session, turn] = self._open.get((session, turn), 0) + 1

    def _meet(
        self, db: Database, row: ChangedTurn, left: list[FileChange], seen: WorkspaceLook | None
    ) -> None:
        """Take down what others made of files since this turn changed them."""
        for one in left:
            if one.after.mode == UNKNOWN:
                continue
            now = seen.files.get(short(one.path, row.space)) if seen is not None else None
            if now is None:
                now = kept_state(db, one.path, self._limits.file)
            if now != one.after:
                db.met(row.n, FileChange(one.path, one.after, now))

    def _after(
        self,
        db: Database,
        session: str,
        turn: str,
        space: str,
        paths: Sequence[str] | None,
        line: Sequence[str],
    ) -> None:
        running = self._open.pop((session, turn), 1) - 1
        if running > 0:
            self._open[session, turn] = running
        with db.writing():
            row = db.turn(session, turn, space)
        if paths is None:
            open_look = self._looks.get((session, turn, space))
            if open_look is not None:
                open_look.count -= 1
            ended = open_look is None or open_look.count < 1
            if ended:
                self._looks.pop((session, turn, space), None)
            self._compared(db, session, row, open_look, ended=ended)
        else:
            self._ended(db, session, row, paths)
        if any(True for _ in db.changes(row.n)):
            with db.writing():  # what was undone before cannot be done again on top of this
                db.drop(one.n for id in (session, *line) for one in db.turns(id) if one.undone)
        elif not row.undone and not running:
            with db.writing():
                db.drop([row.n])
        self._calls += 1
        if self._calls % _SHRINK == 1:
            db.shrink(self._max_bytes, space)

    def _compared(
        self,
        db: Database,
        session: str,
        row: ChangedTurn,
        open_look: OpenLook | None,
        *,
        ended: bool = True,
    ) -> None:
        """Take down what is another since a look; `ended`: no other command runs on."""
        space = row.space
        if open_look is None:  # of a process that died: what it saw is still in the file
            seen = db.seen(space)
            open_look = OpenLook(
                WorkspaceLook({path: one.state for path, one in seen.items()}, partial=True)
            )
        new = look(db, space, self._limits)
        found, note = differences(space, open_look.seen, new)
        for other in self._others_looks(session, row.turn):
            for change in found:
                # When it was so before the other command began, that one did not do it.
                if other.at(change.path) not in (None, change.after):
                    open_look.doubtful.add(change.path)
                    other.look.doubtful.add(change.path)
        with db.writing():
            known = {one.path for one in db.changes(row.n)}
            told = told_apart(found, open_look.theirs, open_look.doubtful, known)
            for change in told.own:
                db.change(row.n, change)
            met = db.others(row.n)
            for change in told.others:
                if change not in met:
                    db.met(row.n, change)
            db.mark(row.n, scanning=not ended, note=note)
            if told.own:
                db.mark(row.n, note=_BY_WHOMEVER)

    def _others_looks(self, session: str, turn: str) -> "list[_OthersLook]":
        """The looks of commands that other turns run now."""
        return [
            _OthersLook(space, one)
            for (owner, its, space), one in self._looks.items()
            if (owner, its) != (session, turn)
        ]

    def _ended(self, db: Database, session: str, row: ChangedTurn, paths: Sequence[str]) -> None:
        others = self._others_looks(session, row.turn)
        with db.writing():
            known = {one.path: one for one in db.changes(row.n)}
            for path in paths:
                before = self._begun.pop((session, row.turn, path), None)
                if path not in known:
                    continue
                state = kept_state(db, path, self._limits.file)
                db.change(row.n, FileChange(path, known[path].before, state))
                if before is None or before == state:
                    continue
                for other in others:
                    if other.at(path) is not None:
                        other.look.theirs.append(FileChange(path, before, state))

    def _settle(
        self, db: Database, session: str, *, rests: bool
    ) -> list[tuple[ChangedTurn, list[FileChange]]]:
        """All turns with what they changed; what was left open is closed with what is there.

        When the session does not rest, its last turn may be open for a good reason.
        """
        for row in db.turns(session):
            if not rests and (session, row.turn, row.space) in self._looks:
                continue
            if row.scanning:
                open_look = self._looks.pop((session, row.turn, row.space), None)
                self._compared(db, session, row, open_look)
            open_ones = [one.path for one in db.changes(row.n) if one.after.mode == UNKNOWN]
            if open_ones:
                self._ended(db, session, row, open_ones)
        found = [(row, db.changes(row.n)) for row in db.turns(session)]
        return [(row, changes) for row, changes in found if changes]

    def _line_of(
        self, db: Database, line: Sequence[str], *, rests: bool
    ) -> list[tuple[ChangedTurn, list[FileChange]]]:
        """The turns of a whole conversation: of a session, and those that it goes on with."""
        found = self._settle(db, line[0], rests=rests)
        for id in line[1:]:
            found += self._settle(db, id, rests=False)
        return sorted(found, key=lambda one: one[0].n)

    # --- looking, and the way back ---

    async def listed(self, session: SessionInfo) -> Sequence[Checkpoint]:
        rows = await self._do(lambda db: self._line_of(db, _line(session), rests=False))
        return [
            Checkpoint(row.turn, row.at, _touched(changes, row.space), bool(row.undone), _note(row))
            for row, changes in rows
        ]

    async def changed(self, session: SessionInfo, turn: str = "") -> Sequence[ChangedFile]:
        return await self._do(lambda db: self._changed(db, session.id, turn))

    def _changed(self, db: Database, session: str, turn: str) -> list[ChangedFile]:
        rows = self._settle(db, session, rests=False)
        if turn:
            rows = [rows[_place(rows, turn)]] if rows else []
        else:
            rows = [one for one in rows if not one[0].undone]
        whole = plan([changes for _, changes in rows], back=False)
        space = rows[0][0].space if rows else ""
        found = (compared(db, one, short(one.path, space)) for one in whole)
        return [one for one in found if one is not None]

    async def undo(self, session: SessionInfo, turn: str = "") -> Restored:
        return await self._do(lambda db: self._undo(db, _line(session), turn))

    def _undo(self, db: Database, line: Sequence[str], turn: str) -> Restored:
        rows = self._line_of(db, line, rests=True)
        done = [one for one in rows if not one[0].undone]
        if not done:
            raise BadInput(
                "There is nothing to undo: no turn of this session changed a file that was kept."
            )
        first = len(done) - 1 if not turn else _place(done, turn)
        chosen = done[first:]
        number = 1 + max((row.undone for row, _ in rows), default=0)
        return self._restored(db, chosen[::-1], number, back=True)

    async def redo(self, session: SessionInfo) -> Restored:
        return await self._do(lambda db: self._redo(db, _line(session)))

    def _redo(self, db: Database, line: Sequence[str]) -> Restored:
        rows = self._line_of(db, line, rests=True)
        newest = max((row.undone for row, _ in rows), default=0)
        if not newest:
            raise BadInput("There is nothing to redo: nothing was undone since the last change.")
        chosen = [one for one in rows if one[0].undone == newest]
        return self._restored(db, chosen, 0, back=False)

    def _restored(
        self,
        db: Database,
        chosen: list[tuple[ChangedTurn, list[FileChange]]],
        undone: int,
        *,
        back: bool,
    ) -> Restored:
        space = chosen[0][0].space
        steps = [changes for _, changes in chosen]
        wanted = plan(steps, back=back)
        if back:
            others = [one for row, _ in chosen for one in db.others(row.n)]
            keep_theirs(db, wanted, others, self._limits.file, space)
        refuse(db, between(steps, back=back), space)
        files, lost = restore(db, wanted, self._limits.file, space)
        with db.writing():
            db.undone([row.n for row, _ in chosen], undone)
        notes = [note for row, _ in chosen if (note := _note(row))]
        if back and files and any(_BY_WHOMEVER in row.note for row, _ in chosen):
            notes.append(f"{_BY_WHOMEVER} If some of it was yours, redo brings it back.")
        if lost:
            names = ", ".join(short(path, space) for path in lost[:10])
            notes.append(f"Not put back, because the content was not kept: {names}.")
        turns = tuple(row.turn for row, _ in (chosen if back else chosen[::-1]))
        touched = tuple(TouchedFile(short(path, space), fate) for path, fate in files)
        return Restored(turns, touched, " ".join(dict.fromkeys(notes)))

    async def forget(self, session_id: str) -> None:
        def work(db: Database) -> None:
            with db.writing():
                db.drop(row.n for row in db.turns(session_id))

        if self._db is not None or await asyncio.to_thread(os.path.exists, self._path):
            await self._do(work)


def _is_damaged(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class _OthersLook(NamedTuple):
    """What another turn saw of a folder before its command."""

    space: str
    look: OpenLook

    def at(self, path: str) -> State | None:
        """The file as it was then; None: it lies elsewhere."""
        if not path.startswith(self.space + "/"):
            return None
        return self.look.seen.files.get(short(path, self.space), NOTHING)


def _note(row: ChangedTurn) -> str:
    """What is not covered."""
    return row.note.replace(_BY_WHOMEVER, "").strip()


def _owner(session: SessionInfo, turn: str) -> tuple[str, str]:
    """Whose change it is: a child's changes belong to the turn that started it."""
    given = StartedBy.of(session.extra)
    return (given.session, given.turn) if given.session else (session.id, turn)


def _line(session: SessionInfo) -> tuple[str, ...]:
    """A session, and those that it goes on with."""
    return (session.id, *Continues.of(session.extra).sessions)


def _place(rows: list[tuple[ChangedTurn, list[FileChange]]], turn: str) -> int:
    """The turn that is meant: its id, the beginning of it, or its number in the list."""
    found = [n for n, (row, _) in enumerate(rows) if row.turn == turn]
    if not found:
        short = turn.removeprefix("trn_")
        found = [
            n for n, (row, _) in enumerate(rows) if row.turn.removeprefix("trn_").startswith(short)
        ]
    if not found and 1 <= (counted(turn) or 0) <= len(rows):
        found = [int(turn) - 1]
    if len(found) == 1:
        return found[0]
    known = ", ".join(row.turn for row, _ in rows[-10:])
    what = f"{turn} is the beginning of several turns" if found else f"No turn {turn} can be undone"
    raise BadInput(f"{what}.", f"There are: {known}.")


def _touched(changes: Sequence[FileChange], space: str) -> tuple[TouchedFile, ...]:
    return tuple(TouchedFile(short(one.path, space), fate_of(one)) for one in changes)
