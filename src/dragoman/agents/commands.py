"""Slash commands that people keep as Markdown files.

A file `commands/deploy.md` is `/deploy`, `commands/git/tidy.md` is `/git:tidy`, and every skill is
a command of its name. The project's come first, then the user's.
"""

import os
from collections.abc import Iterator

from dragoman.engine.ports.commands import Command

from .markdown import facts_of, names
from .skills import NAME, find_skills, folders

_MOST = 200
_LARGEST = 128 * 1024


def find_commands(cwd: str, config_dir: str = "") -> dict[str, Command]:
    """The commands of a working directory, by name. Reads files: call it in a thread."""
    found: dict[str, Command] = {}
    for folder in folders(cwd, config_dir, "commands"):
        for name, path in _files(folder):
            if len(found) < _MOST and name not in found:
                command = _read(path, name)
                if command is not None:
                    found[name] = command
    for skill in find_skills(cwd, config_dir).found.values():
        if len(found) < _MOST and skill.name not in found:
            found[skill.name] = Command(skill.name, skill.description, "", skill.text())
    return found


def _files(folder: str) -> Iterator[tuple[str, str]]:
    """Names and paths of one folder, and of those directly in it."""
    for entry in names(folder):
        path = os.path.join(folder, entry)
        name, ending = os.path.splitext(entry)
        if ending == ".md" and NAME.fullmatch(name):
            yield name, path
        elif NAME.fullmatch(entry) and os.path.isdir(path):
            for inner in names(path):
                below, ending = os.path.splitext(inner)
                if ending == ".md" and NAME.fullmatch(below):
                    yield f"{entry}:{below}", os.path.join(path, inner)


def _read(path: str, name: str) -> Command | None:
    found = facts_of(path, _LARGEST)
    if found is None:
        return None  # not for us
    facts, body = found
    first = next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), name)
    hint = facts.get("argument-hint", "")[:200]
    return Command(name, (facts.get("description") or first)[:500], hint, body.strip())
