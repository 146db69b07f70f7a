"""Hides what is forbidden inside of a workspace: an empty file system is mounted over it.

Landlock only knows what to allow, so a workspace that contains our own data (or somebody's keys)
would have to be taken apart. With a mount namespace of its own a command gets the whole workspace,
and nothing where the forbidden things are.
"""

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND = 1, 2, 4, 8, 32, 4096
_REC, _PRIVATE = 16384, 1 << 18


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
    if os.path.splitext(path)[1]:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    else:
        os.mkdir(path, 0o700)


def possible(libc: Any) -> bool:
    """Whether this process may make mount namespaces; found out once, in a child."""
    global _possible
    if _possible is None:
        pid = os.fork()
        if pid == 0:
            try:
                _own_mounts(libc)
            except OSError:
                os._exit(1)
            os._exit(0)
        _possible = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return _possible


_possible: bool | None = None


def cover(libc: Any, paths: Sequence[str], keep: str) -> Callable[[], None]:
    """What a child calls before it is confined.

    `keep` is a folder that stays reachable although it lies below a covered one.
    """
    folders = {path: os.path.isdir(path) for path in paths}
    below = next((path for path in paths if keep and keep.startswith(path + "/")), "")

    def enter() -> None:
        _own_mounts(libc)
        # Opened now: a descriptor of the namespace before could not be mounted in this one.
        kept = os.open(keep, os.O_PATH) if below else -1
        for path, is_folder in folders.items():
            if not is_folder:
                _mount(libc, "/dev/null", path, "", _BIND)
                continue
            _mount(libc, "tmpfs", path, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "size=64k,mode=0755")
            if path == below:
                os.makedirs(keep)
                _mount(libc, f"/proc/self/fd/{kept}", keep, "", _BIND)
            flags = _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC
            _mount(libc, "none", path, "", flags)
        if kept >= 0:
            os.close(kept)

    return enter


def _own_mounts(libc: Any) -> None:
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWNS | (0 if uid == 0 else _CLONE_NEWUSER)) != 0:
        raise OSError("unshare")
    if uid != 0:
        for name, text in (
            ("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1"),
        ):  # fmt: skip
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _mount(libc, "none", "/", "", _REC | _PRIVATE)


def _mount(libc: Any, source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    words = [text.encode() if text else None for text in (source, target, kind)]
    done = libc.mount(*words, ctypes.c_ulong(flags), data.encode() if data else None)
    if done != 0:
        raise OSError(ctypes.get_errno(), f"mount over {target}")
