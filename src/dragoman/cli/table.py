"""The table of all commands. A command is shown and runs only when its verb module is there."""

import os

from .commands import look, serve, setup, work
from .parse import Command


def declared() -> tuple[Command, ...]:
    """Every command of the table, whether its module is there or not."""
    return serve.commands() + work.commands() + look.commands() + setup.commands()


def module_of(name: str) -> str:
    """The module's name under `cli/verbs` for a command."""
    return name.replace("-", "_")


def commands() -> tuple[Command, ...]:
    """The commands that can run: those whose verb module exists."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verbs")
    there = {entry.partition(".")[0] for entry in os.listdir(folder)}
    return tuple(one for one in declared() if module_of(one.name) in there)
