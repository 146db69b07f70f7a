"""One daemon per socket: a lock for life beside it, and what to do about a path that exists."""

import errno
import os
import socket
import stat
from contextlib import suppress

from dragoman.engine.faults import BadInput, InUse, Refused
from dragoman.standing import in_place_of_folder
from dragoman.transports.directory import check, prepare_for

_PID_BYTES = 20
_ELSEWHERE = "choose a directory of your own with DRAGOMAN_DATA_DIR."


class Lock:
    """The right to listen at one socket path, held until released or until the process ends.

    Whoever gets a lock looks whether its file is still there, so it can be removed while held.
    """

    def __init__(self, socket_path: str, fd: int) -> None:
        self.socket_path = socket_path
        self._fd = fd

    def is_there(self) -> bool:
        """Whether others would still find it; what cannot be looked at is taken to be there."""
        try:
            return _is_there(lock_path(self.socket_path), self._fd)
        except OSError:
            return True

    def release(self) -> None:
        """Give the right up."""
        if self._fd >= 0:
            path = lock_path(self.socket_path)
            with suppress(OSError):  # a folder that is not ours to look at or change any more
                if _is_there(path, self._fd):
                    os.unlink(path)
            os.close(self._fd)
            self._fd = -1


def hold(socket_path: str) -> Lock:
    """Take the lock beside a socket path and clear a stale socket away.

    Raises InUse when a live process owns the path, Refused when lock or directory are not safe,
    BadInput when something that is no socket lies there.
    """
    try:
        prepare_for(socket_path)
    except OSError as trouble:
        if wrong := in_place_of_folder(os.path.dirname(socket_path)):
            raise Refused(f"{wrong[0]}.", f"{wrong[1]}, or {_ELSEWHERE}") from trouble
        raise _no_room(f"The directory of {socket_path} cannot be used", trouble) from trouble
    path = lock_path(socket_path)
    while True:
        fd = _open(path)
        try:
            _lock(fd, socket_path)
            if not _is_there(path, fd):
                os.close(fd)
                continue  # it was removed between opening and locking: what we hold is worthless
        except BaseException:
            os.close(fd)
            raise
        try:
            clear(socket_path)
            _sign(fd, path)
        except BaseException:
            Lock(socket_path, fd).release()  # nobody but us has it: nothing of it stays
            raise
        return Lock(socket_path, fd)


def lock_path(socket_path: str) -> str:
    """Where the lock of a socket lies."""
    return socket_path + ".lock"


def owner(socket_path: str) -> int | None:
    """The pid of the live process that holds the lock of a socket path."""
    import fcntl

    try:
        fd = os.open(lock_path(socket_path), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_pid(fd)
    finally:
        os.close(fd)
    return None


def is_heard(socket_path: str) -> bool:
    """Whether somebody listens there, whoever it is."""
    return os.path.exists(socket_path) and _probe(socket_path)[0]


def clear(socket_path: str) -> bool:
    """Remove a socket that nobody listens at; True when there was one.

    Raises InUse when somebody does, BadInput when it is no socket.
    """
    try:
        found = os.lstat(socket_path)
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(found.st_mode):
        raise BadInput(
            f"{socket_path} exists and is not a socket.", "Move it away or choose another path."
        )
    alive, pid = _probe(socket_path)
    if alive:
        raise _in_use(socket_path, pid)
    now = os.lstat(socket_path)
    if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
        raise _in_use(socket_path, None)
    os.unlink(socket_path)
    return True


def _open(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as trouble:
        if trouble.errno == errno.ELOOP:
            raise Refused(f"The lock file {path} is a symbolic link.", "Remove it.") from trouble
        raise _no_room(f"The lock file {path} cannot be opened", trouble) from trouble
    if wrong := _unfit(os.fstat(fd)):
        os.close(fd)
        raise Refused(f"The lock file {path} {wrong}.", "Remove it.")
    return fd


def _unfit(found: os.stat_result) -> str:
    """What is wrong with a lock file that others could have made or may hold; empty: nothing."""
    if stat.S_ISLNK(found.st_mode):
        return "is a symbolic link"
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if found.st_uid != os.geteuid():
        return f"belongs to another user (uid {found.st_uid})"
    if found.st_mode & 0o077:
        return f"is open to others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def refusal(socket_path: str) -> Refused | None:
    """Why `hold` would refuse a place that others can change; nothing is made or changed."""
    folder = os.path.dirname(os.path.abspath(socket_path))
    try:
        if os.path.isdir(folder):
            check(folder)
    except OSError as trouble:
        return _no_room(f"The directory of {socket_path} cannot be used", trouble)
    path = lock_path(socket_path)
    wrong = _unfit(os.lstat(path)) if os.path.lexists(path) else ""
    return Refused(f"The lock file {path} {wrong}.", "Remove it.") if wrong else None


def _sign(fd: int, path: str) -> None:
    """Write our pid into the lock."""
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError as trouble:
        raise _no_room(f"The lock file {path} cannot be written", trouble) from trouble


def _no_room(what: str, trouble: OSError) -> Refused:
    """A place that cannot be used, with the way out that fits the reason."""
    if trouble.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refused(f"{what}: the disk is full.", f"Free some space, or {_ELSEWHERE}")
    if trouble.errno == errno.EROFS:
        return Refused(
            f"{what}: the file system is read-only.",
            f"A daemon needs a place for its sockets: {_ELSEWHERE}",
        )
    mend = "Move it away" if trouble.errno == errno.EISDIR else "Repair its permissions"
    return Refused(f"{what}: {trouble.strerror}.", f"{mend}, or {_ELSEWHERE}")


def _lock(fd: int, socket_path: str) -> None:
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(socket_path, _read_pid(fd)) from None


def _is_there(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(fd))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _read_pid(fd: int) -> int | None:
    text = os.pread(fd, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else None


def _probe(socket_path: str) -> tuple[bool, int | None]:
    """Whether somebody listens there, and its pid."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            sock.connect(socket_path)
            from dragoman.transports.unix import identified

            return True, identified(sock).pid
    except ConnectionRefusedError:
        return False, None
    except BlockingIOError:
        return True, None  # its queue of connections is full: slow, but alive
    except OSError as trouble:
        raise Refused(
            f"Cannot find out who listens at {socket_path}: {trouble.strerror}.",
            "Remove the socket if its owner is gone.",
        ) from trouble


def _in_use(socket_path: str, pid: int | None) -> InUse:
    who = f"process {pid}" if pid else "another process"
    return InUse(
        f"{socket_path} is in use by {who}.",
        "Stop it first, or choose another --config-dir.",
        owner=pid,
    )
