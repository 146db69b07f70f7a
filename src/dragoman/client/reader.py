"""Who reads what a command prints: while it waits for more to print, it sees that reader leave.

Without that `| head -1` would end, and the command only with the next thing it prints.
"""

import select
import sys

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NONE = -1


def ready(places: "Sequence[Any]", reader: int = NONE) -> "list[Any]":
    """Wait until some of these can be read; returns them. Raises BrokenPipeError.

    That is raised when nobody reads any more what is written to the descriptor `reader`, and none
    of these can be read: what is there already is a reason to write, and so to see it, too.
    """
    if sys.platform == "win32":  # where there is no poll, and select is for sockets alone
        return select.select(places, [], [])[0]
    else:
        gone = select.POLLERR | select.POLLHUP  # told without being asked for
        poll = select.poll()
        by_fd = {one if isinstance(one, int) else one.fileno(): one for one in places}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        if reader != NONE and reader not in by_fd:
            poll.register(reader, 0)
        while True:
            told = poll.poll()
            if found := [by_fd[fd] for fd, _ in told if fd in by_fd]:
                return found
            if any(state & gone for _, state in told):
                raise BrokenPipeError(32, "Broken pipe")  # EPIPE, as writing there would say
            poll.unregister(reader)  # a kind that this system cannot watch
