"""Every endpoint of the daemon: its lock, its listener, on sockets and on named pipes."""

import errno
import os
import sys
from collections.abc import Callable
from typing import Protocol

from dragoman.daemon.guests import Guests
from dragoman.engine.faults import MORE_FILES, BadInput, Fault, InUse, Refused
from dragoman.holding import Holder
from dragoman.host import lock
from dragoman.host.compose import Composed
from dragoman.host.desks import Desks
from dragoman.observe.aloud import aloud
from dragoman.observe.log import get_log
from dragoman.settings import places
from dragoman.wire.link import Hearer, Link, Opener, Peer

log = get_log("daemon")
audit = get_log("audit")


class Doorkeeper(Holder):
    """Admits processes of our own user only, and notes whom it admitted or refused.

    `refuses` says of a process whether one of our tools started it: those are refused whoever runs
    them.
    """

    note: Callable[[str, Peer], None]
    refuses: Callable[[int | None], bool] = lambda pid: False

    def __call__(self, peer: Peer) -> bool:
        admitted = peer.uid == os.geteuid() and not self.refuses(peer.pid)
        self.note("admitted" if admitted else "refused", peer)
        return admitted


class ListeningEnd(Protocol):
    """What a transport gives back for an address it listens at."""

    path: str

    def is_lost(self) -> bool: ...

    async def close(self) -> None: ...


class Listening:
    """All that the daemon listens at; opened and closed together."""

    def __init__(self, composed: Composed, desks: Desks, guests: Guests, native: bool) -> None:
        self._composed = composed
        self._desks = desks
        self._guests = guests
        self._native = native
        self._locks: list[lock.Lock] = []
        self._taken: set[tuple[str, str]] = set()
        self._listeners: list[tuple[str, ListeningEnd]] = []  # with the dialect
        self._missed: set[str] = set()  # paths where nothing was found at the last look
        self._told: set[str] = set()  # of what trouble we spoke already

    def addresses(self) -> list[tuple[str, str]]:
        """Every (dialect, address), our own before those where other families' clients look."""
        chosen = places.endpoints(os.environ, self._composed.places)
        listen = self._composed.settings.listen
        given = listen.more
        found = []
        for name, path in chosen.items():
            own = getattr(listen, name, "") or given.get(name, "")
            where = self._composed.places
            found.append((name, places.listened(own, where, os.environ) if own else path))
        if self._native and sys.platform != "win32":
            found += [pair for pair in places.native(os.environ) if pair not in found]
        return [pair for pair in found if pair not in self._taken]

    def _spare(self) -> set[tuple[str, str]]:
        """Second places of one family: where another user has one, it can be done without."""
        known: set[str] = set()
        found = set()
        for name, path in places.native(os.environ) if self._native else ():
            if name in known:
                found.add((name, path))
            known.add(name)
        return found

    def main(self) -> dict[str, str]:
        """The first address of each dialect."""
        found: dict[str, str] = {}
        for name, path in self.addresses():
            found.setdefault(name, path)
        return found

    def hold(self) -> None:
        """Take the right to every address. Raises InUse and says who has one."""
        if sys.platform != "win32":  # a pipe's first instance is its own lock
            native = places.native(os.environ) if self._native else ()
            spare = self._spare()
            for pair in self.addresses():
                try:
                    self._locks.append(lock.hold(pair[1]))
                except Fault as fault:
                    # A shared folder may be another user's: our own sockets do without it.
                    if pair in spare or (pair in native and isinstance(fault, Refused)):
                        self._taken.add(pair)
                        said = str(fault)
                        if pair in native:  # where it lies is not for us to choose
                            said = f"{fault.message} Its clients find us when that is mended."
                        aloud(f"dragoman: left out: {said}")
                        log.warning("cannot listen", path=pair[1], problem=said)
                    elif pair in native and isinstance(fault, InUse):
                        hint = "Stop that program, or leave --native (listen.native) out."
                        raise InUse(fault.message, hint, **fault.data) from None
                    else:
                        raise

    async def open(self) -> None:
        """Listen everywhere; all or nothing."""
        try:
            for name, path in self.addresses():
                self._listeners.append((name, await self._listen(name, path)))
                log.info("listening", dialect=name, path=path)
        except BaseException:
            await self.close()
            raise

    async def _listen(self, name: str, path: str) -> ListeningEnd:
        opener = self._guests.counting(self._opener(name), name)
        bound = self._composed.settings.limits.max_outbound_bytes
        if sys.platform == "win32":
            from dragoman.transports import pipe

            return await pipe.listen(path, opener, bound=bound)
        from dragoman.transports import unix

        keeper = Doorkeeper(_audit, self._composed.descendants.refuses)
        try:
            return await unix.listen(path, opener, admit=keeper, bound=bound)
        except OSError as problem:
            hint = "The system must permit Unix sockets there; DRAGOMAN_DATA_DIR is another folder."
            if problem.errno in (errno.EMFILE, errno.ENFILE):
                hint = MORE_FILES
            raise BadInput(
                f"Nobody can listen at {path}: {problem.strerror or problem}.", hint
            ) from None

    def _opener(self, name: str) -> Opener:
        if name != "any":
            return self._desks.opener(name)
        limit = self._composed.settings.limits.max_line_bytes

        def open(link: Link) -> Hearer:
            from dragoman.dialects.sniff import AnyHearer

            return AnyHearer(link, self._desks.opener, limit, _sniffed)

        return open

    def lost(self) -> list[str]:
        """Locks of our data folder that nobody finds: the next daemon would begin beside us.

        Elsewhere somebody may tidy up (old files in /tmp, all of a user who logged out): we go on.
        """
        own = os.path.realpath(self._composed.places.data_dir)
        found = [held.socket_path for held in self._locks if not held.is_there()]
        ours = [path for path in found if os.path.dirname(os.path.realpath(path)) == own]
        for path in (one for one in found if one not in ours):
            self._tell("the lock was removed or replaced; another daemon may listen here", path)
        return [lock.lock_path(path) for path in ours]

    async def mend(self) -> None:
        """Listen anew where a socket is gone at two looks; cleaners of folders remove them."""
        missed = {one.path for _, one in self._listeners if one.is_lost()}
        again, self._missed = missed & self._missed, missed
        held = {one.socket_path for one in self._locks if one.is_there()}
        for place, (name, old) in enumerate(self._listeners):
            if old.path not in again or old.path not in held:
                continue
            try:
                fresh = await self._listen(name, old.path)
            except Fault as fault:
                self._tell("the socket was removed and cannot be made anew", old.path, str(fault))
                continue
            self._listeners[place] = name, fresh
            await old.close()
            log.warning("the socket was removed; listening anew", dialect=name, path=old.path)

    def _tell(self, what: str, path: str, problem: str = "") -> None:
        """Warn once."""
        if (what + path) not in self._told:
            self._told.add(what + path)
            log.warning(what, path=path, problem=problem)

    async def close(self) -> None:
        """Stop accepting; connections that exist go on."""
        for _, listener in self._listeners:
            await listener.close()
        self._listeners.clear()

    def release(self) -> None:
        """Give the rights up: from now on another daemon may begin."""
        for held in self._locks:
            held.release()
        self._locks.clear()


def _audit(what: str, peer: Peer) -> None:
    if what == "refused":
        audit.warning(what, peer=peer.label, pid=peer.pid, uid=peer.uid)
    elif audit.wants("info"):
        audit.info(what, peer=peer.label, pid=peer.pid, uid=peer.uid)


def _sniffed(name: str, link: Link) -> None:
    log.debug("recognised", dialect=name, peer=link.peer.label)
