"""What all connections share: the door, the settings, and where sessions' paths point."""

import os
from itertools import count

import msgspec

from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.wire.link import Link

from .hear import PiHearer


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[dialects.pi]`"""

    agent: str = ""
    cwd: str = ""
    model: str = ""
    thinking: str = ""
    session: str = ""  # the path or id to begin with
    older: bool = False  # for clients before 0.60: whole messages in updates, old names of events


class Desk:
    """Made once per process."""

    def __init__(self, door: Door, settings: Settings | None = None) -> None:
        self.door = door
        self.settings = settings or Settings()
        self._count = count(1)

    def hearer(self, link: Link) -> PiHearer:
        return PiHearer(self, link)

    def who(self, link: Link) -> Who:
        return Who("pi", link.peer.label, id=f"pi-{next(self._count)}")

    # --- a session's handle is a path ---

    def path_of(self, session_id: str) -> str | None:
        """A stable path in a folder of ours; None when nothing is kept."""
        folder = self.door.facts.data_dir
        if not folder or not self.door.durable:
            return None
        return os.path.join(folder, "pi", f"{session_id}.jsonl")

    def id_of(self, path: str) -> str:
        """The session behind a path of ours; the name of any other file."""
        return os.path.basename(path).removesuffix(".jsonl")
