"""Markdown files with facts at the top, as skills and commands are written."""

import os
from collections.abc import Iterator, Sequence

_UP = 64  # folders above the working directory that are looked at
_NAMES = 500  # entries of one folder that are looked at


def split(text: str) -> tuple[dict[str, str], str, str]:
    """The facts between the dashes at the top, the rest, and what is wrong with the facts.

    A small part of YAML: `key: value`, quoted values, and `>` or `|` with indented lines.
    """
    text = text.removeprefix("\ufeff")
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}, text, ""
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    if not end:
        return {}, text, "the facts at its top are not closed by ---"
    facts: dict[str, str] = {}
    problem, key, folded = "", "", ""
    for line in lines[1:end]:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] in " \t":
            if folded:
                joint = " " if folded == ">" else "\n"
                facts[key] = f"{facts[key]}{joint}{line.strip()}".strip()
            continue  # deeper structure than we need
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            problem = problem or f"a line at its top is no fact: {line[:60]!r}"
            folded = ""
            continue
        key, value = name.strip().lower(), value.strip()
        folded = value[:1] if value[:1] in (">", "|") and len(value) <= 2 else ""
        facts[key] = "" if folded else _bare(value)
    return facts, "\n".join(lines[end + 1 :]).strip("\n"), problem


def _bare(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def read(path: str, limit: int) -> str:
    """The beginning of a text file. Raises OSError."""
    with open(path, encoding="utf-8", errors="replace", opener=_open) as file:
        return file.read(limit)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO there must not hang us


def facts_of(path: str, limit: int) -> tuple[dict[str, str], str] | None:
    """The facts of a file and the rest; None: it is another user's, or not readable for us."""
    if not is_ours(path):
        return None
    try:
        facts, body, _ = split(read(path, limit))
    except OSError:
        return None
    return facts, body


def names(folder: str) -> Sequence[str]:
    try:
        return sorted(os.listdir(folder))[:_NAMES]
    except OSError:
        return ()  # most people have none of these folders


def upward(cwd: str) -> Iterator[str]:
    """The working directory and those above it, as far as they are ours or the system's.

    Another user's folder (of /tmp, say) must not put words into an agent's mouth.
    """
    folder = os.path.abspath(cwd)
    for _ in range(_UP):
        if is_ours(folder):
            yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def is_ours(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return not hasattr(os, "geteuid") or found.st_uid in (0, os.geteuid())
