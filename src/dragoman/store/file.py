"""The database file on disk: who has it open, whether it is sound, and what its errors mean."""

import errno
import fcntl
import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.engine.faults import MORE_FILES, BadInput, Fault, StoreFailed
from dragoman.kernel import ASK_OPEN_FILE, LOCK_OPEN_FILE
from dragoman.standing import in_place_of_file, led_to
from dragoman.standing import move_aside as move_aside

from .rows import Torn
from .rules import has_words
from .writer import BUSY_MS

if TYPE_CHECKING:
    from sqlite3 import Connection

CHECK_BYTES = 512 * 1024 * 1024  # a larger file is looked through only when damage was met in it
OPEN = b"open"
DAMAGED = b"hurt"
# What SQLite locks to say that a file is in use: bytes of the file, and one of its shared memory.
_IN_USE = (("", 0x40000002, 510), ("-shm", 128, 1))


def parts(path: str) -> tuple[str, ...]:
    """The database, and what lies beside it and belongs to it while it is open.

    Without its log a crash loses all that is not yet in the file itself; without the others, the
    next process that opens it believes itself alone.
    """
    real = led_to(path)
    return (path, f"{real}-wal", f"{real}-shm", f"{real}.lock")


class Damaged(StoreFailed):
    """The file is no database, or a broken one."""


class Unwritable(StoreFailed):
    """The file cannot be created or written where it should be."""


