"""Which event loop runs, and how it is tuned."""

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

_CHUNK = 65536
_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program on uvloop where it is installed, else on asyncio."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        tame_reads()
        new_event_loop = None
    former = {}
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.get_loop()
            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # all is loaded (`cli.quiet`)
                signal.signal(signal.SIGINT, signal.default_int_handler)
            former = {number: signal.getsignal(number) for number in _ENDING}
            return runner.run(main)
    finally:  # a closed uvloop leaves handlers that do nothing: nobody could end us any more
        for number, handler in former.items():
            if signal.getsignal(number) != handler:
                signal.signal(number, handler)


def tame_reads() -> None:
    """Make asyncio's transports read 64 KiB at a time.

    Their default of 256 KiB makes the allocator map and unmap memory on every read, which doubles
    the time of a round trip.
    """
    import asyncio.selector_events

    _limit(getattr(asyncio.selector_events, "_SelectorTransport", None))
    try:
        import asyncio.unix_events
    except ImportError:
        return
    _limit(getattr(asyncio.unix_events, "_UnixReadPipeTransport", None))


def _limit(transport: Any) -> None:
    if hasattr(transport, "max_size"):
        transport.max_size = _CHUNK


def settle_memory() -> None:
    """Take what start-up made out of the garbage collector's rounds. Call once, when ready.

    The rounds also come more seldom: hardly anything here is part of a cycle, and the default of
    700 objects makes several rounds out of one turn.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


async def ended_by_signals(work: Coroutine[Any, Any, int]) -> int:
    """The exit code of `work`, which SIGTERM and a closed terminal end as Ctrl-C does: in order."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    came: list[int] = []

    def leave(number: int) -> None:
        loop.remove_signal_handler(number)  # the second one ends the program
        came.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # not ignored, as with nohup
            loop.add_signal_handler(number, leave, number)
    try:
        return await task
    except (asyncio.CancelledError, OSError):  # also a terminal that takes nothing any more
        if not came:
            raise
        return 128 + came[0]


class Stopping:
    """The signals that ask this program to end: it cleans up first, then ends by them."""

    def __init__(self, act: Callable[[], object] = lambda: None, *, hang_up: bool = False) -> None:
        """`act` is called at each of them; `hang_up`: a closed terminal is one, too."""
        self.number = 0  # of the first that came
        self._act = act
        self.came = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hang_up else [])):
            with suppress(NotImplementedError):  # Windows: the process just ends
                loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: int) -> None:
        self.number = self.number or number
        self.came.set()
        self._act()

    async def until(self, over: asyncio.Event) -> None:
        """Wait for the end that is due, or for a signal."""
        waits = [asyncio.ensure_future(one.wait()) for one in (over, self.came)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def end(self) -> None:
        """End as a program without a handler would, if a signal came."""
        if self.number:
            signal.signal(self.number, signal.SIG_DFL)
            signal.raise_signal(self.number)
