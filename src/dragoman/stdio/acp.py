"""`dragoman acp`: the Agent Client Protocol on standard input and output.

Only what the first answer needs is imported before the input is read (see `porter.py`).
"""

import gc
import os
import sys
from typing import TYPE_CHECKING, Any

from dragoman.settings.places import places
from dragoman.stdio.acp_greeting import Porter, is_plain
from dragoman.transports import stdio
from dragoman.transports.loop import run, settle_memory

if TYPE_CHECKING:
    import asyncio

    from dragoman.host.compose import Composed
    from dragoman.wire.link import Link


def main(args: Any) -> int:
    """Serve until the input ends; returns the exit code."""
    wire = stdio.claim_stdout()  # before anything else can print on it
    flags: dict[str, Any] = {}
    if args.max_sessions is not None:
        flags["acp.max_sessions"] = args.max_sessions
    if args.session_timeout is not None:
        flags["acp.session_timeout_secs"] = args.session_timeout
    return run(_Serving(args.config_dir, flags).run(wire))


class _Serving:
    """One process that serves one client."""

    def __init__(self, config_dir: str | None, flags: dict[str, Any]) -> None:
        self.config_dir = config_dir
        self.flags = flags
        self.where = places(os.environ, config_dir)
        self.plain = is_plain(os.environ, self.where) and _sound(flags)
        self.composed: Composed | None = None
        self.porter: Porter | None = None
        self.desk: Any = None
        self.failed = False
        self.signal = 0
        self._task: asyncio.Task[None] | None = None

    async def run(self, wire: int) -> int:
        import asyncio
        import signal

        self.over = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        line = await stdio.serve(self._open, stdout=wire)
        if not self.plain:
            self._begin()
        gone = loop.create_task(line.gone.wait())
        told = loop.create_task(self.over.wait())
        await asyncio.wait({gone, told}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        told.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})
        if self.desk is not None:
            await self.desk.close()
        if self.composed is not None:
            await self.composed.close()
        if self.signal:  # end as a program without a handler would, now that all is cleaned up
            signal.signal(self.signal, signal.SIG_DFL)
            signal.raise_signal(self.signal)
        return 1 if self.failed else 0

    def _stop(self, number: int) -> None:
        self.signal = number
        self.over.set()

    def _open(self, link: "Link") -> Porter:
        self.porter = Porter(link, self.where, self.flags, self._wake, plain=self.plain)
        return self.porter

    def _wake(self) -> None:
        """Put the host together, once what was said so far has been sent."""
        import asyncio

        if self._task is None:
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        import asyncio

        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._compose())

    async def _compose(self) -> None:
        from dragoman.engine.faults import Fault
        from dragoman.host.compose import compose

        try:
            self.composed = composed = await compose(config_dir=self.config_dir, flags=self.flags)
        except Fault as fault:
            print(f"dragoman acp: {fault}", file=sys.stderr)
            self.failed = True
            self.over.set()
            return
        for notice in composed.notices:
            print(f"dragoman acp: {notice}", file=sys.stderr)
        from dragoman.dialects.acp import Desk

        desk = self.desk = Desk(composed.door, composed.settings.acp)
        composed.config.applied.append(lambda old, new: setattr(desk, "settings", new.acp))
        assert self.porter is not None
        self.porter.hand_over(desk.hearer(self.porter.link))
        gc.enable()
        settle_memory()


def _sound(flags: dict[str, Any]) -> bool:
    """Whether the command line's values are beyond doubt; if not, the settings judge them."""
    return flags.get("acp.max_sessions", 1) >= 1 and flags.get("acp.session_timeout_secs", 0) >= 0
