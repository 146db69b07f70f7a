"""`dragoman daemon`: the host in the foreground."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Hand over to the daemon; it is imported only now."""
    from dragoman.daemon.main import main

    return main(args)
