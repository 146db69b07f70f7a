"""Hides what is forbidden inside of a workspace: an empty file system is mounted over it.

Landlock only knows what to allow, so a workspace that contains our own data (or somebody's keys)
would have to be taken apart. With a mount namespace of its own a command gets the whole workspace,
and nothing where the forbidden things are.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

from .room import BIND, NODEV, NOEXEC, NOSUID, RDONLY, REMOUNT, mount


def hidden(roots: Sequence[str], barred: Sequence[str], ours: Sequence[str]) -> tuple[str, ...]:
    """What to cover so that nothing barred inside of the roots can be reached or made.

    Only what exists can be covered. Something of `ours` that does not exist yet right in a root
    is made, empty: else a command could make it with what it likes (our configuration, say).
    """
    found: list[str] = []
    tops = {os.path.realpath(root) for root in roots}
    for path in barred:
        if not any(path.startswith(top.rstrip("/") + "/") for top in tops):
            continue
        if not os.path.lexists(path):
            folder = os.path.dirname(path)
            while not os.path.isdir(folder):
                folder = os.path.dirname(folder)
            inner = folder not in tops and not any(t.startswith(folder + "/") for t in tops)
            if inner:
                path = folder
            elif path in ours:
                _make(path)
            else:
                continue  # a name of somebody else's that nobody uses here
        found.append(path)
    outer = [one for one in found if not any(one.startswith(other + "/") for other in found)]
    return tuple(dict.fromkeys(outer))


def _make(path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    if os.path.splitext(path)[1] or path.endswith("-token"):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    else:
        os.mkdir(path, 0o700)


def cover(libc: Any, paths: Sequence[str], keep: str) -> Callable[[], None]:
    """What a child calls in a room of its own (`room.enter`).

    `keep` is a folder that stays reachable although it lies below a covered one.
    """
    folders = {path: os.path.isdir(path) for path in paths}
    below = next((path for path in paths if keep and keep.startswith(path + "/")), "")

    def enter() -> None:
        # Opened here: a descriptor of the namespace before could not be mounted in this one.
        kept = os.open(keep, os.O_PATH) if below else -1
        for path, is_folder in folders.items():
            if not is_folder:
                mount(libc, "/dev/null", path, "", BIND)
                continue
            mount(libc, "tmpfs", path, "tmpfs", NOSUID | NODEV | NOEXEC, "size=64k,mode=0755")
            if path == below:
                os.makedirs(keep)
                mount(libc, f"/proc/self/fd/{kept}", keep, "", BIND)
            flags = REMOUNT | BIND | RDONLY | NOSUID | NODEV | NOEXEC
            mount(libc, "none", path, "", flags)
        if kept >= 0:
            os.close(kept)

    return enter
