"""What was in files before a turn changed them, and the way back."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from ..info import SessionInfo
from .tools import ToolEnv

Fate = Literal["made", "changed", "removed"]


class TouchedFile(msgspec.Struct, frozen=True, gc=False):
    """One file that a turn touched. `path` is relative to the session's directory inside of it."""

    path: str
    fate: Fate


class Checkpoint(msgspec.Struct, frozen=True):
    """What one turn changed. `note` says what could not be kept."""

    turn: str
    at: int  # ms
    files: tuple[TouchedFile, ...]
    undone: bool = False
    note: str = ""


class ChangedFile(msgspec.Struct, frozen=True):
    """One file as turns changed it: a unified diff, or a note why there is none to show."""

    path: str
    fate: Fate
    diff: str = ""
    added: int = 0
    removed: int = 0
    note: str = ""


class Restored(msgspec.Struct, frozen=True):
    """What an undo or redo did: the turns, newest first, and the files as they are now."""

    turns: tuple[str, ...]
    files: tuple[TouchedFile, ...]
    note: str = ""


class Checkpoints(Protocol):
    """Keeps what calls change, turn by turn. `paths` are None when nobody can tell them."""

    async def before(
        self, session: SessionInfo, turn: str, paths: Sequence[str] | None
    ) -> None: ...

    async def after(self, session: SessionInfo, turn: str, paths: Sequence[str] | None) -> None: ...

    async def listed(self, session: SessionInfo) -> Sequence[Checkpoint]:
        """The turns that changed something, oldest first."""
        ...

    async def changed(self, session: SessionInfo, turn: str = "") -> Sequence[ChangedFile]:
        """The files as all turns that are not undone changed them, or as one turn did."""
        ...

    async def undo(self, session: SessionInfo, turn: str = "") -> Restored:
        """Back to before the last turn that changed something, or before this one.

        Raises BadInput when there is none, Changed when somebody else changed a file since.
        """
        ...

    async def redo(self, session: SessionInfo) -> Restored:
        """Take the last undo back. Raises BadInput, Changed."""
        ...

    async def forget(self, session_id: str) -> None:
        """The session is deleted."""
        ...


@runtime_checkable
class Touching(Protocol):
    """A tool that knows which files a call changes; none: it changes no files at all."""

    def touches(self, args: dict[str, Any], env: ToolEnv) -> Sequence[str]:
        """Canonical paths. Raises what `run` would raise."""
        ...
