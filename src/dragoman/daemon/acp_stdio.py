"""`dragoman acp`: the Agent Client Protocol on standard input and output."""

import asyncio
import signal
import sys
from typing import Any

from dragoman.dialects.acp import Desk
from dragoman.engine.faults import Fault
from dragoman.transports import stdio
from dragoman.transports.loop import run, settle_memory

from .compose import compose


def main(args: Any) -> int:
    """Serve until the input ends; returns the exit code."""
    wire = stdio.claim_stdout()  # before anything else can print on it
    flags: dict[str, Any] = {}
    if args.max_sessions is not None:
        flags["acp.max_sessions"] = args.max_sessions
    if args.session_timeout is not None:
        flags["acp.session_timeout_secs"] = args.session_timeout
    try:
        return run(_serve(wire, args.config_dir, flags))
    except Fault as fault:
        print(f"dragoman acp: {fault}", file=sys.stderr)
        return 1


async def _serve(wire: int, config_dir: str | None, flags: dict[str, Any]) -> int:
    composed = await compose(config_dir=config_dir, flags=flags)
    try:
        for notice in composed.notices:
            print(f"dragoman acp: {notice}", file=sys.stderr)
        desk = Desk(composed.door, composed.settings.acp)
        composed.config.applied.append(lambda old, new: setattr(desk, "settings", new.acp))
        line = await stdio.serve(desk.hearer, stdout=wire)
        settle_memory()
        number = await _ended(line.gone)
        await desk.close()
    finally:
        await composed.close()
    if number:  # end as a program without a handler would, now that all is cleaned up
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    return 0


async def _ended(gone: asyncio.Event) -> int:
    """Wait for the end of the connection, or for a signal; returns the signal's number."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not told.done():
            told.set_result(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    over = loop.create_task(gone.wait())
    await asyncio.wait({over, told}, return_when=asyncio.FIRST_COMPLETED)
    over.cancel()
    return told.result() if told.done() else 0
