"""Text files on our own disk: read in pieces, replaced as a whole or not at all."""

import contextlib
import os
import stat
from collections.abc import Callable

import msgspec

from dragoman.engine.faults import BadInput, Refused
from dragoman.engine.ports import ToolEnv
from dragoman.policy.paths import Boundary

from .overwrite import fill, hinders, overwrite, replaceable, take_after
from .work import Halt

_PIECE = 1 << 20
_DIRECTORY_MODE = 0o755
_FILE_MODE = 0o644
BoundsOf = Callable[[ToolEnv], Boundary]


class Stamp(msgspec.Struct, frozen=True):
    """Tells whether a file is still the one that was read."""

    device: int
    inode: int
    size: int
    modified: int


class Content(msgspec.Struct, frozen=True):
    data: bytes
    stamp: Stamp


def stamp_of(found: os.stat_result) -> Stamp:
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def os_fault(path: str, error: OSError) -> BadInput:
    """What the operating system said, as a sentence."""
    if isinstance(error, FileNotFoundError):
        return BadInput(f"{path}: no such file or directory.", path=path)
    if isinstance(error, IsADirectoryError):
        return BadInput(f"{path} is a directory", path=path)
    reason = (error.strerror or str(error)).lower()
    return BadInput(f"{path}: {reason}.", path=path)


def open_file(bounds: Boundary, path: str, shown: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; raises BadInput, Refused."""
    try:
        fd = bounds.open_inside(path, os.O_RDONLY)
    except OSError as error:
        raise os_fault(shown, error) from error
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        os.close(fd)
        raise BadInput(f"{path} is a directory", "Use ls to see what is in it.", path=path)
    return fd, found


def load(bounds: Boundary, path: str, shown: str, limit: int, halt: Halt) -> Content:
    """All bytes of a file that is not larger than `limit`."""
    fd, found = open_file(bounds, path, shown)
    with os.fdopen(fd, "rb") as file:
        if found.st_size > limit:
            raise BadInput(
                f"{shown} has {found.st_size} bytes; the limit here is {limit}.",
                "Use bash for a file of this size.",
            )
        pieces: list[bytes] = []
        total = 0
        while piece := file.read(_PIECE):
            halt.check()
            total += len(piece)
            if total > limit:
                raise BadInput(f"{shown} grows while it is read; the limit is {limit} bytes.")
            pieces.append(piece)
    return Content(b"".join(pieces), stamp_of(found))


def replace(
    bounds: Boundary,
    path: str,
    shown: str,
    data: bytes,
    halt: Halt,
    expected: Stamp | None = None,
    *,
    new: bool = False,
) -> None:
    """Put `data` in the place of a file: all of it or nothing, also when halted half-way.

    What an existing file has beside its content is kept (see `overwrite`, also for a file with
    several names), missing directories are made. `expected` is what was read
    before; when the file is another one by now, BadInput is raised and nothing changes. With `new`
    there must be no file yet.
    """
    try:
        directory, name = bounds.open_parent(path, _DIRECTORY_MODE)
    except OSError as error:
        raise os_fault(shown, error) from error
    try:
        before = _existing(bounds, path, shown, directory, name)

        def check() -> None:
            _still_the_same(directory, name, new, expected, shown)
            halt.check()

        if before is None or replaceable(before, bounds.roots, bounds.locked):
            try:
                return _swap(directory, name, shown, data, before, halt, check, new)
            except OSError as error:
                if before is None or not hinders(error):
                    raise
        fd = bounds.open_inside(path, os.O_WRONLY)
        try:
            check()
            if not os.path.samestat(before, os.fstat(fd)):
                raise _changed(shown)
            overwrite(fd, data)
        finally:
            os.close(fd)
    except OSError as error:
        raise os_fault(shown, error) from error
    finally:
        os.close(directory)


def _swap(
    directory: int,
    name: str,
    shown: str,
    data: bytes,
    before: os.stat_result | None,
    halt: Halt,
    check: Callable[[], None],
    new: bool,
) -> None:
    """Put a new file in the place of another. Raises OSError, and leaves nothing behind."""
    temporary = f".{name[:200]}.{os.urandom(6).hex()}.tmp"
    fd = os.open(
        temporary,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o600,
        dir_fd=directory,
    )
    try:
        try:
            fill(fd, data, halt.check)
            if before is None:
                os.fchmod(fd, _FILE_MODE)
            else:
                take_after(fd, before, directory, name)
        finally:
            os.close(fd)
        check()
        if not (new and _linked(directory, temporary, name, shown)):
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _existing(
    bounds: Boundary, path: str, shown: str, directory: int, name: str
) -> os.stat_result | None:
    """The file to be replaced; raises when it is a directory, a link or may not be written."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise BadInput(f"{path} is a directory", path=path)
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"Path refused: {shown}.", "It is not a regular file (any more).")
    # Replacing needs no permission on the file itself; a read-only file stays read-only.
    os.close(bounds.open_inside(path, os.O_WRONLY))
    return found


def _linked(directory: int, temporary: str, name: str, shown: str) -> bool:
    """Give a new file its name without taking a place that somebody was quicker to take.

    False where the file system knows no second names.
    """
    try:
        os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except FileExistsError as error:
        raise _appeared(shown) from error
    except OSError:
        return False
    os.unlink(temporary, dir_fd=directory)
    return True


def _appeared(shown: str) -> BadInput:
    return BadInput(f"{shown} was made by somebody else meanwhile.", "Nothing was changed.")


def _still_the_same(
    directory: int, name: str, new: bool, expected: Stamp | None, shown: str
) -> None:
    try:
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if now is not None and not stat.S_ISREG(now.st_mode):
        raise Refused(f"Path refused: {shown}.", "It is not a regular file (any more).")
    if new and now is not None:
        raise _appeared(shown)
    if expected is not None and (now is None or stamp_of(now) != expected):
        raise _changed(shown)


def _changed(shown: str) -> BadInput:
    return BadInput(f"{shown} changed while it was edited.", "Read it again and repeat the edit.")
