"""The system prompt: who the agent is, what the user added, the project's own instructions."""

import os
import stat
from datetime import date

from dragoman.engine.ports import AgentProfile

_IDENTITY = """\
You are an agent hosted by Dragoman. You work for the user in one directory with the tools you are \
given.

Look before you act: read files and search before you change something. Make the smallest change \
that does what was asked. When a tool fails or is refused, say so and choose another way; do not \
repeat a call that was refused.

Answer briefly and plainly. Say what you did, what you saw, and what you could not do."""

_FILE_LIMIT = 64 * 1024
_NO_WAIT = os.O_NONBLOCK | os.O_CLOEXEC
CONTEXT_NAMES = ("AGENTS.md", "AGENTS.MD")


def system_prompt(profile: AgentProfile, cwd: str, extra: tuple[str, ...] = ()) -> str:
    """All parts, separated by blank lines. `extra` comes from skills, memory and the like."""
    base = _IDENTITY if profile.system_prompt is None else profile.system_prompt
    parts = [base, *profile.append_system_prompt]
    if profile.context_files:
        parts += context_files(cwd)
    parts += extra
    parts.append(f"Current date: {date.today().isoformat()}\nCurrent working directory: {cwd}")
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def context_files(cwd: str) -> list[str]:
    """Every AGENTS.md from the file system's root down to the working directory."""
    found: list[str] = []
    directory = os.path.abspath(cwd)
    while True:
        for name in CONTEXT_NAMES:
            text = _read(os.path.join(directory, name))
            if text:
                found.append(f"# {os.path.join(directory, name)}\n\n{text}")
                break
        parent = os.path.dirname(directory)
        if parent == directory:
            break
        directory = parent
    return found[::-1]


def _read(path: str) -> str:
    try:
        # A pipe or device of that name must not keep us waiting.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(_FILE_LIMIT).decode(errors="replace").strip()
    except OSError:
        return ""  # no instructions here, or not for us
