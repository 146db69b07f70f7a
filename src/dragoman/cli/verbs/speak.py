"""`dragoman speak`: any of the protocols on standard input and output."""

from ..parse import Args
from ..quiet import begin


def run(args: Args) -> int:
    """Hand over to the server; it is imported only now."""

    def serve() -> int:
        from dragoman.stdio.speak import main

        return main(args.dialect, config_dir=args.config_dir, memory=args.memory)

    return begin(serve)
