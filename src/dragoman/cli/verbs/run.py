"""`dragoman run`: one turn in the terminal."""

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.cli.parse import Args


def run(args: "Args") -> int:
    """Hand over to the host; it is imported only now."""
    from dragoman.cli.run.terminal import main

    return main(args)
