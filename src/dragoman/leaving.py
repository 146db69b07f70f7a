"""What a command made for itself goes with it, also when a signal ends it."""

import signal
import weakref
from contextlib import contextmanager

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Leaving(SystemExit):
    """The end that a signal asks for: held by somebody while it is on its way, not once lost."""


@contextmanager
def leaving_in_order() -> "Iterator[None]":
    """SIGTERM and a closed terminal end us as Ctrl-C does: processes and folders of ours go, too.

    The first of them counts, until it is through: a shell and the kernel may both tell that a
    terminal went away. One that was lost on the way does not keep the next from ending us.
    """
    mine = [one for one in (signal.SIGTERM, signal.SIGHUP) if _is_usual(one)]
    came: list[int] = []
    under_way: list[weakref.ref[Leaving]] = []

    def leave(number: int, frame: object) -> None:
        if any(one() is not None for one in under_way):
            return
        came.append(number)
        ending = Leaving(128 + number)
        under_way.append(weakref.ref(ending))
        try:
            raise ending
        finally:
            del ending  # else its traceback would hold it, and it us

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
