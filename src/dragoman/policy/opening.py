"""Opening a canonical path without following a single symbolic link.

A path is judged first and used later. In between, somebody may put a symbolic link where a
directory was. Both ways here refuse any link in any component, so what is opened is what was
judged: `openat2` with RESOLVE_NO_SYMLINKS where the kernel has it, else one `openat` per component.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable

_OPENAT2 = 437  # the same number on every Linux architecture
_NO_MAGICLINKS = 0x02
_NO_SYMLINKS = 0x04
_BENEATH = 0x08
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Search permission is enough to walk through a directory where O_PATH exists.
_STEP = _DIRECTORY | getattr(os, "O_PATH", 0)
_ALWAYS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

Opener = Callable[[int, str, int, int], int]
_opener: Opener | None | bool = None  # None: not probed yet; False: the kernel has no openat2


def open_exact(path: str, flags: int, mode: int = 0o644) -> int:
    """Open an absolute, canonical path; ELOOP when any component is a symbolic link.

    O_NONBLOCK is always set, so that a FIFO put there in the meantime cannot hang the caller.
    """
    relative = path.lstrip("/") or "."
    opener = _kernel_opener()
    if opener is not None:
        root = os.open("/", _STEP)
        try:
            return opener(root, relative, flags | _ALWAYS, mode)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOSYS, errno.EPERM):
                raise
        finally:
            os.close(root)
    return walk_open(path, flags, mode)


def walk_open(path: str, flags: int, mode: int = 0o644) -> int:
    """Open component by component; what `open_exact` does on kernels without openat2."""
    parent, name = os.path.split(path)
    if not name:
        return os.open("/", flags | _ALWAYS)
    directory = walk_directory(parent)
    try:
        return _entered(directory, name, flags | _ALWAYS, mode)
    finally:
        os.close(directory)


def walk_directory(path: str, create: int | None = None) -> int:
    """Open a directory component by component; `create` is the mode of those that are missing.

    The result can be used as `dir_fd`, not necessarily for listing.
    """
    current = os.open("/", _STEP)
    try:
        for part in path.split("/"):
            if not part:
                continue
            following = _step(current, part, create)
            os.close(current)
            current = following
    except BaseException:
        os.close(current)
        raise
    return current


def _step(directory: int, part: str, create: int | None) -> int:
    try:
        return _entered(directory, part)
    except FileNotFoundError:
        if create is None:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, create, dir_fd=directory)
        # The process's umask belongs to its sockets and secrets, not to the user's tree.
        fd = os.open(part, _DIRECTORY, dir_fd=directory)
        try:
            os.fchmod(fd, create)
        finally:
            os.close(fd)
    return _entered(directory, part)


def _entered(directory: int, part: str, flags: int = _STEP, mode: int = 0o777) -> int:
    try:
        return os.open(part, flags, mode, dir_fd=directory)
    except NotADirectoryError:
        _refuse_link(directory, part)
        raise


def _refuse_link(directory: int, name: str) -> None:
    """O_DIRECTORY hides a link behind ENOTDIR; tell them apart."""
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)


def _kernel_opener() -> Opener | None:
    global _opener
    if _opener is None:
        _opener = _probe() or False
    return _opener if callable(_opener) else None


def _probe() -> Opener | None:
    """A function that calls openat2, or None where the kernel or a filter does not let us."""
    if os.uname().sysname != "Linux":
        return None
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None

    class How(ctypes.Structure):
        _fields_ = (
            ("flags", ctypes.c_uint64),
            ("mode", ctypes.c_uint64),
            ("resolve", ctypes.c_uint64),
        )

    resolve = _NO_SYMLINKS | _NO_MAGICLINKS | _BENEATH

    def opener(directory: int, path: str, flags: int, mode: int) -> int:
        how = How(flags, mode if flags & os.O_CREAT else 0, resolve)
        fd = call(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(directory),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return int(fd)

    try:
        root = os.open("/", _STEP)
        try:
            os.close(opener(root, ".", _DIRECTORY, 0))
        finally:
            os.close(root)
    except OSError:
        return None
    return opener
