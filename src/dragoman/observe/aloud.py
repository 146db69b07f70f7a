"""What a daemon says to whoever started it."""

import sys

from .log import get_log

log = get_log("daemon")


def aloud(text: str) -> None:
    """One line on stderr. That nobody reads there any more, or its disk is full, ends nothing."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError) as problem:  # ValueError: it is closed
        log.debug("nobody hears what is said on stderr", problem=str(problem))
