"""`dragoman run`: one turn in the terminal."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Hand over to the host; it is imported only now."""
    from dragoman.cli.run.terminal import main

    return main(args)
