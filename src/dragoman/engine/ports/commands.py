"""Slash commands: words that stand for a longer prompt."""

import re
from collections.abc import Iterable, Mapping

import msgspec

_MARKS = r"\$(ARGUMENTS|[1-9])"


class Command(msgspec.Struct, frozen=True):
    """One command. `body` is None for those that the host itself carries out."""

    name: str
    description: str
    hint: str = ""
    body: str | None = None

    def filled(self, words: str) -> str:
        """The body with what was typed after the command in its places."""
        body = self.body or ""
        parts = words.split()

        def fill(mark: re.Match[str]) -> str:
            if mark[1] == "ARGUMENTS":
                return words
            place = int(mark[1])
            return parts[place - 1] if place <= len(parts) else ""

        filled = re.sub(_MARKS, fill, body)
        if filled == body and words:
            filled = f"{body.rstrip()}\n\n{words}"
        return filled


class Commands(msgspec.Struct, frozen=True):
    """The commands of one session, by name."""

    found: dict[str, Command]

    @classmethod
    def of(cls, *groups: Iterable[Command] | Mapping[str, Command]) -> "Commands":
        """All of these; of two with the same name the first counts."""
        found: dict[str, Command] = {}
        for group in groups:
            for command in group.values() if isinstance(group, Mapping) else group:
                found.setdefault(command.name, command)
        return cls(found)

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
