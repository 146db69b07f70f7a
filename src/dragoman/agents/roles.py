"""Roles of child sessions: the built-in ones, and those that people keep as Markdown files."""

import os
import re

import msgspec

from .markdown import facts_of, names, upward
from .skills import FOLDERS, NAME

LOOKING = ("read", "grep", "glob", "ls", "bash_output", "web_fetch")
_LARGEST = 64 * 1024
_MOST = 50


class Role(msgspec.Struct, frozen=True):
    """What a child is for. `tools` None: those of its parent; `acts`: it may change things."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = LOOKING
    acts: bool = False
    model: str = ""


_CHILD = (
    "You work for another agent, which sees nothing but your last answer: make it complete, with "
    "paths and line numbers, and short. Nobody answers questions."
)
BUILT_IN = (
    Role(
        "explore",
        "finds things in the project and explains how they work",
        f"{_CHILD} You explore: find what was asked for, and say where it is and how it works.",
    ),
    Role(
        "plan",
        "works out how to do something, without doing it",
        f"{_CHILD} You plan: read what matters, then give the steps, the files each touches, the "
        "risks, and how each step is checked.",
    ),
    Role(
        "review",
        "looks for mistakes in code or in a change",
        f"{_CHILD} You review: name real defects only, each with its place, why it is wrong and "
        "how it shows. Say so when there is none.",
    ),
)


def find_roles(cwd: str) -> dict[str, Role]:
    """The roles of a working directory, by name. Reads files: call it in a thread."""
    found = {role.name: role for role in BUILT_IN}
    for place in upward(cwd):
        for folder in FOLDERS:
            inside = os.path.join(place, folder, "agents")
            for entry in names(inside):
                name, ending = os.path.splitext(entry)
                if ending != ".md" or not NAME.fullmatch(name) or len(found) >= _MOST:
                    continue
                role = _read(os.path.join(inside, entry), name)
                if role is not None and role.name not in found:
                    found[role.name] = role
    return found


def _read(path: str, name: str) -> Role | None:
    found = facts_of(path, _LARGEST)
    if found is None:
        return None  # not for us
    facts, body = found
    listed = [word for word in re.split(r"[\s,\[\]]+", facts.get("tools", "")) if word]
    tools = tuple(word.strip("\"'").lower() for word in listed) or None
    about = (facts.get("description") or name)[:300]
    given = facts.get("name") or name
    name = given if NAME.fullmatch(given) else name
    return Role(name, about, f"{_CHILD}\n\n{body.strip()}", tools, True, facts.get("model", ""))
