"""A terminal that goes away: the signal for it reaches who leads the session, and not always us."""

import asyncio
import select
import threading
from collections.abc import Callable


def when_hung_up(told: Callable[[], None], terminal: int = 0) -> None:
    """Call `told` in the running loop once nobody is at the other end of a terminal any more."""
    loop = asyncio.get_running_loop()
    ends = select.poll()
    ends.register(terminal, 0)  # that it hung up is told whatever is asked for

    def wait() -> None:
        if any(seen & select.POLLHUP for _, seen in ends.poll()):
            try:
                loop.call_soon_threadsafe(told)
            except RuntimeError:
                return  # the loop was closed just now: we are leaving

    threading.Thread(target=wait, name="hangup", daemon=True).start()
