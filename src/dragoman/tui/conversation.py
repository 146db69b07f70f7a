"""The conversation on the screen: any number of pieces, of which only the visible are drawn.

A widget that scrolls by itself. Heights of pieces that were never seen are guesses; when one is
drawn, what the reader looks at stays where it is.
"""

from bisect import bisect_right
from collections import OrderedDict
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from . import paint
from .piece import Piece
from .rows import Row
from .story import Story
from .strips import strip as strip_of

_DRAWN = 400  # pieces whose rows are held
_WHEEL = 3
_TRACK = Style.parse("dim")
_NOTHING = Style.null()


class Drawn(NamedTuple):
    """The rows of a piece, and how they are painted: made once, used in every frame.

    The piece is held, so that no other one can have its `id` meanwhile. A strip is known by its
    row within the piece, with the row of the whole at which it was painted: pieces move when the
    height of one above them becomes known, or older ones are read.
    """

    piece: Piece
    stamp: int
    width: int
    rows: list[Row]
    strips: dict[int, tuple[int, Strip]]


class Conversation(Widget, can_focus=False):
    """Shows a story. `follow` says whether the end stays in view."""

    ALLOW_SELECT = True
    DEFAULT_CSS = "Conversation { height: 1fr; width: 1fr; }"

    class NeedsOlder(Message):
        """The reader is near the beginning of what was read."""

    class Scrolled(Message):
        """The reader went away from the end, or came back."""

    def __init__(self, story: Story, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.story = story
        self.look = paint.Look()
        self.top = 0  # the row at the top of the screen
        self.follow = True
        self.welcome: list[Row] = []
        self._tops = [0]  # where each piece begins; the last is the end of all
        self._true: list[bool] = []  # the height is known, not guessed
        self._drawn: OrderedDict[int, Drawn] = OrderedDict()
        self._dragging = False
        self._width = 10  # columns for text; asking for the size in every row would be dear
        self._across = 11

    # --- what is shown ---

    def show(self, story: Story) -> None:
        """Another story, from its end."""
        self.story = story
        self._drawn.clear()
        self.look.open_calls.clear()
        self.follow = True
        self._restart()

    def update_story(self) -> bool:
        """Take in what has changed; returns whether anything had."""
        self.story.gather()
        dirty = self.story.dirty
        if dirty is None:
            return False
        self.story.dirty = None
        before, place = self._shown_of(dirty), (self.top, self._tops[dirty])
        self._measure(dirty)
        self._settle(paint_all=False)
        first, top = 0, self.top
        if (top, self._tops[dirty]) == place and dirty < len(self._true):
            first = max(self._tops[dirty] + _same(before, self._rows(dirty).rows) - top, 0)
        height, width = self.size.height, self.size.width
        if first < height:
            self.refresh(Region(0, first, width, height - first))
        return True

    def _shown_of(self, at: int) -> list[Row]:
        """What stands on the screen of a piece that has changed; nothing where that is not known.

        When something beside was drawn since the change, the new rows are held already, but only
        the lines of that were written to the screen.
        """
        if at >= len(self._true) or at >= len(self.story.pieces):
            return []
        piece = self.story.pieces[at]
        known = self._drawn.get(id(piece))
        if known is None or known.width != self._width or known.stamp == piece.stamp:
            return []
        return known.rows

    def prepended(self, count: int) -> None:
        """So many pieces were put before all others."""
        width = self._width
        heights = [paint.estimate(piece, width) for piece in self.story.pieces[:count]]
        shift = sum(heights)
        tops = [0]
        for height in heights:
            tops.append(tops[-1] + height)
        self._tops = [*tops[:-1], *(top + shift for top in self._tops)]
        self._true[:0] = [False] * count
        self.top += shift
        self._settle()

    def redraw(self) -> None:
        """Everything may look different now; the reader's place is kept."""
        at, within = self._place()
        self._drawn.clear()
        self._restart()
        if not self.follow and at < len(self._true):
            self.top = self._tops[at] + within
            self._settle()

    def toggle(self, piece: Piece) -> None:
        """Open or close one card."""
        self.look.open_calls ^= {id(piece)}
        self._drawn.pop(id(piece), None)
        self._measure(self.story.pieces.index(piece))
        self._settle()

    def text(self) -> str:
        """All of it as text, for copies and for tests."""
        found = [row.copy for at in range(len(self._true)) for row in self._rows(at).rows]
        return "\n".join(found)

    # --- heights ---

    @property
    def total(self) -> int:
        return self._tops[-1]

    def _restart(self) -> None:
        self._tops, self._true = [0], []
        self.story.dirty = None
        self._measure(0)
        self._settle()

    def _measure(self, start: int) -> None:
        """Guess the heights from a piece on."""
        width = self._width
        del self._tops[start + 1 :], self._true[start:]
        tops = self._tops
        for piece in self.story.pieces[start:]:
            known = self._drawn.get(id(piece))
            if known is not None and known.stamp == piece.stamp and known.width == width:
                tops.append(tops[-1] + len(known.rows))
                self._true.append(True)
            else:
                tops.append(tops[-1] + paint.estimate(piece, width))
                self._true.append(False)

    def _draw(self, at: int) -> int:
        """Know the height of a piece; returns by how much the guess was wrong."""
        if self._true[at]:
            return 0
        change = len(self._rows(at).rows) - (self._tops[at + 1] - self._tops[at])
        self._true[at] = True
        if change:
            self._tops[at + 1 :] = [top + change for top in self._tops[at + 1 :]]
        return change

    def _rows(self, at: int) -> Drawn:
        piece = self.story.pieces[at]
        key = id(piece)
        found = self._drawn.get(key)
        if found is not None and found.stamp == piece.stamp and found.width == self._width:
            return found
        rows = paint.rows(piece, self._width, self.look)
        strips: dict[int, tuple[int, Strip]] = {}
        if found is not None and found.width == self._width:  # it grew: what stands stays painted
            last = _same(found.rows, rows)
            strips = {within: known for within, known in found.strips.items() if within < last}
        found = self._drawn[key] = Drawn(piece, piece.stamp, self._width, rows, strips)
        self._drawn.move_to_end(key)
        while len(self._drawn) > _DRAWN:
            self._drawn.popitem(last=False)
        return found

    def _place(self) -> tuple[int, int]:
        at = max(bisect_right(self._tops, self.top) - 1, 0)
        return at, self.top - self._tops[min(at, len(self._tops) - 1)]

    def _first(self) -> int:
        """The piece at the top of the screen; there must be one."""
        return min(max(bisect_right(self._tops, self.top) - 1, 0), len(self._true) - 1)

    def _settle(self, *, paint_all: bool = True) -> None:
        """Draw what is in view, so that its height is true."""
        height = self.size.height
        count = len(self._true)
        if not height:
            return
        if self.follow:
            room, at = height, count - 1
            while at >= 0 and room > 0:
                self._draw(at)
                room -= self._tops[at + 1] - self._tops[at]
                at -= 1
            self.top = max(self.total - height, 0)
        elif count:
            while not self._settled(height):
                pass  # another piece came into view
        if paint_all:
            self.refresh()
        if self.top < height and count:
            self.post_message(self.NeedsOlder())

    def _settled(self, height: int) -> bool:
        """Draw from the top of the screen on; False when that has moved the top."""
        first = self._first()
        if not self._true[first]:  # it came in from above: its end stays where it is
            self.top = max(self.top + self._draw(first), 0)
            return False
        at = first + 1
        while at < len(self._true) and self._tops[at] < self.top + height:
            self._draw(at)
            at += 1
        top, self.top = self.top, max(min(self.top, self.total - height), 0)
        return self.top == top

    # --- scrolling ---

    def scroll_rows(self, rows: int) -> None:
        """Up (negative) or down."""
        self._draw_above(-rows)
        last = max(self.total - self.size.height, 0)
        self.top = max(min(self.top + rows, last), 0)
        self._set_follow(False)
        self._settle()
        if self.top >= max(self.total - self.size.height, 0):
            self._set_follow(True)

    def _draw_above(self, rows: int) -> None:
        """Know so many rows above the top of the screen, so that no guess is scrolled over."""
        if not self._true or rows <= 0:
            return
        at = self._first()
        while at > 0 and self._tops[at] > self.top - rows:
            at -= 1
            self.top += self._draw(at)

    def scroll_page(self, pages: float) -> None:
        self.scroll_rows(int(pages * max(self.size.height - 2, 1)))

    def to_end(self) -> None:
        self._set_follow(True)
        self._settle()

    def to_start(self) -> None:
        self._set_follow(False)
        if self._true:
            self._draw(0)
        self.top = 0
        self._settle()

    def _set_follow(self, follow: bool) -> None:
        if follow != self.follow:
            self.follow = follow
            self.post_message(self.Scrolled())

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-_WHEEL)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(_WHEEL)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.x >= self.size.width - 1 and self.total > self.size.height:
            event.stop()
            self._dragging = True
            self.capture_mouse()
            self._drag(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            event.stop()
            self._drag(event.y)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """A click on the first row of a card opens or closes it."""
        if event.x >= self.size.width - 1 or self.screen.get_selected_text():
            return
        row = self.top + event.y
        at = bisect_right(self._tops, row) - 1
        if 0 <= at < len(self._true):
            piece = self.story.pieces[at]
            if piece.kind in ("call", "shell") and row - self._tops[at] <= 1:
                self.toggle(piece)
            elif piece.kind == "thought":
                self.look.open_thoughts = not self.look.open_thoughts
                self.redraw()

    def _drag(self, y: int) -> None:
        height = max(self.size.height - 1, 1)
        last = max(self.total - self.size.height, 0)
        self._set_follow(False)
        self.top = min(max(round(last * y / height), 0), last)
        self._settle()
        if y >= height:
            self.to_end()

    def on_resize(self, event: events.Resize) -> None:
        self._across = event.size.width
        self._width = max(self._across - 1, 10)
        self.redraw()

    # --- drawing ---

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows as they are: there is no border or padding to be put around them."""
        selection = self.text_selection  # asked once: it is looked for in all of the screen
        strips = [self._line(y, selection) for y in crop.line_range]
        if crop.column_span != (0, self._across):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        return self._line(y, self.text_selection)

    def _line(self, y: int, selection: Selection | None) -> Strip:
        row = self.top + y
        strip = (
            self._strip(row, selection) if row < self.total else self._greeting(row - self.total)
        )
        if self.follow and not self._dragging:
            return strip
        width = self._across
        return Strip([*strip.crop(0, width - 1), self._bar(y)], width)

    def _greeting(self, y: int) -> Strip:
        """A line of the welcome: below what the terminal itself said before anything happened."""
        if y < len(self.welcome) and all(map(_is_word, self.story.pieces)):
            return self._painted(strip_of(self.welcome[y].shown))
        return Strip.blank(self._across, _NOTHING)

    def _painted(self, strip: Strip) -> Strip:
        strip = strip.adjust_cell_length(self._across)
        for filter in self.get_line_filters():
            strip = strip.apply_filter(filter, self.background_colors[1])
        return strip

    def _strip(self, row: int, selection: Selection | None) -> Strip:
        at = bisect_right(self._tops, row) - 1
        drawn = self._rows(at)
        within = row - self._tops[at]
        if within >= len(drawn.rows):
            return Strip.blank(self._across, _NOTHING)
        if selection is not None and (span := selection.get_span(row)) is not None:
            marked = self._marked(drawn.rows[within].shown, span)
            return self._painted(marked).apply_offsets(0, row)
        known = drawn.strips.get(within)
        if known is None or known[0] != row:
            strip = self._painted(strip_of(drawn.rows[within].shown)).apply_offsets(0, row)
            known = drawn.strips[within] = (row, strip)
        return known[1]

    def _marked(self, text: Text, span: tuple[int, int]) -> Strip:
        text = text.copy()
        start, end = span
        text.stylize("reverse", start, len(text) if end == -1 else end)
        return strip_of(text)

    def _bar(self, y: int) -> Segment:
        height, total = self.size.height, self.total
        if total <= height or (self.follow and not self._dragging):
            return Segment(" ", _TRACK)
        size = max(1, height * height // total)
        start = round((height - size) * self.top / max(total - height, 1))
        return Segment("▐" if start <= y < start + size else " ", _TRACK)

    # --- copying ---

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What was selected, without gutters, and with wrapped lines whole."""
        start = selection.start.y if selection.start is not None else 0
        end = selection.end.y if selection.end is not None else self.total - 1
        found: list[str] = []
        for row in range(max(start, 0), min(end + 1, self.total)):
            at = bisect_right(self._tops, row) - 1
            rows = self._rows(at).rows
            within = row - self._tops[at]
            if within >= len(rows):
                continue
            span = selection.get_span(row)
            text = _part(rows[within], span) if span is not None else ""
            joins = rows[within].joins
            if joins is not None and found:
                found[-1] = f"{found[-1]}{joins}{text}" if text else found[-1]
            else:
                found.append(text)
        return "\n".join(found).strip("\n"), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


def _is_word(piece: Piece) -> bool:
    """Whether it is a line of the terminal's own, of which a newcomer learns nothing to type."""
    return piece.kind == "note" and "\n" not in piece.text


def _same(old: list[Row], new: list[Row]) -> int:
    """How many rows at the beginning are the same."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one.copy != other.copy or one.shown != other.shown:
            break
        count += 1
    return count


def _part(row: Row, span: tuple[int, int]) -> str:
    start, end = span
    shown = row.shown.plain
    if end == -1 or end >= len(shown):
        if start <= paint.GUTTER:
            return row.copy
        return shown[start:]
    if start <= paint.GUTTER:
        gap = len(shown) - len(row.copy) if shown.endswith(row.copy) else paint.GUTTER
        return shown[min(gap, end) : end]
    return shown[start:end]
