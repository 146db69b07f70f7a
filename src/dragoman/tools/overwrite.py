"""New content for a file that is there, which stays what it was to everybody else.

As a rule a new file takes its place, with its mode, owner and attributes: whoever reads sees the
old one or the new one, also after a crash. That would be another file to those who know it by
another name (a hard link), and cannot be done where its folder may not be written, or its owner or
attributes cannot be given. Then the file itself is written: room for it is made first, so that a
full disk changes nothing; a crash in that moment can leave a mixture, and the checkpoint has what
was there.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from itertools import islice

from .undoing import leads_to_guarded

_PIECE = 1 << 20
_LOOKED_AT = 4096  # files of a folder that is read-only for commands
# The folder takes no new file, the file is a mount of its own, or what it has cannot be given.
_NOT_REPLACEABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.ENOTSUP)


def replaceable(before: os.stat_result, roots: Sequence[str], locked: Sequence[str] = ()) -> bool:
    """Whether another file takes the place of this one: nobody has it by another name.

    Or by one that makes other programs run something (git's configuration, say), or that is
    read-only for commands: nobody agreed to writing that, so such a link does not lead there.
    """
    if before.st_nlink < 2:
        return True
    return leads_to_guarded(before, roots) or any(_is_in(before, place) for place in locked)


def _is_in(file: os.stat_result, place: str) -> bool:
    """Whether a file is another, or one of those in a folder."""
    found = (os.path.join(top, name) for top, _, names in os.walk(place) for name in names)
    return any(_same(file, path) for path in (place, *islice(found, _LOOKED_AT)))


def _same(file: os.stat_result, path: str) -> bool:
    try:
        return os.path.samestat(file, os.lstat(path))
    except OSError:
        return False


def hinders(error: OSError) -> bool:
    """Whether a file could not be replaced for a reason that does not hinder writing it."""
    return error.errno in _NOT_REPLACEABLE


def take_after(fd: int, before: os.stat_result, directory: int, name: str) -> None:
    """Give a new file the owner, the mode and the attributes of one. Raises OSError."""
    made = os.fstat(fd)
    if (before.st_uid, before.st_gid) != (made.st_uid, made.st_gid):
        os.fchown(fd, before.st_uid, before.st_gid)
    os.fchmod(fd, stat.S_IMODE(before.st_mode))
    if sys.platform == "linux" and hasattr(os, "listxattr"):  # not with every C library
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        old = os.open(name, flags, dir_fd=directory)
        try:
            for one in _attributes(old):
                os.setxattr(fd, one, os.getxattr(old, one))
        finally:
            os.close(old)


if sys.platform == "linux":

    def _attributes(fd: int) -> list[str]:
        """Those that people give, lists of who may do what among them; others the system gives."""
        try:
            names = os.listxattr(fd)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                return []
            raise
        return [name for name in names if name.startswith(("user.", "system.posix_acl_"))]


def overwrite(fd: int, data: bytes) -> None:
    """Write an open file anew. Raises OSError; then nothing has changed if the disk is full."""
    size = os.fstat(fd).st_size
    if len(data) > size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(fd, size, len(data) - size)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    at, view = 0, memoryview(data)
    while at < len(view):
        at += os.pwrite(fd, view[at : at + _PIECE], at)
    os.ftruncate(fd, len(data))


def fill(fd: int, data: bytes, check: Callable[[], None]) -> None:
    """Write an empty file."""
    view = memoryview(data)
    while view:
        check()
        view = view[os.write(fd, view[:_PIECE]) :]
