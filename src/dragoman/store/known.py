"""What the writer remembers of sessions it wrote, so that it need not look before it writes."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.holding import Holder

if TYPE_CHECKING:
    from sqlite3 import Connection

KNOWN = 1024  # sessions remembered; beyond, all are forgotten and learnt anew
HOT = 64  # sessions of ours that may be hot at once, since every list looks through the hot ones


class RowPlace(Holder):
    """Where a session's row is, and how far it got."""

    num: int
    epoch: int
    last_seq: int
    lasting: tuple[Any, ...]


class Known:
    """The sessions that this writer made hot, and the newest number given out.

    Another process may have written since. Whoever relies on this says so in its statements, and
    begins again with a look when it was wrong.
    """

    __slots__ = ("hot", "newest", "places")

    def __init__(self) -> None:
        self.places: dict[str, RowPlace] = {}
        self.newest = 0
        self.hot: dict[int, str] = {}  # num and id of the sessions that we have to settle one day

    def learn(self, session: str, place: RowPlace, newest: int) -> None:
        if len(self.places) >= KNOWN:
            self.places.clear()
        self.places[session] = place
        self.hot[place.num] = session
        self.newest = newest

    def forget(self, session: str) -> None:
        self.places.pop(session, None)

    def forget_all(self) -> None:
        self.places.clear()

    def settled(self, nums: Iterable[int]) -> None:
        for num in nums:
            self.forget(self.hot.pop(num, ""))


def settle(connection: "Connection", nums: Sequence[int] | None = None) -> None:
    """Bring the indexes up to date for these sessions, or for all that are hot."""
    which = "" if nums is None else f" AND num IN ({', '.join(map(str, nums))})"
    connection.execute(
        "UPDATE sessions SET updated_at = live_at, status = live_status, hot = 0"
        f" WHERE hot = 1{which}"
    )
