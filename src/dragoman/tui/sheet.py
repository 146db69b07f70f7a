"""Rows that are scrolled: any number of them, of which only the visible are painted."""

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from .rows import Row
from .strips import strip


class Sheet(ScrollView, can_focus=False):
    """As high as its rows, as far as its style allows."""

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
