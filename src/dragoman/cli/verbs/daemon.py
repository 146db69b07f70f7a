"""`dragoman daemon`: the host in the foreground."""

from ..parse import Args
from ..quiet import begin


def run(args: Args) -> int:
    """Hand over to the daemon; it is imported only now."""
    if args.background:
        from ..background import start

        return start(args)

    def serve() -> int:
        from dragoman.daemon.main import main

        return main(args)

    return begin(serve)
