"""`dragoman acp-bridge`: joins an editor on stdin and stdout to the running daemon's gateway."""

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.cli.parse import Args


def run(args: "Args") -> int:
    """Hand over to the bridge; it is imported only now."""
    from dragoman.stdio.bridge import main

    return main(args)
