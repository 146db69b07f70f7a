"""Directories that sockets live in: made private by us, never changed when they are not ours."""

import errno
import os
import stat


def prepare_for(path: str) -> None:
    """Prepare the directory of this socket path."""
    prepare(os.path.dirname(os.path.abspath(path)))


def prepare(path: str) -> None:
    """Make sure that a directory is fit for a socket; what is missing is made with mode 0700.

    Raises PermissionError for a directory in which others could replace our socket.
    """
    missing = []
    at = os.path.abspath(path)
    while True:
        try:
            found = os.stat(at)
            break
        except FileNotFoundError:
            missing.append(at)
            at = os.path.dirname(at)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a directory", at)
    for name in reversed(missing):
        try:
            os.mkdir(name, 0o700)
        except FileExistsError:
            break  # somebody else was faster: judge it below like any other
        os.chmod(name, 0o700)  # the umask may have taken away our own rights
    check(path)


def check(path: str) -> None:
    """Raise PermissionError when another user could replace a file in this directory."""
    found = os.stat(path)
    if found.st_uid not in (os.geteuid(), 0):
        raise PermissionError(
            errno.EPERM, f"the directory belongs to another user (uid {found.st_uid})", path
        )
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        raise PermissionError(
            errno.EPERM,
            f"the directory is writable by others (mode {stat.S_IMODE(found.st_mode):04o})",
            path,
        )
