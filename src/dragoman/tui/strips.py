"""Lines as Textual takes them."""

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from .rows import console

_NO_STYLE = Style.null()


def strip(text: Text) -> Strip:
    """A line as the screen takes it: every part has a style, none is empty."""
    if not text.spans:  # Rich would leave the style of the whole line out
        style = console.get_style(text.style) if text.style else _NO_STYLE
        return Strip([Segment(text.plain, style)] if text.plain else [], text.cell_len)
    parts = [Segment(one.text, one.style or _NO_STYLE) for one in text.render(console) if one.text]
    return Strip(parts, text.cell_len)
