"""What every store refuses, and in which words."""

from typing import Any

from dragoman.engine.events import Ask
from dragoman.engine.faults import BadInput, InUse, StoreFailed, WrongState, taken_over
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import Batch

from .paging import MAX_TEXT


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


def check_search(text: str, limit: int) -> None:
    if limit < 1:
        raise BadInput(f"The limit {limit} is too small.", "Ask for at least one session.")
    if len(text) > MAX_TEXT:
        raise BadInput("The text to search for is too long.", f"Use at most {MAX_TEXT} letters.")


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
