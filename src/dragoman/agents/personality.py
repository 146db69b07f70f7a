"""Who an agent is: Markdown files of its own that become part of every system prompt."""

import os

from .markdown import read

NAMES = ("IDENTITY", "SOUL", "PERSONALITY", "USER", "AGENTS", "TOOLS")
_LONGEST = 20_000  # characters of one file


def folder_of(config_dir: str, alias: str) -> str:
    """Where an agent's own files lie; empty for a name that is no plain folder."""
    if not alias or alias != os.path.basename(alias) or alias.startswith("."):
        return ""
    return os.path.join(config_dir, "agents", alias)


def personality(config_dir: str, alias: str) -> list[str]:
    """The agent's files that exist, in a fixed order. Reads files: call it in a thread."""
    folder = folder_of(config_dir, alias)
    found = []
    for name in NAMES if folder else ():
        try:
            text = read(os.path.join(folder, f"{name}.md"), _LONGEST).strip()
        except OSError:
            continue  # most agents have none or few of them
        if text:
            found.append(f"# {name}\n\n{text}")
    return found
