"""`dragoman` alone: the terminal."""

import sys

from dragoman.engine.faults import BadInput

from ..parse import Args


def run(args: Args) -> int:
    """Open it; everything that draws is imported only now."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(
            "The terminal needs a terminal on both its input and its output.",
            'In scripts and pipes, use: dragoman run "PROMPT"',
        )
    from dragoman.tui.begin import begin

    return begin(args)
