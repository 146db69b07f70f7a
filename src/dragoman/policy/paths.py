"""Which paths an agent may touch: the working directory, further roots, and what is forbidden.

A path is made canonical first (`~`, `..`, symbolic links), then judged, then opened without
following any link (`opening.py`), so that a link swapped in between is refused, not followed.

Hard links: files are replaced, never written in place, so the other names of a file keep their
content. Reading a file with several names is refused when one of its names lies in a protected or
secret directory (the inode is looked up there), or when it belongs to a stranger.
"""

import copy
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from dragoman.engine.faults import BadInput, Refused
from dragoman.engine.ports import Reach

from .guarded import locked
from .interpreters import environment, installation, installations
from .opening import open_exact, walk_directory
from .profiles import STRICT
from .repository import history

FORBIDDEN = STRICT.forbidden
_NEVER = ("/proc", "/sys", "/dev")  # whatever the lists say
# What commands may look at all the same, by these very names: about the machine and themselves.
_OWN = frozenset(
    {f"/proc/{name}" for name in "cpuinfo meminfo version loadavg uptime stat mounts filesystems "
     "swaps vmstat diskstats partitions self thread-self".split()}
    | {f"/proc/self/{name}" for name in "status stat statm limits cgroup maps mountinfo mounts "
       "comm cmdline io smaps".split()}
    | {"/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype", "/proc/sys/vm/overcommit_memory"}
    | {f"/dev/{name}" for name in "tty urandom random zero full".split()}
)  # fmt: skip
_MACHINE = ("/sys/devices/system/cpu", "/sys/fs/cgroup")
# Where programs lie; a path to one of them may be run whatever is forbidden.
_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/snap")
_LEARNED = 64
_LOCKED = 256  # of git's own; what is more is looked at before and after a command
_SHARED_MEMORY = "/dev/shm"  # an ordinary file system under /dev; judged by the lists
_ENCODED = ("%2e%2e", "..%2f", "..%5c", ".%2e", "%2e.")
_LONGEST = 4096
_LOOKED_AT = 4096  # files compared per secret place when a file has several hard links
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def within(path: str, root: str) -> bool:
    """Whether a canonical path is `root` or lies under it."""
    return path == root or root == "/" or path.startswith(root + "/")


def _never(name: str) -> str:
    """Why no list can let this through; empty when the lists decide."""
    if name == os.devnull or within(name, _SHARED_MEMORY):
        return ""
    place = next((place for place in _NEVER if within(name, place)), "")
    if name == place:
        return f"No tool may touch {name}."
    return f"{name} lies in {place}, which no tool may touch." if place else ""


def _only_git(command: str) -> bool:
    from .commands import assess

    found = assess(command)
    known = found.kind != "unknown" and not found.writes
    return known and all(part.plain and part.name in ("git", "cd") for part in found.parts)


def _own(name: str) -> bool:
    return name in _OWN or any(within(name, place) for place in _MACHINE)


