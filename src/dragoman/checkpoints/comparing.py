"""What became of a file, for people to look at."""

import difflib
import stat

from dragoman.engine.ports.checkpoints import ChangedFile, Fate
from dragoman.engine.visible import many

from .database import NOTHING, Database, FileChange, State

_LINES = 20_000  # lines of a text that are compared
_SHOWN = 400_000  # characters of one diff


def fate_of(change: FileChange) -> Fate:
    if change.before == NOTHING:
        return "made"
    return "removed" if change.after == NOTHING else "changed"


def compared(db: Database, change: FileChange, name: str) -> ChangedFile | None:
    """One file's diff; None when it is as it was."""
    if change.before == change.after:
        return None
    fate = fate_of(change)
    old, new = _lines(db, change.before), _lines(db, change.after)
    if isinstance(old, str) or isinstance(new, str):
        return ChangedFile(name, fate, note=old if isinstance(old, str) else str(new))
    if len(old) + len(new) > _LINES:
        return ChangedFile(name, fate, note="Too many lines to compare.")
    rows = [
        row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n"
        for row in difflib.unified_diff(old, new)
    ][2:]
    added = sum(row.startswith("+") for row in rows)
    removed = sum(row.startswith("-") for row in rows)
    text = "".join(rows)
    note = ""
    if not rows:
        note = f"Permissions: {_mode(change.before)} became {_mode(change.after)}."
    elif len(text) > _SHOWN:
        note = f"Not shown: {many(len(text) - _SHOWN, 'more character')}."
        text = text[:_SHOWN].rpartition("\n")[0] + "\n"
    return ChangedFile(name, fate, text, added, removed, note)


def _mode(state: State) -> str:
    return oct(stat.S_IMODE(state.mode))[2:]


def _lines(db: Database, state: State) -> list[str] | str:
    """The lines of a file; a sentence when it has none to show."""
    if not state.mode:
        return []
    data = db.get(state.hash) if state.hash is not None else None
    if data is None:
        return "The content was not kept."
    if b"\0" in data[:8000]:
        return "Not a text."
    parts = data.decode("utf-8", "replace").split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
