"""The submodules that git's index names: git looks into them, and does there what they say.

Whoever can write an index can make any folder a submodule. `git status`, which shells run for
their prompts, then goes by that folder's configuration.
"""

import os
from collections.abc import Iterator

LINK = b"\x00\x00\xe0\x00"  # the mode of a submodule
LARGEST = 64 * 1024 * 1024
_HEAD = 12
_BEFORE = 40  # bytes of an entry before its hash: times, place, mode, owner, size
_EXTENDED = 0x4000  # of its flags: two bytes more follow

_known: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {}
_KNOWN = 64


def linked(inner: str) -> tuple[str, ...]:
    """The folders that a repository's index calls submodules, relative to its files.

    Raises ValueError when an index cannot be read.
    """
    found: list[str] = []
    for path in _indexes(inner):
        found += _of(path, inner)
    return tuple(dict.fromkeys(found))


def _indexes(inner: str) -> Iterator[str]:
    try:
        names = os.listdir(inner)
    except OSError:
        return
    # A split index leaves most of itself in another file.
    yield from (f"{inner}/{n}" for n in names if n == "index" or n.startswith("sharedindex."))


def _of(path: str, inner: str) -> tuple[str, ...]:
    try:
        about = os.stat(path)
        # The time of the change itself, which nobody can set.
        stamp = (about.st_ctime_ns, about.st_size, about.st_ino)
        if (known := _known.get(path)) and known[0] == stamp:
            return known[1]
        with open(path, "rb") as file:
            data = file.read(LARGEST)
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise ValueError(str(problem)) from problem
    if len(data) >= LARGEST:
        raise ValueError("too large")
    found = tuple(links(data, _hash_size(inner))) if LINK in data else ()
    if len(_known) >= _KNOWN:
        _known.clear()
    _known[path] = (stamp, found)
    return found


def _hash_size(inner: str) -> int:
    try:
        with open(f"{inner}/config", "rb") as file:
            return 32 if b"sha256" in file.read(LARGEST).lower() else 20
    except OSError:
        return 20


def links(data: bytes, hash_size: int = 20) -> Iterator[str]:
    """The folders of submodules in the bytes of an index. Raises ValueError."""
    version = int.from_bytes(data[4:8])
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index that is known")
    at, name = _HEAD, b""
    fixed = _BEFORE + hash_size + 2
    for _ in range(int.from_bytes(data[8:12])):
        start = at + fixed
        if start > len(data):
            raise ValueError("it ends in the middle")
        flags = int.from_bytes(data[start - 2 : start])
        start += 2 if version >= 3 and flags & _EXTENDED else 0
        kept = b""
        if version == 4:
            less, start = _number(data, start)
            kept = name[: len(name) - less]
        end = data.find(b"\0", start)
        if end < 0:
            raise ValueError("it ends in the middle")
        name = kept + data[start:end]
        if data[at + 24 : at + 28] == LINK:
            yield os.fsdecode(name)
        at = end + 1 if version == 4 else at + (end - at) // 8 * 8 + 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number as git packs it, and where it ends. Raises ValueError."""
    value = -1
    while at < len(data):
        value = (value + 1 << 7) + (data[at] & 0x7F)
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
    raise ValueError("it ends in the middle")
