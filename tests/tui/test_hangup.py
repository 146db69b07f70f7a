"""That a terminal went away is told once, and nothing else is."""

import asyncio
import os
import pty

from dragoman.tui.hangup import when_hung_up


async def test_the_end_of_a_terminal_is_told_and_what_is_typed_is_not() -> None:
    ours, its = pty.openpty()
    told: asyncio.Queue[str] = asyncio.Queue()
    when_hung_up(lambda: told.put_nowait("gone"), its)
    os.write(ours, b"typed\n")
    assert await asyncio.to_thread(os.read, its, 100) == b"typed\n"
    assert told.empty()
    os.close(ours)
    assert await asyncio.wait_for(told.get(), 60) == "gone" and told.empty()
    os.close(its)
