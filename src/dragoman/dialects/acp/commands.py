"""Slash commands: our own, and those that people keep as Markdown files.

A file `commands/deploy.md` is `/deploy`; a folder `skills/review/SKILL.md` is `/review`. They are
looked for in the working directory first, then where the user keeps them for all projects.
"""

import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:-]{0,63}")
_MOST = 200
_LARGEST = 128 * 1024
_FOLDERS = (".dragoman", ".claude", ".agents")


class Command(msgspec.Struct, frozen=True):
    """One command. `body` is None for our own, else what is sent to the model."""

    name: str
    description: str
    hint: str = ""
    body: str | None = None

    def listed(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"name": self.name, "description": self.description}
        if self.hint:
            shown["input"] = {"hint": self.hint}
        return shown

    def filled(self, words: str) -> str:
        """The body with what was typed after the command in its places."""
        body = self.body or ""
        parts = words.split()
        filled = re.sub(
            r"\$(ARGUMENTS|[1-9])",
            lambda mark: (
                words
                if mark[1] == "ARGUMENTS"
                else parts[int(mark[1]) - 1]
                if int(mark[1]) <= len(parts)
                else ""
            ),
            body,
        )
        if filled == body and words:
            filled = f"{body.rstrip()}\n\n{words}"
        return filled


OWN = (
    Command("compact", "Replace the history by a summary"),
    Command("model", "Show the model, or use another one", "provider/model"),
    Command("clear", "Forget the conversation so far"),
    Command("status", "Show the session, its model and what it has used"),
)


class Commands(msgspec.Struct, frozen=True):
    """The commands of one session, by name."""

    found: dict[str, Command]

    def listed(self) -> list[dict[str, Any]]:
        return [command.listed() for command in self.found.values()]

    def match(self, text: str) -> tuple[Command, str] | None:
        """The command that a prompt begins with, and the words after it."""
        if not text.startswith("/"):
            return None
        head, _, words = text[1:].partition(" ")
        name, _, more = head.partition("\n")
        command = self.found.get(name)
        if command is None:
            return None
        return command, f"{more} {words}".strip() if more else words.strip()


def find_commands(cwd: str, config_dir: str = "") -> Commands:
    """Look for the commands of a session. Reads files: call it in a thread."""
    found = {command.name: command for command in OWN}
    home = os.path.expanduser("~")
    places = [os.path.join(cwd, folder) for folder in _FOLDERS]
    places += [config_dir] if config_dir else []
    places += [os.path.join(home, folder) for folder in _FOLDERS]
    for place in places:
        for command in (*_markdown(os.path.join(place, "commands")),
                        *_skills(os.path.join(place, "skills"))):  # fmt: skip
            if len(found) < _MOST:
                found.setdefault(command.name, command)
    return Commands(found)


def _names(folder: str) -> Sequence[str]:
    try:
        return sorted(os.listdir(folder))[:_MOST]
    except OSError:
        return ()  # most people have none of these folders


def _markdown(folder: str) -> list[Command]:
    found = []
    for entry in _names(folder):
        name, ending = os.path.splitext(entry)
        if ending == ".md" and _NAME.fullmatch(name):
            command = _read(os.path.join(folder, entry), name)
            found += [command] if command else []
    return found


def _skills(folder: str) -> list[Command]:
    found = []
    for entry in _names(folder):
        path = os.path.join(folder, entry, "SKILL.md")
        if _NAME.fullmatch(entry) and os.path.isfile(path):
            command = _read(path, entry)
            found += [command] if command else []
    return found


def _read(path: str, name: str) -> Command | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LARGEST)
    except OSError:
        return None  # not readable for us: not a command of ours
    facts, body = _split(text)
    first = next((line.strip("# ").strip() for line in body.splitlines() if line.strip()), name)
    return Command(
        name,
        (facts.get("description") or first)[:500],
        facts.get("argument-hint", "")[:200],
        body.strip(),
    )


def _split(text: str) -> tuple[dict[str, str], str]:
    """The facts between the dashes at the top, and the rest."""
    if not text.startswith("---"):
        return {}, text
    head, mark, body = text[3:].partition("\n---")
    if not mark:
        return {}, text
    facts = {}
    for line in head.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip():
            facts[key.strip().lower()] = value.strip().strip("\"'")
    return facts, body.partition("\n")[2]
