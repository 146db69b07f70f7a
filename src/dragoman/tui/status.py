"""The line at the bottom: what is waited for, and what the session is."""

import os
import time

from rich.cells import cell_len
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from .rows import cut, safe
from .strips import strip

_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Status(Widget):
    """One row. Set the facts and call `refresh`."""

    DEFAULT_CSS = "Status { height: 1; width: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = "connecting"  # words, when there is no connection
        self.waits = ""  # what the turn waits for; empty: no turn runs
        self.began = 0.0  # when the turn began, by the wall clock
        self.asking = False
        self.put_off = False  # the keys go elsewhere than to the question
        self.notice = ""  # a word to the user, for a moment
        self.model = self.mode = self.folder = ""
        self.context = 0
        self.window = 0
        self.cost = 0.0
        self.inbox = 0
        self.others = 0
        self.below = False
        self.queued = 0
        self.keys = ""
        self._drawn: Text | None = None

    def show(self) -> None:
        """Draw it again if it would look different."""
        now = self.line(self.size.width)
        if self._drawn is None or now != self._drawn:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        self._drawn = self.line(self.size.width)
        return strip(self._drawn)

    def line(self, width: int) -> Text:
        """What is shown in so many columns: the left part first, then what fits."""
        left = self._left()
        rights = self._rights()
        room = width - left.cell_len - 2
        while rights and sum(cell_len(words) + 3 for _, words, _ in rights) - 3 > room:
            rights.remove(max(rights))  # the least important goes first
        right = Text()
        for at, (_, words, style) in enumerate(rights):
            if at:
                right.append(" · ", "dim")
            right.append(words, style)
        if left.cell_len > width:
            left.truncate(width, overflow="ellipsis")
            return left
        gap = Text(" " * max(width - left.cell_len - right.cell_len, 1))
        return Text.assemble(left, gap, right, no_wrap=True)

    def _left(self) -> Text:
        found = Text(no_wrap=True)
        if self.state:
            found.append(f"◌ {safe(self.state)}", "yellow")
        elif self.notice:
            found.append(safe(self.notice).replace("\n", " "), "bold")
        elif self.asking:
            found.append("? waits for your answer", "bold yellow")
            found.append(" (ctrl+n)" if self.put_off else "", "bold yellow")
        elif self.waits:
            spin = _SPIN[int(time.monotonic() * 4) % len(_SPIN)]
            found.append(f"{spin} ", "yellow")
            found.append(cut(safe(_waits(self.waits)), max(self.size.width // 2, 24)))
            found.append(f" {_span(max(time.time() - self.began, 0))}", "dim")
            if self.queued:
                found.append(f", {self.queued} queued", "dim")
            found.append(" · esc stops", "dim")
        else:
            found.append("● ", "green")
            found.append("ready")
        if self.below:
            found.append("  ↓ more below (ctrl+end)", "cyan")
        return found

    def _rights(self) -> list[tuple[int, str, str]]:
        """(how soon it may be left out, words, style), in the order of the screen."""
        found = []
        if self.inbox:
            words = f"▲ {self.inbox} {'waits' if self.inbox == 1 else 'wait'} (ctrl+n)"
            found.append((0, words, "bold yellow"))
        if self.others:
            found.append((5, f"+{self.others} here", "cyan"))
        if self.model:
            found.append((2, safe(self.model), ""))
        if self.mode:
            found.append((4, self.mode, "red" if self.mode == "full" else ""))
        if self.window:
            found.append((1, *self._gauge()))
        if self.cost:
            found.append((3, f"${self.cost:.4f}" if self.cost < 1 else f"${self.cost:.2f}", ""))
        if self.folder:
            found.append((6, _short(safe(self.folder)), "dim"))
        if self.keys:
            found.append((0, self.keys, "dim"))
        return found

    def _gauge(self) -> tuple[str, str]:
        share = min(self.context / self.window, 1.0)
        style = "red" if share > 0.85 else "yellow" if share > 0.6 else ""
        return f"{'▰' * round(share * 5):▱<5} {share:.0%}", style


def _waits(words: str) -> str:
    if words in ("thinking", "writing"):
        return words
    return f"waits for {words}"


def _span(seconds: float) -> str:
    whole = max(int(seconds), 0)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def _short(folder: str) -> str:
    home = os.path.expanduser("~")
    if folder == home or folder.startswith(home + os.sep):
        folder = "~" + folder[len(home) :]
    return folder if len(folder) <= 30 else f"…{folder[-29:]}"
