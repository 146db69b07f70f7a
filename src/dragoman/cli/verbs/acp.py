"""`dragoman acp`: the Agent Client Protocol on standard input and output."""

import os
import sys

from ..quiet import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """Join the running daemon, or serve from here; the server is imported only then."""
    own = args.alone or args.max_sessions is not None or args.session_timeout is not None
    if not own and os.name == "posix":
        from dragoman.stdio.acp_join import carry, find

        sock = find(args.config_dir, os.environ)
        if sock is not None:
            print("dragoman acp: joined the running daemon (--alone: not)", file=sys.stderr)
            return carry(sock)

    def serve() -> int:
        from dragoman.stdio.acp import main

        return main(args)

    return begin(serve)
