"""What the store's entries say: one, all that was said in a session, or those after a place.

One that is damaged hides no other.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from . import events as ev
from .content import Message, text_of
from .events import Event
from .faults import StoreFailed
from .ports import Entry, Store
from .state import SUMMARY_HEAD, State

_PAGE = 4_096
Reading = Callable[[str, int, int], Awaitable[Sequence[Event]]]


def body_of(session_id: str, entry: Entry) -> ev.Kept:
    """For folding, which needs every one. Raises StoreFailed."""
    try:
        return ev.decode_body(entry.body)
    except msgspec.MsgspecError as error:
        raise StoreFailed(
            f"Entry {entry.seq} of session {session_id} cannot be read: {error}",
            "`dragoman sessions tail` shows the others.",
            session=session_id,
        ) from error


def read(session_id: str, entry: Entry, trouble: Callable[..., Any]) -> ev.Event:
    """For reading: of one that is damaged, that it is; it hides no other."""
    try:
        body = ev.decode_body(entry.body)
    except msgspec.MsgspecError as error:
        trouble("an entry cannot be read", error, session=session_id, seq=entry.seq)
        said = f"Entry {entry.seq} of this session is damaged: {error}"
        body = ev.Noted("error", "An entry cannot be read", said)
    return ev.Event(session_id, entry.at, body, entry.seq, entry.gseq)


def stalled(store: Store) -> StoreFailed:
    """No turn begins while nothing can be written."""
    return StoreFailed(f"Stalled: {store.stalled}", "Nothing is begun until the database is back.")


def is_compacted(messages: Sequence[Message]) -> bool:
    """Whether these messages begin with the summary of others."""
    return bool(messages) and text_of(messages[0].content).startswith(SUMMARY_HEAD)


async def whole(store: Store, session_id: str) -> Sequence[Message]:
    """Every message since the session began, or was cleared; summaries stand for nothing here."""
    state = State(session_id)
    past: list[Message] = []
    compacted = False
    while True:
        page = await store.entries(session_id, state.seq, _PAGE)
        for entry in page:
            body = body_of(session_id, entry)
            folds = isinstance(body, ev.Compacted)  # else nothing is copied: it may be long
            before = state.messages[compacted:] if folds else ()
            state.apply(body, entry.at)
            if folds:
                kept = len(state.messages) - 1
                past += before[: len(before) - kept]
                compacted = True
            elif isinstance(body, ev.Cleared | ev.Seeded):
                past, compacted = [], False
        if len(page) < _PAGE:
            return (*past, *state.messages[compacted:])


class Excerpt:
    """The kept events of one session by their places among those of all sessions (`gseq`).

    The store finds a session's events by their own numbers (`seq`). Both numbers grow together, so
    the place to begin at is found by halving, and every further page follows the one before.
    """

    def __init__(self, store: Store, read: Reading, session: str) -> None:
        self._store = store
        self._read = read
        self._session = session
        self._place, self._seq = 0, 0  # `gseq` and `seq` of the event that was read last

    async def read(self, after: int, limit: int) -> Sequence[Event]:
        """Events after a `gseq`, oldest first."""
        if after != self._place:
            self._place, self._seq = after, await self._before(after)
        page = await self._read(self._session, self._seq, limit)
        if page:
            self._place, self._seq = page[-1].gseq, page[-1].seq
        return page

    async def _before(self, place: int) -> int:
        """The `seq` of the last event at or before a `gseq`."""
        info = await self._store.info(self._session)
        low, high = 0, info.last_seq if info is not None else 0
        while low < high:
            middle = (low + high) // 2
            found = await self._store.entries(self._session, middle, 1)
            if found and found[0].gseq <= place:
                low = found[0].seq
            else:
                high = middle
        return low
