"""Lines as Textual takes them, and any number of them that are scrolled."""

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from .rows import Row, console

_NO_STYLE = Style.null()


def strip(text: Text) -> Strip:
    """A line as the screen takes it: every part has a style, none is empty."""
    if not text.spans:  # Rich would leave the style of the whole line out
        style = console.get_style(text.style) if text.style else _NO_STYLE
        return Strip([Segment(text.plain, style)] if text.plain else [], text.cell_len)
    parts = [Segment(one.text, one.style or _NO_STYLE) for one in text.render(console) if one.text]
    return Strip(parts, text.cell_len)


class Sheet(ScrollView, can_focus=False):
    """As high as its rows, as far as its style allows; only the visible ones are painted."""

    DEFAULT_CSS = "Sheet { height: auto; scrollbar-size-vertical: 1; overflow-x: hidden; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[Row] = []

    def put(self, rows: list[Row]) -> None:
        self._rows = rows
        self.virtual_size = Size(0, len(rows))
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows)

    def render_line(self, y: int) -> Strip:
        at = self.scroll_offset.y + y
        shown = strip(self._rows[at].shown) if at < len(self._rows) else Strip([])
        return shown.adjust_cell_length(self.size.width).apply_style(self.rich_style)
