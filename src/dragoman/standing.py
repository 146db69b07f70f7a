"""What stands in the way of a file or folder: a link that leads nowhere, or something else."""

import errno
import os
import stat
import time


def in_place_of_file(path: str) -> tuple[str, str] | None:
    """What is wrong where a file is or should be made, and what to do; None: nothing is."""
    return _odd(path, folder=False)


def in_place_of_folder(path: str) -> tuple[str, str] | None:
    """The same of a folder; what is missing above it can be made, what is no folder cannot."""
    return _odd(path, folder=True)


def led_to(path: str) -> str:
    """The file that a link leads to: SQLite keeps its log beside that one. Others as they are."""
    return os.path.realpath(path) if os.path.islink(path) and os.path.exists(path) else path


def move_aside(path: str) -> str:
    """Rename a damaged database with its log, so that it can still be examined."""
    stem = f"{path}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}"
    target, number = stem, 1
    while os.path.lexists(target):
        number += 1
        target = f"{stem}-{number}"
    os.rename(path, target)
    for suffix in ("-wal", "-shm"):
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, target + suffix)
    return target


def identity(path: str) -> tuple[int, int] | None:
    """Which file this is, whatever it is called; None: there is none.

    Who keeps a file open and finds another one in its place writes what nobody finds again.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _odd(path: str, *, folder: bool) -> tuple[str, str] | None:
    at = os.path.abspath(path)
    while True:
        try:
            return _looked(at, folder=folder)
        except OSError as problem:
            if problem.errno not in _ABOVE or at == os.path.dirname(at):
                return None  # it is closed to us, which others tell
        at, folder = os.path.dirname(at), True


_ABOVE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # the reason is in what it lies in


def _looked(path: str, *, folder: bool) -> tuple[str, str] | None:
    """Raises OSError when nothing stands there."""
    if stat.S_ISLNK(os.lstat(path).st_mode) and (wrong := _link(path)):
        return wrong
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode):
        return None
    if folder:
        return f"{path} is no directory but {_kind(mode)}", "Move it away"
    return f"{path} is {_kind(mode)}", "Move it away"


def _link(path: str) -> tuple[str, str] | None:
    """Why a link leads nowhere."""
    try:
        os.stat(path)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            return f"{path} is a link that leads to itself", "Remove it"
        if problem.errno in _ABOVE:
            to = os.readlink(path)
            what = f"{path} is a link to {to}, which is not there"
            return what, f"Put {to} back, or remove the link"
        raise
    return None


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a pipe, no regular file"
    return "a file" if stat.S_ISREG(mode) else "no regular file"
