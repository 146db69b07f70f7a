"""One session as a line of the board."""

import os
import time

from rich.text import Text

from dragoman.client.answers import BoardRow
from dragoman.engine.events import ACTIVE

from .rows import cut, safe

_STATES = {  # mark, style, words
    "waiting_input": ("?", "bold yellow", "asks you"),
    "running": ("◐", "green", "works"),
    "starting": ("◐", "green", "works"),
    "interrupting": ("◐", "yellow", "stops"),
    "failed": ("✗", "red", "failed"),
    "interrupted": ("■", "yellow", "stopped"),
}
_RESTS = ("·", "dim", "rests")


def needs(row: BoardRow) -> bool:
    """Whether somebody must do something."""
    return bool(row.asks) or row.session.status in ("waiting_input", "failed")


def order(row: BoardRow) -> tuple[int, int]:
    """Those that wait first, then those at work, then the newest."""
    rank = 0 if row.asks else 1 if row.session.status in ACTIVE else 2
    return rank, -row.session.updated_at


def _state(row: BoardRow) -> tuple[str, str, str]:
    """A session that rests after a turn that failed has failed, as `dragoman sessions` says."""
    info = row.session
    return _STATES.get("failed" if info.error and info.status == "idle" else info.status, _RESTS)


def doing(row: BoardRow) -> str:
    if row.asks:
        return "asks you"
    words = _state(row)[2]
    return f"{words}, {row.queued} queued" if row.queued else words


def who(row: BoardRow) -> str:
    """Who is attached, by which protocol; else who began it."""
    names: dict[str, int] = {}
    for one in row.present:
        name = f"{one.name} ({one.dialect})" if one.name else one.dialect
        names[name] = names.get(name, 0) + 1
    if not names:
        return f"from {row.session.origin}" if row.session.origin else ""
    return ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in names.items())


def _sizes(width: int) -> list[tuple[str, int]]:
    """The columns that fit, and their widths; the title takes what is left."""
    found = [("doing", 12), ("changed", 8)]
    if width >= 76:
        found.insert(1, ("who", 20 if width < 120 else 30))
    if width >= 90:
        found.insert(-1, ("cost", 9))
    if width >= 110:
        found.insert(-1, ("folder", 20 if width < 160 else 34))
    if width >= 130:
        found.insert(-1, ("model", 24))
    return found


def columns(width: int) -> Text:
    sizes = _sizes(width)
    room = width - 3 - sum(size + 2 for _, size in sizes)
    head = Text("   " + "session".ljust(room), "dim", no_wrap=True)
    for name, size in sizes:
        head.append("  " + name.ljust(size))
    return head


def line(row: BoardRow, width: int, *, chosen: bool, here: bool) -> Text:
    info = row.session
    mark, style, _ = _STATES["waiting_input"] if row.asks else _state(row)
    sizes = _sizes(width)
    room = width - 3 - sum(size + 2 for _, size in sizes)
    said = info.title or info.query.partition("\n\n<context name=")[0]
    title = " ".join(safe(said or "(nothing was said yet)").split())
    title = f"{title} (here)" if here else title
    cells = {
        "doing": doing(row),
        "who": who(row),
        "cost": f"${info.cost:.4f}" if info.cost else "",
        "folder": _tail(info.cwd),
        "model": info.model,
        "changed": ago(info.updated_at),
    }
    found = Text(no_wrap=True)
    found.append("▸" if chosen else " ", "bold cyan")
    found.append(f"{mark} ", style)
    found.append(_fill(title, room), "bold" if chosen else "")
    for name, size in sizes:
        found.append("  ")
        found.append(_fill(safe(cells[name]), size), style if name == "doing" else "dim")
    return found


def _fill(text: str, room: int) -> str:
    from rich.cells import cell_len

    text = cut(text, room)
    return text + " " * max(room - cell_len(text), 0)


def _tail(folder: str) -> str:
    home = os.path.expanduser("~")
    if folder.startswith(home + os.sep):
        folder = "~" + folder[len(home) :]
    return folder if len(folder) <= 34 else f"…{folder[-33:]}"


def ago(ms: int) -> str:
    seconds = max(int(time.time() - ms / 1000), 0)
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word}"
    return "now" if seconds < 10 else f"{seconds} s"
