"""Start-up without the garbage collector, and without a Ctrl-C in the middle of an import."""

import gc

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def begin(serve: "Callable[[], int]") -> int:
    """Run a server that turns the collector on again by itself once it has begun.

    Nearly all that is made until then stays.
    """
    gc.disable()
    try:
        return unhurt(serve)
    finally:
        gc.enable()


def unhurt(serve: "Callable[[], int]") -> int:
    """Run what loads much and then an event loop; until that one runs, Ctrl-C just ends us.

    An exception out of nowhere breaks libraries that are being loaded: msgspec dies of one in the
    middle of a type. The loop takes interrupts up again (`transports.loop.run`).
    """
    import signal

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return serve()  # somebody has chosen: a shell in the background, say
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return serve()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
