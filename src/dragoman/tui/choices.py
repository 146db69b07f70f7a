"""A short list to choose from, above the editor: files, commands, what was said before."""

from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from .rows import cut, safe
from .strips import strip

_ROWS = 8


class Choice(NamedTuple):
    value: str
    about: str = ""


class Choices(Widget):
    """The list. The editor keeps the focus and passes keys on."""

    DEFAULT_CSS = "Choices { height: auto; max-height: 8; width: 1fr; display: none; }"

    @dataclass
    class Picked(Message):
        value: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.found: list[Choice] = []
        self.at = 0
        self.mark = ""

    def put(self, found: list[Choice], mark: str = "") -> None:
        """Show these; none closes the list."""
        if not found and not self.found:
            return  # the usual key: nothing to lay out anew
        self.found, self.at, self.mark = found, 0, mark
        self.display = bool(found)
        self.styles.height = min(len(found), _ROWS)
        self.refresh()

    def move(self, by: int) -> None:
        self.at = (self.at + by) % max(len(self.found), 1)
        self.refresh()

    @property
    def chosen(self) -> str:
        return self.found[self.at].value if self.found else ""

    @property
    def _top(self) -> int:
        """The first that is shown, so that the chosen one is in sight."""
        return min(max(self.at - _ROWS + 1, 0), max(len(self.found) - _ROWS, 0))

    def render_line(self, y: int) -> Strip:
        at = self._top + y
        if at >= len(self.found):
            return strip(Text(""))
        choice, width = self.found[at], self.size.width
        value = cut(" ".join(safe(choice.value).split()), width - 4)
        text = Text(no_wrap=True)
        text.append("▸ " if at == self.at else "  ", "bold cyan")
        text.append(f"{self.mark}{value}", "bold" if at == self.at else "")
        if choice.about:
            gap = max(24 - len(value), 2)
            text.append(" " * gap + safe(choice.about), "dim")
        text.truncate(width, overflow="ellipsis")
        return strip(text)

    def on_click(self, event: events.Click) -> None:
        at = self._top + event.y
        if at < len(self.found):
            self.post_message(self.Picked(self.found[at].value))
