"""ZeroClaw's own terminal: which release it is, its signed name, the sessions it leaves unused.

It does not say its release, its program does: it leaves a daemon of any other version than its own.
On a local socket the kernel tells the process, and a program that is called `zerocode` has its
version in it, in the paths of its sources or behind the words of its greeting. It is read, never
run, once for each file. A name that was signed is given again to its owner only.
"""

import mmap
import os
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from dragoman.engine.door import Door
from dragoman.engine.faults import Fault, UnknownSession
from dragoman.engine.info import SessionInfo

from .desk import log

NAME = "zerocode"
_LARGEST = 256 * 1024 * 1024  # bytes that are looked through
_SOURCES = re.compile(rb"zerocode-(0\.8\.\d{1,3}(?:-[a-z0-9.]{1,16})?)/src/")
_ALONE = re.compile(rb"(?<![-.\d])0\.8\.\d(?!\d)")  # of a build that was not packed by its registry
FILE = "terminals.key"
_SIZE = 32


def release_of(pid: int | None) -> str:
    """The version of the terminal that this process is; empty: it is none, or cannot be read."""
    place = f"/proc/{pid}/exe"
    try:
        if pid is None or os.path.basename(os.readlink(place)).removesuffix(" (deleted)") != NAME:
            return ""
        found = os.stat(place)
        return _read(place, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))
    except (OSError, ValueError):
        return ""


@lru_cache(8)
def _read(place: str, stamp: tuple[int, ...]) -> str:
    with open(place, "rb") as file:
        size = min(os.fstat(file.fileno()).st_size, _LARGEST)
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
            if named := _SOURCES.search(data):
                return named[1].decode()
            alone = Counter(_ALONE.findall(data)).most_common(1)
    return alone[0][0].decode() if alone else ""


class Signer:
    """Signs with a key that is kept in a folder, so that names outlive the process.

    Without a folder, or where it cannot be written, nothing is signed and every name is taken.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, FILE) if folder else ""
        self._key: bytes | None = None

    def sign(self, name: str) -> str:
        """The name's signature in hex digits; empty when nothing is signed."""
        if self._key is None:
            self._key = self._load() if self._path else b""
        if not self._key:
            return ""
        import hmac

        return hmac.new(self._key, name.encode("utf-8", "replace"), "sha256").hexdigest()

    def fits(self, name: str, signature: str) -> bool:
        """Whether this is the name's signature."""
        wanted = self.sign(name)
        if not wanted:
            return True
        import hmac

        given = signature.strip().lower().encode("utf-8", "replace")
        return hmac.compare_digest(wanted.encode(), given)

    def _load(self) -> bytes:
        try:
            return self._read() or self._make()
        except OSError as problem:
            log.warning("names of terminals are not signed", problem=str(problem))
            return b""

    def _read(self) -> bytes:
        """The key that is kept; empty when there is none, or what is there is none."""
        try:
            with open(
                os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb"
            ) as file:
                key = bytes.fromhex(file.read(1024).decode("ascii"))
        except (FileNotFoundError, ValueError):
            return b""
        return key if len(key) == _SIZE else b""

    def _make(self) -> bytes:
        """A new key, whole in its place at once, or the one of another process that was first."""
        fresh = f"{self._path}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(fresh, flags, 0o600), "wb") as file:
            file.write(os.urandom(_SIZE).hex().encode())
        try:
            os.link(fresh, self._path)
        except FileExistsError:
            key = self._read()
            if not key:  # damaged: names that it signed have to be given anew
                os.replace(fresh, self._path)
            return key or self._read()
        finally:
            if os.path.exists(fresh):
                os.unlink(fresh)
        return self._read()


def is_unused(door: Door, info: SessionInfo) -> bool:
    """Whether nothing was ever said in it, it has no name, and nobody is there."""
    live = door.live(info.id)
    if info.turns or info.messages or info.title or info.parent or door.present(info.id):
        return False
    return live is None or not (live.busy or live.waiting)


async def drop_unused(door: Door, sessions: Iterable[str]) -> None:
    """Forget those of these sessions that were never used.

    The terminal brings one back under its id when it connects again.
    """
    for session_id in sessions:
        try:
            info = await door.info(session_id)
            if info.origin == "zeroclaw" and is_unused(door, info):
                await door.delete(session_id)
        except UnknownSession:
            continue
        except Fault as problem:  # the store is going away; lists leave it out all the same
            door.trouble("an unused session stays", problem, session=session_id)