class Boundary:
    """The paths that tools of one session may reach."""

    __slots__ = ("_configures", "_legible", "_programs", "_sealed", "cwd", "forbidden", "guards",
                 "home", "learned", "protected", "readable", "reads_outside", "roots", "sealed",
                 "workspace_only", "writable")  # fmt: skip

    def __init__(
        self,
        cwd: str,
        roots: Iterable[str] = (),
        forbidden: Iterable[str] = FORBIDDEN,
        workspace_only: bool = True,
        protected: Iterable[str] = (),
        readable: Iterable[str] = (),
        home: str | None = None,
        *,
        sealed: Iterable[str] = (),
        legible: Iterable[str] = (),
        writable: Iterable[str] = (),
        reads_outside: bool = False,
        guards: bool = True,
    ) -> None:
        """`protected`: our own configuration and data; `readable`: roots for reading only.

        `sealed` is never written. `legible` and `writable` are what commands, not file tools, may
        read and run, or write, outside. With `reads_outside` everything not forbidden is readable.
        With `guards` commands do not write what makes other programs run something.
        """
        self.home = home or os.path.expanduser("~")
        self.cwd = os.path.realpath(cwd)
        self.roots = (self.cwd, *(self._canonical(root) for root in roots))
        self.forbidden = tuple(self._canonical(path) for path in forbidden)
        self.protected = tuple(self._canonical(path) for path in protected)
        self.readable = tuple(self._canonical(path) for path in readable)
        self.workspace_only = workspace_only
        self._sealed = tuple(self._canonical(path) for path in sealed)
        self._programs: tuple[str, ...] = ()
        self.sealed = self._sealed
        self._legible = tuple(self._canonical(path) for path in legible)
        self.writable = tuple(self._canonical(path) for path in writable)
        self.reads_outside = reads_outside
        self.guards = guards
        self._configures = False
        self.learned: dict[str, None] = {}  # virtual environments that commands have named

    def wider(self, reach: Iterable[Reach]) -> "Boundary":
        """The same boundary with what was agreed to for one call."""
        other = copy.copy(self)
        agreed = tuple(reach)
        other.roots = (*self.roots, *(one.path for one in agreed if one.write))
        other.readable = (*self.readable, *(one.path for one in agreed if not one.write))
        return other

    def sealing(self, programs: tuple[str, ...]) -> "Boundary":
        """The same boundary with what is sealed as long as it is there: programs among caches."""
        if programs == self._programs:
            return self
        other = copy.copy(self)
        other._programs = programs
        other.sealed = (*self._sealed, *(self._canonical(path) for path in programs))
        return other

    @property
    def legible(self) -> tuple[str, ...]:
        """What commands may read and run: now, since environments and worktrees come and go."""
        places = list(installations(self.roots))
        if self._legible:  # else it reads narrowly
            places += (path for root in self.roots for path in history(root, self.home))
        found = (one for one in places if not self._forbids(one, False))
        return (*self._legible, *self.learned, *found)

    @property
    def locked(self) -> tuple[str, ...]:
        """What of the workspace is read-only for commands: what is sealed, and git's own.

        All that is sealed comes first; a command can make repositories without end.
        """
        found = locked(self.roots) if self.guards else ()
        if self._configures:
            found = tuple(path for path in found if "config" not in os.path.basename(path))
        sealed = (path for path in self.sealed if any(path.startswith(f"{r}/") for r in self.roots))
        return (*filter(os.path.exists, sealed), *found[:_LOCKED])

    def for_command(self, command: str) -> "Boundary":
        """The same for one command: what is nothing but git writes its own configuration."""
        if not (self.guards and "git" in command and _only_git(command)):
            return self
        other = copy.copy(self)
        other._configures = True
        return other

    def runs(self, path: str) -> bool:
        """Whether a program that is called by this path may be run without a question."""
        absolute = self.absolute(path)
        real = os.path.realpath(absolute)
        own = environment(absolute)
        found = [os.path.realpath(own)] if own else []
        behind = installation(own) if own else ""
        found += [behind] if behind else []
        known = any(within(real, place) for place in (*_PROGRAMS, *self._legible, *found))
        if not known or any(self._forbids(place, False) for place in found if place != behind):
            return False
        lexical = os.path.normpath(absolute)
        places = (*self.roots, *_PROGRAMS, *self.legible)
        if not own and not any(within(lexical, place) for place in places):
            return False
        for place in found:  # what an environment is made of can be read from now on
            if len(self.learned) < _LEARNED:
                self.learned[place] = None
        return True

    def _canonical(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        return os.path.realpath(os.path.join(self.cwd, path))

    # --- judging -----------------------------------------------------------------------------

    def objection(self, real: str, write: bool = False) -> str:
        """Why a canonical path may not be touched; empty when it may."""
        return self._forbids(real, write) or self._outside(real, write)

    def _forbids(self, real: str, write: bool) -> str:
        if real == os.devnull:
            return ""
        if reason := _never(real):
            return reason
        homes = self._homes(real, write)
        for place in self.protected:
            # A root inside the data directory is fine, the data directory as a root is not.
            if within(real, place) and not any(r != place and within(r, place) for r in homes):
                return f"{real} belongs to dragoman itself."
        for place in self.forbidden:
            if within(real, place) and not any(within(root, place) for root in homes):
                where = "" if real == place else f" lies in {place}, which"
                return f"{real}{where} is forbidden."
        for place in self.sealed if write else ():
            if within(real, place) and not any(within(root, place) for root in homes):
                return f"{real} lies in {place}, which is never written."
        return ""

    def _outside(self, real: str, write: bool, command: bool = False) -> str:
        if real == os.devnull or self._homes(real, write):
            return ""
        if command and any(within(real, place) for place in self.writable):
            return ""
        if not write:
            if command and any(within(real, place) for place in self.legible):
                return ""
            if self.reads_outside:
                return ""
        if self.workspace_only or any(within(real, root) for root in self.readable):
            return f"{real} is outside the working directory {self.cwd}."
        return ""

    def _homes(self, real: str, write: bool) -> list[str]:
        """The roots that a path lies in."""
        roots = self.roots if write else (*self.roots, *self.readable)
        return [root for root in roots if within(real, root)]

    def permits(self, real: str, write: bool = False) -> bool:
        """Whether a canonical path may be touched."""
        return not self.objection(real, write)

    def consider(
        self, path: str, write: bool = False, *, command: bool = False
    ) -> tuple[str, str, bool]:
        """The canonical path, what speaks against it, and whether that is final.

        It is not final when the path is merely outside the working directory: a human may agree.
        With `command` it is a command that names the path, not a file tool.
        """
        absolute = self.absolute(path)
        if command and not write and self._legible and _own(os.path.normpath(absolute)):
            return absolute, "", False
        # By name, too: /proc/self/root/... would resolve to something that looks innocent.
        if reason := _never(absolute) or _never(os.path.normpath(absolute)):
            return absolute, reason, True
        try:
            real = os.path.realpath(absolute)
        except OSError as error:  # a link that may not be read, or that went away just now
            return absolute, f"It cannot be resolved: {error.strerror}.", True
        reason = self._forbids(real, write)
        if reason:
            return real, reason, True
        return real, self._outside(real, write, command), False

    def resolve(self, path: str, write: bool = False) -> str:
        """The canonical form of a path that may be read (or written). Raises Refused, BadInput."""
        real, reason, _ = self.consider(path, write)
        if reason:
            raise _refused(path, reason)
        try:
            found = os.lstat(real)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return real
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _refused(path, "It is a loop of symbolic links.") from error
            raise BadInput(f"{path}: {error.strerror}.", path=path) from error
        if real != os.devnull:
            _check_kind(real, found.st_mode)
        return real

    def absolute(self, path: str) -> str:
        """The path with `~` and the working directory put in front, otherwise as it was said."""
        if not path:
            raise BadInput("path is required")
        if "\0" in path:
            raise _refused(path.replace("\0", "\\0"), "A path cannot contain a NUL character.")
        lowered = path.lower()
        if any(mark in lowered for mark in _ENCODED):
            raise _refused(path, "Percent-encoded dots are not accepted in a path.")
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        elif path.startswith("~"):
            raise _refused(path, "The home of another user is out of reach.")
        try:
            size = len(os.fsencode(path))
        except UnicodeError as error:
            raise _refused(ascii(path), "The path cannot be encoded.") from error
        if size > _LONGEST:
            raise BadInput(f"The path is longer than {_LONGEST} bytes.")
        return os.path.join(self.cwd, path)

    # --- opening -----------------------------------------------------------------------------

    def open_inside(self, path: str, flags: int = os.O_RDONLY) -> int:
        """Open a path that `resolve` gave; raises Refused when it is no longer what was judged.

        Only regular files and directories are opened. Other failures are OSErrors.
        """
        objection = self.objection(path, bool(flags & _WRITING))
        if objection or os.path.normpath(path) != path:
            raise _refused(path, objection or "The path is not canonical.")
        with suppress(OSError):  # told by opening it
            self._check_name(path)
        try:
            fd = open_exact(path, flags)
        except OSError as error:
            raise self._seen_as(path, error) from error
        try:
            found = os.fstat(fd)
            _check_kind(path, found.st_mode)
            self._check_links(path, found)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def open_parent(self, path: str, create: int | None = 0o755) -> tuple[int, str]:
        """The directory of a path that `resolve(write=True)` gave, as `dir_fd`, and the last name.

        Missing directories are made with the mode `create`.
        """
        objection = self.objection(path, write=True)
        directory, name = os.path.split(path)
        if objection or not name or os.path.normpath(path) != path:
            raise _refused(path, objection or "The path is not canonical.")
        try:
            return walk_directory(directory, create), name
        except OSError as error:
            raise self._seen_as(path, error) from error

    @staticmethod
    def _seen_as(path: str, error: OSError) -> OSError | Refused:
        if error.errno == errno.ELOOP:
            return _refused(path, "A symbolic link took its place after the path was checked.")
        return error

    def withheld(self, top: str) -> tuple[list[str], list[tuple[int, int]]]:
        """What a search below `top` must leave out: places relative to it, and hard links.

        Links are (device, inode) of files with several names, one of them in a secret place.
        """
        below = top.rstrip("/") + "/"
        places = [
            os.path.relpath(place, top)
            for place in (*self.protected, *self.forbidden)
            if place.startswith(below) and not self.permits(place)
        ]
        links = [
            (found.st_dev, found.st_ino)
            for place in self._secret_places(top)
            for found in islice(_walk(place), _LOOKED_AT)
            if found.st_nlink > 1
        ]
        return places, links

    def _secret_places(self, path: str) -> list[str]:
        """Where the files lie that a hard link must not lead to, seen from outside of them."""
        secret = [p for p in self.forbidden if p != self.home and within(p, self.home)]
        return [place for place in (*self.protected, *secret) if not within(path, place)]

    def _check_name(self, path: str) -> None:
        """Refuse a hard link before it is opened.

        Closing another name of our own store would take the locks away that this process has on it.
        """
        self._check_links(path, os.lstat(path))

    def _check_links(self, path: str, found: os.stat_result) -> None:
        """Refuse a hard link to what the boundary keeps away, as far as that can be seen."""
        if found.st_nlink < 2 or not stat.S_ISREG(found.st_mode):
            return
        try:
            owner = os.stat(self.cwd).st_uid
        except OSError:
            owner = os.geteuid()
        if found.st_uid not in (os.geteuid(), owner):
            raise _refused(path, "It is a hard link to a file of another user.")
        for place in self._secret_places(path):
            for other in islice(_walk(place), _LOOKED_AT):
                if (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino):
                    raise _refused(path, f"It is a hard link to a file in {place}.")


def _walk(top: str) -> Iterator[os.stat_result]:
    waiting = [top]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue  # what we cannot list, nobody linked with our rights
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(found.st_mode):
                waiting.append(entry.path)
            else:
                yield found


def _check_kind(path: str, mode: int) -> None:
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    if stat.S_ISLNK(mode):
        raise _refused(path, "It is a loop of symbolic links.")
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    raise _refused(path, f"It is {kind}, not a file or a directory.")


def _refused(path: str, reason: str) -> Refused:
    return Refused(f"Path refused: {path}.", reason, path=path)
