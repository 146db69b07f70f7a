"""Lines of the screen: what is drawn, and what is copied."""

import re
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size
from rich.console import Console
from rich.style import Style
from rich.text import Text

from dragoman.engine.visible import harmless

# Has no width and no shape: terminals do not agree on how to draw it.
_SHAPELESS = re.compile("[\r\u00ad\u200b\u200e\u200f\u2060-\u2065\ufeff\U000e0020-\U000e01ef]")
console = Console(width=10_000, legacy_windows=False, no_color=True)


class Row(NamedTuple):
    """One line. `copy` is its text without what is only decoration."""

    shown: Text
    copy: str
    joins: str | None = None  # goes on the line before, with this between them when copied


def plain(text: str, style: str = "") -> Row:
    return Row(Text(text, style, no_wrap=True), text)


BLANK = Row(Text(""), "")


def wrap(text: Text, width: int) -> list[Row]:
    """The text in lines of this width."""
    width = max(width, 4)
    if not text.spans and "\t" not in text.plain and _even(text.plain):
        return _wrap_plain(text.plain, width, text.style)
    rows: list[Row] = []
    for line in text.split("\n", allow_blank=True):
        if line.cell_len <= width:
            line.rstrip()
            rows.append(Row(line, line.plain))
        else:
            rows += _wrapped(line, width)
    return rows


def _even(text: str) -> bool:
    """Whether every character takes one column: text has few different ones."""
    return text.isascii() or all(map(_single, set(text)))


@lru_cache(4_096)
def _single(char: str) -> bool:
    return char == "\n" or get_character_cell_size(char) == 1


def _wrapped(line: Text, width: int) -> list[Row]:
    rows: list[Row] = []
    whole, end = line.plain, 0
    for part in line.wrap(console, width, no_wrap=False):
        part.rstrip()
        start = whole.find(part.plain, end)
        rows.append(Row(part, part.plain, whole[end:start] if rows else None))
        end = start + len(part.plain)
    return rows


def _wrap_plain(text: str, width: int, style: str | Style) -> list[Row]:
    """The same for text of one style: most of what is said, and far quicker."""
    rows: list[Row] = []
    for line in text.split("\n"):
        start, end = 0, len(line)
        gap: str | None = None
        while end - start > width:
            cut = line.rfind(" ", start, start + width + 1)
            stop = cut if cut > start else start + width
            part = line[start:stop].rstrip()
            rows.append(Row(Text(part, style, no_wrap=True), part, gap))
            done = start + len(part)
            start = stop + (cut > start)
            while start < end and line[start] == " ":
                start += 1
            gap = line[done:start]
        part = line[start:].rstrip()
        if part or start == 0:
            rows.append(Row(Text(part, style, no_wrap=True), part, gap))
    return rows


def beside(
    rows: list[Row], first: Text, rest: Text, copied: tuple[str, str] | None = None
) -> list[Row]:
    """The rows with something at their left; `copied` is what stands there in a copy."""
    found = []
    for at, row in enumerate(rows):
        mark = first if at == 0 else rest
        said = ("" if copied is None else copied[0] if at == 0 else copied[1]) + row.copy
        if row.shown.spans or row.shown.style or mark.spans or mark.style:
            shown = Text.assemble(mark, row.shown, no_wrap=True)
        else:  # nearly all of what is said; it is far quicker
            shown = Text(mark.plain + row.shown.plain, no_wrap=True)
        found.append(Row(shown, said if row.joins is None else row.copy, row.joins))
    return found


def cut(text: str, room: int) -> str:
    """The text in so many columns, with an ellipsis where something is left out."""
    if cell_len(text) <= room:
        return text
    text = text[: max(room, 0)]
    while text and cell_len(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def safe(text: str) -> str:
    """What a model or a tool wrote, without the power to steer the terminal."""
    if text.isprintable():
        return text
    return harmless(_SHAPELESS.sub("", text.replace("\t", "    ")))
