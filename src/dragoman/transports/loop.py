"""Which event loop runs, and how it is tuned."""

import asyncio
import gc
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_CHUNK = 65536


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program on uvloop where it is installed, else on asyncio."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        tame_reads()
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.get_loop()
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # all is loaded (`cli.quiet`)
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return runner.run(main)


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
