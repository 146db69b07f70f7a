"""What every store refuses and in which words, and how each reads lists, cursors and words."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from dragoman.engine.events import Ask
from dragoman.engine.faults import BadInput, InUse, StoreFailed, WrongState, taken_over
from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.engine.ports import Batch

MAX_LIMIT = 10_000
MAX_TEXT = 1000
MAX_TERMS = 64


def check_batch(batch: Batch, epoch: int, last_seq: int) -> None:
    """Refuse a batch of a former writer, or one that does not continue the stored history."""
    if batch.epoch != epoch:
        raise taken_over(batch.session)
    if batch.info.id != batch.session:
        raise BadInput(f"A batch of session {batch.session} carries the row of {batch.info.id}.")
    for seq, entry in enumerate(batch.entries, last_seq + 1):
        if entry.seq != seq:
            raise StoreFailed(
                f"Session {batch.session}: entry {entry.seq} does not follow entry {seq - 1}.",
                "Open the session again to go on with it.",
                session=batch.session,
            )


def check_ask(ask: Ask, session: str) -> None:
    if ask.session != session:
        raise BadInput(f"Approval {ask.id} belongs to session {ask.session}, not {session}.")


def check_limit(limit: int | None) -> None:
    if limit is not None and limit < 0:
        raise BadInput(f"The limit {limit} is negative.", "Leave it out to read everything.")


def _check_text(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise BadInput("The text to search for is too long.", f"Use at most {MAX_TEXT} letters.")


def check_search(text: str, limit: int) -> None:
    if limit < 1:
        raise BadInput(f"The limit {limit} is too small.", "Ask for at least one session.")
    _check_text(text)


def check_find(extra: dict[str, Any]) -> None:
    if not extra:
        raise BadInput("Nothing was said about the session to find.", "Name at least one value.")


_MISSING = object()


def has_extra(info: SessionInfo, wanted: dict[str, Any]) -> bool:
    return all(_matches(info.extra.get(key, _MISSING), value) for key, value in wanted.items())


def _matches(kept: Any, wanted: Any) -> bool:
    """Equal, or a trait of which these fields are equal."""
    if isinstance(kept, dict) and isinstance(wanted, dict):
        return all(kept.get(name, _MISSING) == value for name, value in wanted.items())
    return bool(kept == wanted)


def moment(batch: Batch) -> int:
    """When a batch happened."""
    return batch.entries[-1].at if batch.entries else batch.info.updated_at


def exists(session: str) -> WrongState:
    return WrongState(f"Session {session} exists already.", "Choose another id.", session=session)


def in_use(session: str, owner: str) -> InUse:
    return InUse(
        f"Session {session} is in use by another process ({owner}).",
        "Attach to that process, or close the session there first.",
        owner=owner,
        session=session,
    )


def ask_exists(ask_id: str) -> WrongState:
    return WrongState(f"Approval {ask_id} exists already.", "Choose another id.", ask=ask_id)


def closed() -> StoreFailed:
    return StoreFailed("The store is closed.", "Start the program again.")


# --- lists ---


def encode_cursor(info: SessionInfo) -> str:
    """The opaque place right after this session in a list by newest activity."""
    return place_after(info.updated_at, info.id)


def place_after(moment: int, session: str) -> str:
    """The opaque place right after a session of this moment and id."""
    return urlsafe_b64encode(f"{moment},{session}".encode()).decode()


def decode_cursor(cursor: str) -> tuple[int, str]:
    """The place behind a cursor; BadInput when it is not one of ours."""
    try:
        moment, comma, session = urlsafe_b64decode(cursor.encode()).decode().partition(",")
        if not comma:
            raise ValueError("no separator")
        place = (int(moment), session)
        if not -(2**63) <= place[0] < 2**63:
            raise ValueError("out of range")
    except (ValueError, binascii.Error) as error:
        raise BadInput(
            "The list cursor is not valid.",
            "Pass the cursor of the page before unchanged, or none to begin at the newest.",
        ) from error
    return place


def checked(query: SessionQuery) -> tuple[int, int, tuple[int, str] | None]:
    """Limit, offset and decoded cursor of a query, or BadInput."""
    if query.limit < 1:
        raise BadInput(f"The limit {query.limit} is too small.", "Ask for at least one session.")
    if query.offset < 0:
        raise BadInput(f"The offset {query.offset} is negative.", "Begin at 0.")
    _check_text(query.text)
    if max(len(query.status), len(query.extra)) > MAX_TERMS:
        raise BadInput("The list has too many conditions.", f"Use at most {MAX_TERMS} of a kind.")
    place = decode_cursor(query.cursor) if query.cursor else None
    return min(query.limit, MAX_LIMIT), query.offset, place


def words_of(text: str) -> tuple[str, ...]:
    return tuple(text.lower().split())


def has_words(words: tuple[str, ...], title: str, prompt: str) -> bool:
    """Whether each word is somewhere in the title or the first prompt, whatever the case."""
    title, prompt = title.lower(), prompt.lower()
    return all(word in title or word in prompt for word in words)
