"""The system prompt: who the agent is, what the user added, the project's own instructions.

One file per part in `prompts/`. What stays the same comes first, so that a provider's cache holds
it: our own parts, then the user's, the project's, and last what changes from turn to turn.
"""

import os
import platform
import stat
from collections.abc import Iterator
from datetime import date
from functools import cache
from time import monotonic

from dragoman.engine.info import SessionInfo, plan_file
from dragoman.engine.ports import AgentProfile
from dragoman.engine.ports.agents import CONTEXT_NAMES
from dragoman.holding import Holder

from .markdown import read

# Files about an agent that become part of all its prompts.
PERSONALITY = ("IDENTITY", "SOUL", "PERSONALITY", "USER", "AGENTS", "TOOLS")
_FILE_CHARACTERS = 20_000  # of one of those
_FILE_LIMIT = 64 * 1024
_NO_WAIT = os.O_NONBLOCK | os.O_CLOEXEC
_PARTS = os.path.join(os.path.dirname(__file__), "prompts")
_LISTED = 40  # names of the folder that are shown
_MOMENT = 0.2  # seconds for which a look at files is good: a busy host has many turns in it
_REMEMBERED = 256  # looks


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
    look = _looked(cwd, profile.context_files, profile.system_prompt is None)
    given = (own, profile.append_system_prompt, extra)
    if look.given != given:  # else it was made for a turn just before
        parts = (*own, *profile.append_system_prompt, *look.said, *extra, look.place)
        look.made = "\n\n".join([part.strip() for part in parts if part.strip()]) + "\n"
        look.given = given
    return look.made


class _Look(Holder):
    """What the files of a folder say, and the prompt that was made of it last."""

    said: list[str]
    place: str
    changed: int
    at: float
    given: tuple[tuple[str, ...], ...] = ()
    made: str = ""


_looks: dict[tuple[str, bool, bool], _Look] = {}


def _looked(cwd: str, context: bool, whole: bool) -> _Look:
    """Turns that begin in a folder within a moment share one look, as long as nothing was made or
    removed in it."""
    try:
        changed = os.stat(cwd).st_mtime_ns
    except OSError:
        changed = 0
    key, now = (cwd, context, whole), monotonic()
    look = _looks.get(key)
    if look is None or look.changed != changed or now - look.at > _MOMENT:
        if len(_looks) >= _REMEMBERED:
            _looks.clear()
        said = context_files(cwd) if context else []
        look = _looks[key] = _Look(said, surroundings(cwd, whole=whole), changed, now)
    return look


def mode_part(info: SessionInfo) -> tuple[str, ...]:
    """What the mode of a session asks of the agent; nothing in most."""
    if info.mode != "plan":
        return ()
    with open(os.path.join(_PARTS, "modes", "plan.md"), encoding="utf-8") as file:
        return (file.read().replace("{plan}", plan_file(info.cwd, info.id)),)


def surroundings(cwd: str, *, whole: bool = True) -> str:
    """Where the agent is: the date, the folder, and with `whole` the machine and the project."""
    lines = [f"Current date: {date.today().isoformat()}"]
    lines.append(f"Current working directory: {_plain(cwd)}")
    if whole:
        lines.append(_machine())
        lines.append(f"Git: {repository(cwd)}")
        names = _names(cwd)
        if names:
            lines.append(f"In this folder: {names}")
    return "\n".join(lines)


@cache
def _machine() -> str:
    shell = "bash" if os.path.exists("/bin/bash") or os.path.exists("/usr/bin/bash") else "sh"
    return f"System: {platform.system()} {platform.machine()}, commands run in {shell}"


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
    for place in _upward(cwd):
        folder = os.path.join(place, ".git")
        if os.path.isfile(folder):  # a worktree or a submodule
            given = _read(folder)
            folder = os.path.join(place, given[8:].strip()) if given.startswith("gitdir: ") else ""
            break
        if os.path.isdir(folder):
            break
    else:
        return "not a repository"
    head = _read(os.path.join(folder, "HEAD"))
    if head.startswith("ref: refs/heads/"):
        said = f"branch {_plain(head[16:])[:200]}"
    else:
        said = f"detached at {_plain(head[:12])}" if head else "a repository"
    going_on = {"MERGE_HEAD": "a merge", "rebase-merge": "a rebase", "rebase-apply": "a rebase"}
    going_on |= {"CHERRY_PICK_HEAD": "a cherry-pick", "BISECT_LOG": "a bisection"}
    for name, what in going_on.items():
        if os.path.lexists(os.path.join(folder, name)):
            said += f", in the middle of {what}"
    return said if place == os.path.abspath(cwd) else f"{said}, root {_plain(place)}"


def _plain(text: str) -> str:
    """The first line; what steers or hides is written out: it was chosen by others."""
    line = text.strip().split("\n", 1)[0] if not text.startswith("/") else text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


def context_files(cwd: str) -> list[str]:
    """AGENTS.md or CLAUDE.md of every folder from the file system's root down to this one."""
    found = [text for directory in _upward(cwd) if (text := instructions(directory))]
    return found[::-1]


def _upward(cwd: str) -> Iterator[str]:
    """This folder and those above it."""
    place = os.path.abspath(cwd)
    yield place
    while (parent := os.path.dirname(place)) != place:
        yield parent
        place = parent


def instructions(directory: str) -> str:
    """What a folder says to agents, with the name of the file; empty: nothing."""
    for name in CONTEXT_NAMES:
        path = os.path.join(directory, name)
        text = _read(path)
        if text:
            return f"# {path}\n\n{text}"
    return ""


def folder_of(config_dir: str, alias: str) -> str:
    """Where an agent's own files lie; empty for a name that is no plain folder."""
    if not alias or alias != os.path.basename(alias) or alias.startswith("."):
        return ""
    return os.path.join(config_dir, "agents", alias)


def personality(config_dir: str, alias: str) -> list[str]:
    """The agent's files that exist, in a fixed order. Reads files: call it in a thread."""
    folder = folder_of(config_dir, alias)
    found = []
    for name in PERSONALITY if folder else ():
        try:
            text = read(os.path.join(folder, f"{name}.md"), _FILE_CHARACTERS).strip()
        except OSError:
            continue  # most agents have none or few of them
        if text:
            found.append(f"# {name}\n\n{text}")
    return found


def _read(path: str) -> str:
    try:
        # A pipe or device of that name must not keep us waiting.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(_FILE_LIMIT).decode(errors="replace").strip()
    except OSError:
        return ""  # no instructions here, or not for us
