"""What a new session is to be, and where."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from .events import Mode
from .faults import BadInput
from .traits import Trait

EFFORTS = ("off", "minimum", "minimal", "low", "medium", "high", "xhigh", "max", "maximum")


class OpenSpec(msgspec.Struct, frozen=True):
    """What a new session is to be. Everything has a default."""

    agent: str = ""  # "": the default agent
    cwd: str = ""  # "": where the host was started
    id: str = ""  # "": a new UUID
    model: str = ""
    mode: Mode | None = None
    title: str = ""
    interactive: bool = True  # False: ends with its first turn
    reasoning: str = ""  # "": as the agent is configured
    parent: str | None = None
    check_cwd: bool = True
    worktree: bool = False  # in a git worktree of its own, made from `cwd`
    traits: tuple[Trait, ...] = ()


def launch_dir() -> str:
    """The folder that this process works in; of one that was removed, the name that it had."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        was = os.environ.get("PWD", "")
        return was if os.path.isabs(was) else "/"


def whole_path(cwd: str, launch_dir: str, *, relative: bool) -> str:
    """The path without relative parts at its beginning; `relative`: such a path is allowed.

    Raises BadInput.
    """
    if "\0" in cwd:
        raise BadInput("cwd holds a NUL character.", "Give a path without it.")
    path = os.path.expanduser(cwd) or launch_dir
    if os.path.isabs(path):
        return path
    if not relative:
        raise BadInput(
            f"The working directory {cwd!r} is relative.",
            "Give the whole path: the host does not know the client's folder.",
        )
    return os.path.normpath(os.path.join(launch_dir, path))


def check_effort(effort: str) -> None:
    """Raise BadInput for one that there is not; an empty one is as the agent is configured."""
    if effort and effort not in EFFORTS:
        raise BadInput(f"Unknown effort: {effort}.", f"Use one of: {', '.join(EFFORTS)}.")


def check_worktree(extra: Mapping[str, Any]) -> None:
    """Raise BadInput when a session's worktree was merged or dropped: its folder went with it."""
    if "worktree" not in extra:
        return
    from .ports.worktrees import Worktree

    tree = Worktree.of(extra)
    if tree.ended:
        why = f"its worktree was {tree.ended}"
        raise BadInput(
            f"The folder of this session is not there: {tree.path} ({why}).",
            "Begin a new session; this one can still be read and exported.",
        )


def directory(cwd: str) -> str:
    """The real path of a directory that is there. Raises BadInput."""
    path = os.path.realpath(cwd)
    if not os.path.isdir(path):
        what = "is not a directory" if os.path.exists(path) else "does not exist"
        raise BadInput(
            f"cwd is not a usable directory: {cwd} {what}.", "Give an existing directory."
        )
    if not os.access(path, os.X_OK):
        raise BadInput(
            f"cwd is not a usable directory: {cwd} may not be entered.",
            "Repair its permissions, or give another directory.",
        )
    try:
        path.encode()
    except UnicodeEncodeError:
        raise BadInput("The name of this directory is no UTF-8 text.", "Rename it.") from None
    return path
