"""The kept events of one session by their places among those of all sessions (`gseq`).

The store finds a session's events by their own numbers (`seq`). Both numbers grow together, so the
place to begin at is found by halving, and every further page follows the one before.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .events import Event

if TYPE_CHECKING:
    from .host import Host


class Excerpt:
    """Reads on, page after page."""

    def __init__(self, host: "Host", session_id: str) -> None:
        self._host = host
        self._session = session_id
        self._place, self._seq = 0, 0  # `gseq` and `seq` of the event that was read last

    async def read(self, after: int, limit: int) -> Sequence[Event]:
        """Events after a `gseq`, oldest first."""
        if after != self._place:
            self._place, self._seq = after, await self._before(after)
        page = await self._host.read(self._session, self._seq, limit)
        if page:
            self._place, self._seq = page[-1].gseq, page[-1].seq
        return page

    async def _before(self, place: int) -> int:
        """The `seq` of the last event at or before a `gseq`."""
        info = await self._host.store.info(self._session)
        low, high = 0, info.last_seq if info is not None else 0
        while low < high:
            middle = (low + high) // 2
            found = await self._host.store.entries(self._session, middle, 1)
            if found and found[0].gseq <= place:
                low = found[0].seq
            else:
                high = middle
        return low
