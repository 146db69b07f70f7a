"""Files that people write for agents: who an agent is, and skills. All methods block."""

import os
import re
import shutil
from collections.abc import Sequence

from dragoman.agents.markdown import names, read, split
from dragoman.agents.prompt import PERSONALITY, folder_of
from dragoman.engine.faults import BadInput

LONGEST = 20_000  # characters of a file about an agent, of which no more is read
_LARGEST = 256 * 1024  # bytes of a skill
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TEMPLATES = {
    "IDENTITY": "# Identity\n\nName, role, and for whom this agent works.\n",
    "SOUL": "# Character\n\nWhat matters to this agent, and what it never does.\n",
    "PERSONALITY": "# Manner\n\nHow it talks: brief or thorough, formal or not.\n",
    "USER": "# The user\n\nWhat the agent should know about you.\n",
    "AGENTS": "# Ways of working\n\nRules for its work in every project.\n",
    "TOOLS": "# Tools\n\nWhat is special about the tools of this machine.\n",
}


class Writings:
    """What lies below the configuration's folder for agents to read."""

    def __init__(self, config_dir: str) -> None:
        self._config_dir = config_dir

    # --- who an agent is ---

    def about(self, alias: str) -> list[tuple[str, int | None]]:
        """The files about an agent and their size; None: it is not there."""
        return [(f"{name}.md", _size(self._about(alias, f"{name}.md"))) for name in PERSONALITY]

    def read_about(self, alias: str, filename: str) -> str | None:
        try:
            return read(self._about(alias, filename), LONGEST)
        except OSError:
            return None  # it is not written yet

    def write_about(self, alias: str, filename: str, content: str) -> None:
        if len(content) > LONGEST:
            raise BadInput(f"The text has more than {LONGEST} characters.", "Shorten it.")
        _write(self._about(alias, filename), content)

    def templates(self) -> list[tuple[str, str]]:
        return [(f"{name}.md", _TEMPLATES[name]) for name in PERSONALITY]

    def _about(self, alias: str, filename: str) -> str:
        folder = folder_of(self._config_dir, alias)
        if not folder:
            raise BadInput(f"{alias!r} is no agent with files of its own.")
        if filename not in {f"{name}.md" for name in PERSONALITY}:
            known = ", ".join(f"{name}.md" for name in PERSONALITY)
            raise BadInput(f"{filename!r} is no file about an agent.", f"Use one of: {known}.")
        return os.path.join(folder, filename)

    # --- skills ---

    def skills(self) -> Sequence[str]:
        folder = os.path.join(self._config_dir, "skills")
        return [
            name for name in names(folder)
            if _NAME.fullmatch(name) and os.path.isfile(os.path.join(folder, name, "SKILL.md"))
        ]  # fmt: skip

    def read_skill(self, name: str) -> tuple[dict[str, str], str]:
        """The facts at its top, and its text."""
        try:
            facts, body, _ = split(read(os.path.join(self._skill(name), "SKILL.md"), _LARGEST))
        except OSError:
            raise BadInput(f"There is no skill {name}.", "See skills/list.") from None
        return facts, body

    def write_skill(self, name: str, facts: dict[str, str], body: str) -> None:
        lines = [f"{key}: {' '.join(value.split())}" for key, value in facts.items() if value]
        text = "\n".join(["---", *lines, "---", "", body.strip(), ""])
        if len(text.encode()) > _LARGEST:
            raise BadInput(f"The skill has more than {_LARGEST} bytes.", "Shorten it.")
        _write(os.path.join(self._skill(name), "SKILL.md"), text)

    def delete_skill(self, name: str) -> None:
        folder = self._skill(name)
        if os.path.islink(folder):
            os.unlink(folder)
        elif not os.path.isfile(os.path.join(folder, "SKILL.md")):
            raise BadInput(f"There is no skill {name}.", "See skills/list.")
        else:
            shutil.rmtree(folder)

    def _skill(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name!r} is no name for a skill.", "Use letters, digits, - and _.")
        return os.path.join(self._config_dir, "skills", name)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _write(path: str, text: str) -> None:
    """Replace a file in one go. Raises BadInput."""
    beside = f"{path}.{os.getpid()}.new"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace", newline="") as out:
            out.write(text)
        os.replace(beside, path)
    except OSError as problem:
        raise BadInput(f"{path} cannot be written: {problem.strerror}.") from None
