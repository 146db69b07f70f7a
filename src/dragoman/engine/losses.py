"""Sessions that this host lost while it had them: what becomes of those who wait here.

Only a fleet loses sessions to others. There a turn that was under way goes on on another node, and
what was acknowledged runs there; the rest is refused.
"""

from collections.abc import Callable

from .work import Work


class Losses:
    """What was lost, until its node has freed it."""

    __slots__ = ("await_turn", "epochs")

    def __init__(self) -> None:
        # Set by a fleet: tells work how its turn ends elsewhere, read after a place in the log.
        self.await_turn: Callable[[str, int, Work], None] | None = None
        self.epochs: dict[str, int] = {}  # by session: nobody may have taken it

    def add(self, session: str, epoch: int) -> None:
        if self.await_turn is not None:
            self.epochs[session] = epoch

    def follow(self, session: str, seen: int, work: Work) -> bool:
        """Have work told how its turn ends elsewhere; False: it does not go on there."""
        taken = work.stored or work.started.done() and work.started.exception() is None
        if self.await_turn is None or work.kind != "prompt" or not taken:
            return False
        self.await_turn(session, seen, work)
        return True
