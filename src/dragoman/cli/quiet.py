"""Start-up without the garbage collector: nearly all that is made then stays."""

import gc

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def begin(serve: "Callable[[], int]") -> int:
    """Run a server that turns the collector on again by itself once it has begun."""
    gc.disable()
    try:
        return serve()
    finally:
        gc.enable()
