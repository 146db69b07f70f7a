"""Slash commands as this protocol shows them: our own, then those that people keep as files."""

from collections.abc import Mapping
from typing import Any

from dragoman.engine.ports.commands import Command, Commands

OWN = (
    Command("compact", "Replace the history by a summary"),
    Command("model", "Show the model, or use another one", "provider/model"),
    Command("clear", "Forget the conversation so far"),
    Command("undo", "Put files back to before the last turn that changed some", "turn, or list"),
    Command("redo", "Take the last undo back"),
    Command("status", "Show the session, its model and what it has used"),
)

IN_TURNS = frozenset({"undo", "redo"})  # the engine carries these out itself, as a turn


def all_commands(kept: Mapping[str, Command]) -> Commands:
    """Our own and those of the files; a file does not hide one of ours."""
    return Commands.of(OWN, kept)


def listed(commands: Commands, *, second: bool = False) -> list[dict[str, Any]]:
    """The members of `availableCommands`; version 2 says of everything what it is."""
    found = []
    for command in commands.found.values():
        shown: dict[str, Any] = {"name": command.name, "description": command.description}
        if second:
            shown["type"] = "command"
        if command.hint:
            shown["input"] = (
                {"type": "text", "hint": command.hint} if second else {"hint": command.hint}
            )
        found.append(shown)
    return found
