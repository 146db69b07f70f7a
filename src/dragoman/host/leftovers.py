"""Removes what tools left in temporary folders of ours and nobody has touched for long.

The folders belong to the host: `<data>/tmp/<agent>` is the TMPDIR of an agent's tools, shared by
all processes; a host whose sessions are not kept has a folder of its own in the system's. Links are
never followed, other file systems never entered, and sockets left alone: somebody may listen.
"""

import asyncio
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dragoman.observe.log import get_log

from .owner import is_alive

_AFTER = 30.0  # seconds from the start: others wait for it more
_EVERY = 86_400.0
_OLD = 10 * 86_400.0  # seconds without a look or a change
_DEAD = 86_400.0  # the same, where the process is gone
_DEPTH = 64
_PASSING = r"dragoman-(\d{1,9})-[0-9a-f]{8}"
_SAFE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")  # not on Windows
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK if _SAFE else 0
log = get_log("scratch")


async def keep_tidy(data_dir: str, after: float = _AFTER) -> None:
    """Look once soon after the start, then once a day."""
    while True:
        await asyncio.sleep(after)
        gone = await asyncio.to_thread(tidy, data_dir, os.environ.get("TMPDIR") or "/tmp")
        if gone:
            log.info("removed old temporary files", count=gone)
        after = _EVERY


def tidy(data_dir: str, shared: str, now: float | None = None) -> int:
    """Remove what is old in our folders; returns how many files and folders went."""
    if not _SAFE:
        return 0
    now = time.time() if now is None else now
    gone = 0
    with _opened(os.path.join(data_dir, "tmp")) as above:
        for name in os.listdir(above) if above >= 0 else ():
            with _opened(name, above) as agent:  # it stays itself: it may be somebody's TMPDIR
                gone += _clear(agent, now - _OLD)[0] if agent >= 0 else 0
    with _opened(shared, follow=True) as system:
        for name in os.listdir(system) if system >= 0 else ():
            found = re.fullmatch(_PASSING, name)
            if found is None or is_alive(found[1]):
                continue
            with _opened(name, system) as left:
                count, empty = _clear(left, now - _DEAD) if left >= 0 else (0, False)
            if empty:
                count += _gone(os.rmdir, name, system)
            gone += count
    return gone


@contextmanager
def _opened(path: str, above: int | None = None, *, follow: bool = False) -> Iterator[int]:
    """A folder; -1 when there is none, or it is a link or another user's (unless `follow`)."""
    try:
        fd = os.open(path, _FOLDER | (0 if follow else os.O_NOFOLLOW), dir_fd=above)
    except OSError:
        fd = -1
    try:
        yield fd if fd >= 0 and (follow or os.fstat(fd).st_uid == os.geteuid()) else -1
    finally:
        if fd >= 0:
            os.close(fd)


def _clear(folder: int, before: float, depth: int = _DEPTH) -> tuple[int, bool]:
    """Remove what nobody has touched since; returns how much, and whether nothing is left."""
    gone, empty = 0, True
    device = os.fstat(folder).st_dev
    for name in os.listdir(folder):
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            continue  # its owner was quicker
        count = went = 0
        if not stat.S_ISDIR(found.st_mode):
            newest = max(found.st_mtime, found.st_ctime, found.st_atime)
            if newest < before and not stat.S_ISSOCK(found.st_mode):
                went = _gone(os.unlink, name, folder)
        elif depth and found.st_dev == device:
            bare = False
            with _opened(name, folder) as inner:
                if inner >= 0:
                    count, bare = _clear(inner, before, depth - 1)
            if bare and max(found.st_mtime, found.st_ctime) < before:
                went = _gone(os.rmdir, name, folder)
        gone += count + went
        empty = empty and bool(went)
    return gone, empty


def _gone(remove: Callable[..., None], name: str, folder: int) -> int:
    try:
        remove(name, dir_fd=folder)
    except OSError:
        return 0  # used again, or not ours to remove
    return 1
