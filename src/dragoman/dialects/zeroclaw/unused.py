"""Sessions that a terminal opens when it starts, and leaves before anything was said."""

from collections.abc import Iterable

from dragoman.engine.door import Door
from dragoman.engine.faults import Fault, UnknownSession
from dragoman.engine.info import SessionInfo


def is_unused(door: Door, info: SessionInfo) -> bool:
    """Whether nothing was ever said in it, it has no name, and nobody is there."""
    live = door.live(info.id)
    if info.turns or info.messages or info.title or info.parent or door.present(info.id):
        return False
    return live is None or not (live.busy or live.waiting)


async def drop_unused(door: Door, sessions: Iterable[str]) -> None:
    """Forget those of these sessions that were never used.

    The terminal brings one back under its id when it connects again.
    """
    for session_id in sessions:
        try:
            info = await door.info(session_id)
            if info.origin == "zeroclaw" and is_unused(door, info):
                await door.delete(session_id)
        except UnknownSession:
            continue
        except Fault as problem:  # the store is going away; lists leave it out all the same
            door.trouble("an unused session stays", problem, session=session_id)
