"""`dragoman acp`: the Agent Client Protocol on standard input and output."""

import os
import sys

from ..parse import Args
from ..quiet import begin


def run(args: Args) -> int:
    """Join the running daemon, or serve from here; the server is imported only then."""
    if args.login:
        return _log_in(args)
    own = args.alone or args.max_sessions is not None or args.session_timeout is not None
    path, begun = "", None
    if not own:
        from dragoman.stdio.joining import greet, path_of, reached

        path = path_of("acp", args.config_dir, os.environ)
        sock = reached(path)
        if sock is not None:
            print("dragoman acp: joined the running daemon (--alone: not)", file=sys.stderr)
            begun = greet(sock)

    def serve() -> int:
        from dragoman.stdio.acp import main

        return main(args, path, begun)

    return begin(serve)


def _log_in(args: Args) -> int:
    """Editors add the word `login` to the command that they know."""
    if args.login != "login":
        print(f"dragoman acp: Unknown word: {args.login}. Did you mean login?", file=sys.stderr)
        return 2
    from . import login

    args.values["provider"] = ""
    return login.run(args)
