"""The branch of a working directory, read from git's own files."""

import os
import re

_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_BIGGEST = 4 * 1024 * 1024


def branch(folder: str) -> dict[str, str]:
    """`branch` and the first 7 digits of `hash`; nothing outside of a repository."""
    git = _find(folder)
    if git is None:
        return {}
    head = _read(os.path.join(git, "HEAD")).strip()
    if _HASH.fullmatch(head):
        return {"hash": head[:7]}
    name = head.removeprefix("ref: ").strip()
    if not name or name == head:
        return {}
    found = {"branch": name.removeprefix("refs/heads/")}
    common = _read(os.path.join(git, "commondir")).strip()
    places = [git, os.path.normpath(os.path.join(git, common))] if common else [git]
    for place in places:
        commit = _read(os.path.join(place, name)).strip() or _packed(place, name)
        if _HASH.fullmatch(commit):
            return {**found, "hash": commit[:7]}
    return found


def _find(folder: str) -> str | None:
    """The git directory of the nearest folder upward that has one."""
    at = os.path.abspath(folder)
    while True:
        place = os.path.join(at, ".git")
        if os.path.isdir(place):
            return place
        if os.path.isfile(place):  # a worktree or a submodule
            target = _read(place).strip().removeprefix("gitdir:").strip()
            return os.path.normpath(os.path.join(at, target)) if target else None
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above


def _packed(git: str, name: str) -> str:
    for line in _read(os.path.join(git, "packed-refs")).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_BIGGEST)
    except OSError:
        return ""