class Claim:
    """A mark beside the database that says which processes have it open.

    Whoever comes first holds it alone while it opens the file, so two processes never prepare it at
    once; it also learns whether the last one to leave closed properly. The last one to leave a
    sound file takes the mark away, so whoever holds one looks whether it is still there.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}.lock"
        while True:
            self._file = self._open()
            self.alone = self._alone()
            if not self.alone:
                fcntl.flock(self._file, fcntl.LOCK_SH)
            if self._is_there():
                break
            os.close(self._file)
        mark = os.pread(self._file, len(OPEN), 0) if self.alone else b""
        self.unclean = mark in (OPEN, DAMAGED)  # the last one to leave crashed, or met damage
        self.suspect = mark == DAMAGED

    def is_alone(self) -> bool:
        """Whether nobody has it open now, also if somebody came first and has left since."""
        self.alone = self.alone or self._alone()
        return self.alone

    def share(self) -> None:
        """Let others open the file too.

        Not every system shares a lock in one step: who comes, and leaves, between the two takes the
        mark away. Then another one is made, or whoever opens the file next believes itself alone.
        """
        if self.alone:
            self.alone = False
            os.pwrite(self._file, OPEN, 0)
            fcntl.flock(self._file, fcntl.LOCK_SH)
            while not self._is_there():
                former, self._file = self._file, self._open()
                os.close(former)
                fcntl.flock(self._file, fcntl.LOCK_SH)
                if not os.pread(self._file, len(OPEN), 0):
                    os.pwrite(self._file, OPEN, 0)

    def condemn(self) -> None:
        """Have whoever opens the file next look through it."""
        with suppress(OSError):  # the disk that damaged it may take no mark; readers go on
            os.pwrite(self._file, DAMAGED, 0)

    def release(self, *, clean: bool) -> None:
        """Leave; the last one that leaves a sound file takes the mark away."""
        if clean and self._alone() and os.pread(self._file, len(OPEN), 0) != DAMAGED:
            with suppress(OSError):  # it stays: the next one takes a short look, no more
                if self._is_there():
                    os.unlink(self._path)
        os.close(self._file)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self._path, flags, 0o600)

    def _is_there(self) -> bool:
        """Whether what is held is still the mark that others would find."""
        ours = os.fstat(self._file)
        try:
            found = os.lstat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)

    def _alone(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Anchor:
    """Says to other processes that the database is in use, whatever this one opens and closes.

    SQLite's own locks end as soon as anybody in the process closes another descriptor of the file:
    the next process to leave takes the log away then, and all that is written later is lost. These
    belong to descriptors of their own, where the platform has such locks.
    """

    def __init__(self, path: str) -> None:
        self._held: list[tuple[int, int, int]] = []
        self._locks = LOCK_OPEN_FILE is not None
        try:
            for suffix, start, length in _IN_USE if self._locks else ():
                fd = os.open(path + suffix, os.O_RDWR | os.O_CLOEXEC)
                self._held.append((fd, start, length))
                self._set(fcntl.F_RDLCK, fd, start, length)
        except BaseException as problem:
            if isinstance(problem, OSError) and problem.errno == errno.EINVAL:
                self._locks = False  # a kernel without them; what is open stays so: see `close`
                return
            self.close()
            raise

    @staticmethod
    def _set(kind: int, fd: int, start: int, length: int) -> None:
        assert LOCK_OPEN_FILE is not None
        wanted = struct.pack("hhqqi", kind, os.SEEK_SET, start, length, 0)
        fcntl.fcntl(fd, LOCK_OPEN_FILE, wanted)

    def lift(self) -> None:
        """Let the last one to leave take the log away: that may be us."""
        for held in self._held if self._locks else ():
            self._set(fcntl.F_UNLCK, *held)

    def close(self) -> None:
        """Once SQLite has closed the file: this would end its locks."""
        while self._held:
            os.close(self._held.pop()[0])


def used_by_other_name(path: str) -> bool:
    """Whether a file with several names is in use; ask when nobody has it open by this one.

    The mark and the log lie beside the other name: two would write over each other. What SQLite and
    an anchor lock is the file itself.
    """
    if ASK_OPEN_FILE is None or os.stat(path).st_nlink < 2:
        return False
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        _, start, length = _IN_USE[0]
        asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        return bool(
            struct.unpack_from("h", fcntl.fcntl(fd, ASK_OPEN_FILE, asked))[0] != fcntl.F_UNLCK
        )
    except OSError as problem:
        if problem.errno == errno.EINVAL:  # a kernel without such locks
            return False
        raise
    finally:
        os.close(fd)


def prepare(path: str) -> None:
    """Make the directory and an empty file that only its owner may read. Raises Unwritable."""
    if wrong := in_place_of_file(path):
        what, mend = wrong
        raise Unwritable(f"{what}.", f"{mend}, or choose another file with store.path.", path=path)
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return


def connect(path: str) -> "Connection":
    """A connection in autocommit mode (transactions are begun by hand); nothing is touched yet."""
    import sqlite3

    return sqlite3.connect(
        path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False
    )


def adjust(connection: "Connection", path: str, synchronous: str, *, fresh: bool = False) -> None:
    """Give our own file its mode, and the connection our settings.

    A `fresh` file is not waited for until `heed` is called: nothing is in it yet.
    """
    if synchronous not in ("NORMAL", "FULL"):
        raise BadInput(f"Unknown durability {synchronous!r}.", "Choose NORMAL or FULL.")
    for name in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.exists(name) and os.stat(name).st_mode & 0o077:
            os.chmod(name, 0o600)
    connection.execute("PRAGMA foreign_keys = ON")
    if fresh:
        connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = WAL")
    if not fresh:
        heed(connection, synchronous)
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.create_function(
        "has_word",
        3,
        lambda word, title, prompt: has_words((word,), title, prompt),
        deterministic=True,
    )


def heed(connection: "Connection", synchronous: str) -> None:
    """From now on, commits reach the disk as they should."""
    connection.execute(f"PRAGMA synchronous = {synchronous}")


def is_fresh(path: str, synchronous: str) -> bool:
    """Whether an empty file may be filled without waiting for the disk.

    NORMAL promises nothing about a loss of power. FULL does, from the first commit on, and that
    would be lost with the file's first page.
    """
    return synchronous == "NORMAL" and os.path.getsize(path) == 0


def check(connection: "Connection", path: str, *, thorough: bool) -> None:
    """Look through the file; Damaged when it is broken. A crash alone is worth a short look."""
    if thorough or os.path.getsize(path) <= CHECK_BYTES:
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise damaged(path)


def explain(error: Exception, path: str) -> Fault:
    """What went wrong in one sentence, and the way out."""
    import sqlite3

    if isinstance(error, Fault):
        return error
    if isinstance(error, Torn):
        return damaged(path)
    if isinstance(error, OSError):
        many = error.errno in (errno.EMFILE, errno.ENFILE)
        return Unwritable(
            f"The session store {path} cannot be used: {error.strerror or error}.",
            MORE_FILES if many else "Make its directory writable, or choose another one.",
        )
    if not isinstance(error, sqlite3.Error):
        return StoreFailed(f"The session store cannot keep this: {error}.")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path)
    where = os.path.dirname(path) or "."
    texts = {
        sqlite3.SQLITE_FULL: (
            f"The disk with {where} is full: nothing was saved.",
            "Free some space and try again; what was saved before is safe.",
        ),
        sqlite3.SQLITE_IOERR: (
            f"The disk with {where} failed to read or write: nothing was saved.",
            "Check its free space, quota and health, then try again.",
        ),
        sqlite3.SQLITE_BUSY: (
            f"Another process kept {path} locked for {BUSY_MS // 1000} seconds.",
            "Try again, or end the process that holds it.",
        ),
        sqlite3.SQLITE_READONLY: (
            f"{path} is read-only.",
            "Make it and its directory writable, or choose another directory.",
        ),
        sqlite3.SQLITE_CANTOPEN: (
            f"{path} cannot be opened or created.",
            "Make its directory writable, or choose another one.",
        ),
    }
    if code in texts:
        kind = Unwritable if code in _UNWRITABLE else StoreFailed
        return kind(*texts[code], path=path)
    return StoreFailed(f"The session store failed: {error}.", f"Check the file {path}.", path=path)


_UNWRITABLE = (8, 14)  # SQLITE_READONLY, SQLITE_CANTOPEN


def damaged(path: str) -> Damaged:
    return Damaged(
        f"The session store {path} is damaged.",
        "Start the daemon (dragoman daemon --background): it moves the file aside and begins a "
        "fresh one.",
        path=path,
    )


def rescue(path: str) -> str:
    """What becomes of a damaged file that was only looked at, and what to do."""
    return (
        "The daemon moves it aside when it starts after it met the damage, and begins a new one."
        f" Save what it holds first: sqlite3 {path} .recover"
    )
