"""What the store's entries say, also when one of them is damaged."""

from collections.abc import Callable
from typing import Any

import msgspec

from . import events as ev
from .faults import StoreFailed
from .ports import Entry, Store


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
