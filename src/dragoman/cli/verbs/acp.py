"""`dragoman acp`: the Agent Client Protocol on standard input and output."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Hand over to the server; it is imported only now."""
    from dragoman.daemon.acp_stdio import main

    return main(args)
