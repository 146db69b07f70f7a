"""The table of all commands. A command is shown and runs only when its verb module is there."""

import os

from .parse import Command

_GROUPS = ("serve", "work", "look", "setup")  # in the order in which help shows them
_LIKELY = ("serve", "look", "work", "setup")  # in the order in which a command is looked for


def declared() -> tuple[Command, ...]:
    """Every command of the table, whether its module is there or not."""
    return tuple(one for group in _GROUPS for one in _commands(group))


def module_of(name: str) -> str:
    """The module's name under `cli/verbs` for a command."""
    return name.replace("-", "_")


def commands() -> tuple[Command, ...]:
    """The commands that can run: those whose verb module exists."""
    there = _there()
    return tuple(one for one in declared() if module_of(one.name) in there)


def find(name: str) -> Command | None:
    """The command of this name that can run. Groups are loaded until it is found."""
    for group in _LIKELY:
        for one in _commands(group):
            if one.name == name:
                return one if module_of(name) in _there() else None
    return None


def _commands(group: str) -> tuple[Command, ...]:
    found: tuple[Command, ...] = __import__(
        f"dragoman.cli.commands.{group}", fromlist=["commands"]
    ).commands()
    return found


def _there() -> set[str]:
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verbs")
    return {entry.partition(".")[0] for entry in os.listdir(folder)}
