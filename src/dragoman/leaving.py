"""What a command made for itself goes with it, also when a signal ends it."""

import signal
from contextlib import contextmanager

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def leaving_in_order() -> "Iterator[None]":
    """SIGTERM and a closed terminal end us as Ctrl-C does: processes and folders of ours go, too.

    The first of them counts: a shell and the kernel may both tell that a terminal went away.
    """
    mine = [one for one in (signal.SIGTERM, signal.SIGHUP) if _is_usual(one)]
    came: list[int] = []

    def leave(number: int, frame: object) -> None:
        came.append(number)
        for one in mine:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for one in mine:
        signal.signal(one, leave)
    try:
        yield
    finally:
        for one in mine:
            signal.signal(one, signal.SIG_DFL)
        if came:  # Python loses what is raised while it forks, say
            raise SystemExit(128 + came[0])


@contextmanager
def undisturbed() -> "Iterator[None]":
    """What would end us waits until a process that is started here has a name to end it by.

    While it is forked, what a handler raises is lost, or is taken for the new one's failure.
    """
    came: list[int] = []
    former = {
        one: handler
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if callable(handler := signal.getsignal(one))
    }
    for one in former:
        signal.signal(one, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)
    if came:
        signal.raise_signal(came[0])


def _is_usual(number: signal.Signals) -> bool:
    """Whether it ends us; with nohup it does not."""
    return signal.getsignal(number) is signal.SIG_DFL
