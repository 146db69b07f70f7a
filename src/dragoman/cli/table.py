"""The table of all commands."""

from .parse import Command

_GROUPS = ("serve", "work", "look", "setup")  # in the order in which help shows them
_LIKELY = ("serve", "look", "work", "setup")  # in the order in which a command is looked for


def commands() -> tuple[Command, ...]:
    return tuple(one for group in _GROUPS for one in _commands(group))


def find(name: str) -> Command | None:
    """The command of this name. Groups are loaded until it is found."""
    for group in _LIKELY:
        for one in _commands(group):
            if one.name == name:
                return one
    return None


def _commands(group: str) -> tuple[Command, ...]:
    module = __import__(f"dragoman.cli.commands.{group}", fromlist=["commands"])
    found: tuple[Command, ...] = module.commands()
    for one in found:
        one.group = module.GROUP
    return found
