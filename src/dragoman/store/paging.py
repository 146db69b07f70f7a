"""Cursors, bounds and word filters that every store reads the same way."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionInfo, SessionQuery

MAX_LIMIT = 10_000
MAX_TEXT = 1000
MAX_TERMS = 64


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
    if len(query.text) > MAX_TEXT:
        raise BadInput("The text to search for is too long.", f"Use at most {MAX_TEXT} letters.")
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
