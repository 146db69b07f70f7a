"""Who may open what is ours: kept so while a command runs that could change it.

Landlock says nothing about `chmod`. Where a command has no mounts of its own, it can change the
modes of what its user owns, our data among it: not to read or write it, but to let other users of
the machine do so, or to keep us out. So they are looked at while it runs and after it, and mended.
"""

import contextlib
import os
import stat
from collections.abc import Sequence

SECONDS = 0.25  # between two looks
_MOST = 512  # entries of one folder


def mend(paths: Sequence[str]) -> list[str]:
    """Make folders and files of ours alone ours again; the paths that were not."""
    return [path for path in paths if _mend(path, 0) or _inner(path)]


def _inner(folder: str) -> bool:
    """Whether something right in a folder of ours was out of our reach."""
    found = False
    with contextlib.suppress(OSError):  # a file, or not there
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_MOST), entries, strict=False):
                found = _mend(entry.path, 0o077) or found
    return found


def _mend(path: str, tolerated: int) -> bool:
    """`tolerated`: what others may do as far as the folder around it lets them."""
    try:
        mode = os.lstat(path).st_mode
        kind = stat.S_IFMT(mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFSOCK):
            return False
        wanted = 0o700 if kind == stat.S_IFDIR else 0o600
        now = stat.S_IMODE(mode)
        if now & wanted == wanted and not now & 0o077 & ~tolerated:
            return False
        os.chmod(path, wanted)
    except OSError:
        return False  # gone, or another's: then it is not for us to mend
    return True
