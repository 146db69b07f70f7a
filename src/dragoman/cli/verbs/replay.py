"""`dragoman replay FILE`: a transcript played as a server, to test a client."""

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.cli.parse import Args


def run(args: "Args") -> int:
    """Hand over to the player; it is imported only now."""
    from dragoman.stdio.replay import main

    return main(args)
