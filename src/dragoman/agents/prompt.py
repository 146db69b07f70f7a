"""The system prompt: who the agent is, what the user added, the project's own instructions.

One file per part in `prompts/`. What stays the same comes first, so that a provider's cache holds
it: our own parts, then the user's, the project's, and last what changes from turn to turn.
"""

import os
import platform
import stat
from datetime import date
from functools import cache

from dragoman.engine.ports import AgentProfile

_FILE_LIMIT = 64 * 1024
_NO_WAIT = os.O_NONBLOCK | os.O_CLOEXEC
_PARTS = os.path.join(os.path.dirname(__file__), "prompts")
_LISTED = 40  # names of the folder that are shown
CONTEXT_NAMES = ("AGENTS.md", "AGENTS.MD", "CLAUDE.md")


@cache
def own_parts() -> tuple[str, ...]:
    """Our own parts, in the order of their names."""
    found = []
    for name in sorted(os.listdir(_PARTS)):
        if name.endswith(".md"):
            with open(os.path.join(_PARTS, name), encoding="utf-8") as file:
                found.append(file.read())
    return tuple(found)


def system_prompt(profile: AgentProfile, cwd: str, extra: tuple[str, ...] = ()) -> str:
    """All parts, separated by blank lines. `extra` comes from skills, memory and the like."""
    own = own_parts() if profile.system_prompt is None else (profile.system_prompt,)
    parts = [*own, *profile.append_system_prompt]
    if profile.context_files:
        parts += context_files(cwd)
    parts += extra
    parts.append(surroundings(cwd, whole=profile.system_prompt is None))
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def surroundings(cwd: str, *, whole: bool = True) -> str:
    """Where the agent is: the date, the folder, and with `whole` the machine and the project."""
    lines = [f"Current date: {date.today().isoformat()}", f"Current working directory: {cwd}"]
    if whole:
        shell = "bash" if os.path.exists("/bin/bash") or os.path.exists("/usr/bin/bash") else "sh"
        lines.append(f"System: {platform.system()} {platform.machine()}, commands run in {shell}")
        lines.append(f"Git: {repository(cwd)}")
        names = _names(cwd)
        if names:
            lines.append(f"In this folder: {names}")
    return "\n".join(lines)


def _names(cwd: str) -> str:
    try:
        with os.scandir(cwd) as entries:
            found = sorted(
                one.name + ("/" if one.is_dir(follow_symlinks=False) else "")
                for one, _ in zip(entries, range(2_000), strict=False)
                if not one.name.startswith(".") and one.name.isprintable()
            )
    except OSError:
        return ""
    shown = ", ".join(name[:60] for name in found[:_LISTED])
    return f"{shown} and {len(found) - _LISTED} more" if len(found) > _LISTED else shown


def repository(cwd: str) -> str:
    """The branch and what is going on in it, read from files: git itself could be made to run
    what a repository's configuration names."""
    place = os.path.abspath(cwd)
    while True:
        folder = os.path.join(place, ".git")
        if os.path.isfile(folder):  # a worktree or a submodule
            given = _read(folder)
            folder = os.path.join(place, given[8:].strip()) if given.startswith("gitdir: ") else ""
            break
        if os.path.isdir(folder):
            break
        parent = os.path.dirname(place)
        if parent == place:
            return "not a repository"
        place = parent
    head = _read(os.path.join(folder, "HEAD"))
    if head.startswith("ref: refs/heads/"):
        said = f"branch {head[16:].strip()[:200]}"
    else:
        said = f"detached at {head[:12]}" if head else "a repository"
    going_on = {"MERGE_HEAD": "a merge", "rebase-merge": "a rebase", "rebase-apply": "a rebase"}
    going_on |= {"CHERRY_PICK_HEAD": "a cherry-pick", "BISECT_LOG": "a bisection"}
    for name, what in going_on.items():
        if os.path.lexists(os.path.join(folder, name)):
            said += f", in the middle of {what}"
    return said if place == os.path.abspath(cwd) else f"{said}, root {place}"


def context_files(cwd: str) -> list[str]:
    """AGENTS.md or CLAUDE.md of every folder from the file system's root down to this one."""
    found: list[str] = []
    directory = os.path.abspath(cwd)
    while True:
        text = instructions(directory)
        if text:
            found.append(text)
        parent = os.path.dirname(directory)
        if parent == directory:
            break
        directory = parent
    return found[::-1]


def instructions(directory: str) -> str:
    """What a folder says to agents, with the name of the file; empty: nothing."""
    for name in CONTEXT_NAMES:
        path = os.path.join(directory, name)
        text = _read(path)
        if text:
            return f"# {path}\n\n{text}"
    return ""


def _read(path: str) -> str:
    try:
        # A pipe or device of that name must not keep us waiting.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(_FILE_LIMIT).decode(errors="replace").strip()
    except OSError:
        return ""  # no instructions here, or not for us
