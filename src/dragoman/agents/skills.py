"""Skills: folders with a SKILL.md that says how something is done.

The model is told their names and descriptions; it loads one with the tool `skill` when it needs it.
"""

import os
import re
from collections.abc import Sequence

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec

from .markdown import is_ours, names, read, split, upward

FOLDERS = (".dragoman", ".agents", ".claude")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SPELLED = "one has letters, digits, - and _, 64 at most"
_MOST = 200
_LARGEST = 256 * 1024  # characters of a SKILL.md
_DESCRIPTION = 1_024
_LISTED = 24_000  # characters of the whole list in the system prompt
_FILES = 100  # files of a skill that are named


class Skill(msgspec.Struct, frozen=True):
    """One skill and where it lies."""

    name: str
    description: str
    folder: str

    def text(self) -> str:
        """What its SKILL.md says, without the facts at the top."""
        try:
            return split(read(os.path.join(self.folder, "SKILL.md"), _LARGEST))[1].strip()
        except OSError as problem:
            raise BadInput(f"The skill {self.name} cannot be read: {problem.strerror}.") from None

    def files(self) -> list[str]:
        """What lies beside its SKILL.md."""
        found: list[str] = []
        for folder, below, files in os.walk(self.folder):
            below[:] = sorted(name for name in below if not name.startswith("."))
            for name in sorted(files):
                if name != "SKILL.md" and not name.startswith("."):
                    found.append(os.path.relpath(os.path.join(folder, name), self.folder))
                if len(found) >= _FILES:
                    return found
        return found


class Skills(msgspec.Struct, frozen=True):
    """What was found, and what was wrong with some of it."""

    found: dict[str, Skill]
    notes: tuple[str, ...] = ()


def user_folders(config_dir: str, kind: str = "skills") -> list[str]:
    """Where a user's own skills lie, or commands."""
    home = os.path.expanduser("~")
    places = [os.path.join(config_dir, kind)] if config_dir else []
    return [*places, *(os.path.join(home, folder, kind) for folder in FOLDERS)]


def find_skills(cwd: str, config_dir: str = "") -> Skills:
    """The skills of a working directory; the nearest of a name counts. Reads files."""
    found: dict[str, Skill] = {}
    notes: list[str] = []
    for folder in folders(cwd, config_dir, "skills"):
        for entry in names(folder):
            path = os.path.join(folder, entry)
            if not os.path.isfile(os.path.join(path, "SKILL.md")):
                continue
            if len(found) >= _MOST:
                notes.append(f"More than {_MOST} skills: those from {path} on are left out.")
                return Skills(found, tuple(notes))
            skill = _read(path, entry, notes)
            if skill is not None:
                found.setdefault(skill.name, skill)
    return Skills(found, tuple(dict.fromkeys(notes)))


def folders(cwd: str, config_dir: str, kind: str) -> list[str]:
    """Where to look for what is of a kind, the project's first; none of them twice."""
    project = (os.path.join(p, f, kind) for p in upward(cwd) for f in FOLDERS)
    return list(dict.fromkeys((*project, *user_folders(config_dir, kind))))


def _read(path: str, entry: str, notes: list[str]) -> Skill | None:
    file = os.path.join(path, "SKILL.md")
    if not is_ours(file):
        notes.append(f"The skill {path} is left out: it belongs to another user.")
        return None
    try:
        text = read(file, _LARGEST)
    except OSError as problem:
        notes.append(f"The skill {path} is left out: {problem.strerror}.")
        return None
    facts, body, problem_said = split(text)
    if problem_said:
        notes.append(f"The skill {path}: {problem_said}.")
    name = facts.get("name") or entry
    if not NAME.fullmatch(name):
        if not NAME.fullmatch(entry):
            mend = "Give it one with `name:` at the top of its SKILL.md, or rename the folder."
            notes.append(
                f"The skill {path} is left out: it has no usable name ({_SPELLED}). {mend}"
            )
            return None
        notes.append(f"The skill {path} has an unusable name ({_SPELLED}); it is called {entry}.")
        name = entry
    first = next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), name)
    description = " ".join((facts.get("description") or first).split())[:_DESCRIPTION]
    return Skill(name, description, path)


def listing(skills: Sequence[Skill]) -> str:
    """The part of the system prompt that names the skills."""
    if not skills:
        return ""
    head = "# Skills\n\nInstructions for special tasks. When one fits, load it with `skill` first."
    lines: list[str] = []
    size = len(head)
    for skill in skills:
        line = f"- {skill.name}: {skill.description}"
        size += len(line) + 1
        if size > _LISTED:
            lines.append(f"- … and {len(skills) - len(lines)} more, not shown")
            break
        lines.append(line)
    return "\n".join((head, "", *lines))


class SkillTool:
    """The tool `skill`: loads one by its name (`ports.Tool`)."""

    spec = ToolSpec(
        name="skill",
        description="Load a skill: instructions for a task, from those listed under Skills.",
        schema={
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The skill's name."}},
            "required": ["name"],
        },
        kind="read",
        repeatable=True,
    )

    def __init__(self, config_dir: str) -> None:
        self._config_dir = config_dir

    def summary(self, args: dict[str, object]) -> str:
        return f"Load the skill {args.get('name', '?')}"

    async def run(self, args: dict[str, object], env: ToolEnv) -> Outcome:
        import asyncio

        name = args.get("name")
        if not isinstance(name, str) or not name:
            raise BadInput("name is required")
        return Outcome((Text(await asyncio.to_thread(self._load, name, env.cwd)),))

    def _load(self, name: str, cwd: str) -> str:
        found = find_skills(cwd, self._config_dir).found
        skill = found.get(name)
        if skill is None:
            known = ", ".join(found) or "none"
            raise BadInput(f"There is no skill {name!r}.", f"There are: {known}.")
        parts = [f"# Skill {skill.name} (in {skill.folder})", skill.text()]
        if files := skill.files():
            parts.append("Files beside it:\n" + "\n".join(f"- {file}" for file in files))
        return "\n\n".join(parts)
