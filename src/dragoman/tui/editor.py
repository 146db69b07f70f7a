"""Where the user types: several lines, history, completion, attachments of what is pasted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from textual import events
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import TextArea

from dragoman.engine.visible import harmless

from .past import Past
from .vi import Vi

_LONG_PASTE = 2_000  # characters from which a paste becomes an attachment
_LONG_LINES = 20


def acts_of(bindings: Iterable[object]) -> dict[str, str]:
    """What keys do to a text: key -> action.

    Left to the app, which Textual asks last, it would be done after what is typed next.
    """
    known = [one for one in bindings if isinstance(one, Binding)]
    return {key: binding.action for binding in known for key in binding.key.split(",")}


_ACTS = {**acts_of(TextArea.BINDINGS), "ctrl+underscore": "undo"}  # ctrl+z is the shell's


class Editor(TextArea):
    """The prompt's editor. What a key means to the whole terminal is told by messages."""

    DEFAULT_CSS = """
    Editor, Editor:focus {
        height: auto; max-height: 12; min-height: 1; width: 1fr;
        border: none; padding: 0; background: transparent;
        scrollbar-size-vertical: 1;
        & .text-area--cursor-line { background: transparent; }
    }
    """

    @dataclass
    class Sent(Message):
        """Enter was pressed; `queued`: it is to wait for the end of the turn."""

        text: str
        queued: bool = False

    @dataclass
    class Pasted(Message):
        """Something was pasted that is better kept beside the text."""

        text: str

    @dataclass
    class Completing(Message):
        """The word at the cursor may be completed; empty: it may not."""

        mark: str
        word: str

    class ViChanged(Message):
        """The state of the vi keys is another."""

    class Emptied(Message):
        """Backspace in an empty editor."""

    def __init__(self, *, vi: bool = False, id: str | None = None) -> None:
        super().__init__(
            id=id, soft_wrap=True, tab_behavior="focus", show_line_numbers=False, compact=True,
            highlight_cursor_line=False,
        )  # fmt: skip
        self.cursor_blink = False
        self.past: Past | None = None
        self.vi = Vi() if vi else None
        self.choosing = False  # the list of completions is open
        # A key for the list: up, down, accept, enter, close. At once, before the next key is read.
        self.choose: Callable[[str], None] = lambda act: None
        self.catch_up: Callable[[], None] = lambda: None  # makes the list fit the text
        self.busy = False  # a turn runs
        self._given = ""  # text that was put here: nothing of it is to be completed
        self._styled: object = None  # the theme that has the colours of the style sheet

    # --- drawing ---

    def notify_style_update(self) -> None:
        self._styled = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """As a TextArea does, which reads its style sheet at every key: half of what one costs."""
        if self._styled is not self._theme:
            self._theme.apply_css(self)
            self._styled = self._theme
        return ScrollView.render_lines(self, crop)

    # --- keys ---

    async def _on_key(self, event: events.Key) -> None:
        key = event.key
        if self.vi is not None and self.vi.take(self, key, event.character):
            self.post_message(self.ViChanged())
        elif self._special(key):
            pass  # done
        elif key in _ACTS:
            await self.run_action(_ACTS[key])
        else:
            await super()._on_key(event)
            return
        event.prevent_default()
        event.stop()

    def _special(self, key: str) -> bool:
        if self.choosing and key in ("up", "down", "tab", "enter", "escape"):
            self.catch_up()
        if self.choosing and key in ("up", "down", "tab", "enter", "escape"):
            act = {"tab": "accept", "escape": "close"}.get(key, key)
            self.choose(act)
            return True
        if key == "enter":
            self._enter()
            return True
        if key in ("shift+enter", "alt+enter", "ctrl+j", "ctrl+enter"):
            self._type("\n")
            return True
        if key == "tab":
            if self.busy and self.text.strip():
                self.send(queued=True)
            return True
        if key == "up" and self.cursor_at_first_line and self.past is not None:
            return self._walk(self.past.older(self.text))
        if key == "down" and self.cursor_at_last_line and self.past is not None:
            return self._walk(self.past.newer())
        if key == "backspace" and not self.text:
            self.post_message(self.Emptied())
            return True
        return False

    def _type(self, text: str) -> None:
        start, end = self.selection
        self.replace(text, start, end, maintain_selection_offset=False)

    def _enter(self) -> None:
        row, column = self.cursor_location
        line = self.document.get_line(row)
        if column == len(line) and line.endswith("\\"):  # as in a shell: the line goes on
            self.replace("\n", (row, column - 1), (row, column), maintain_selection_offset=False)
            return
        self.send()

    def send(self, queued: bool = False) -> None:
        """Let go of the text at once: what is typed next belongs to the next."""
        text = self.text
        self.put("")
        self.post_message(self.Sent(text, queued))

    def _walk(self, text: str | None) -> bool:
        if text is None:
            return False
        self.put(text)
        return True

    def put(self, text: str) -> None:
        """Replace all text; the cursor goes to its end."""
        self._given = text = _written(text)
        self.load_text(text)
        self.move_cursor(self.document.end)

    # --- pasting ---

    async def _on_paste(self, event: events.Paste) -> None:
        text = _written(event.text)
        event.prevent_default()
        event.stop()
        if len(text) > _LONG_PASTE or text.count("\n") > _LONG_LINES or _is_path(text):
            self.post_message(self.Pasted(text))
        else:
            self._type(text)

    # --- completing ---

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self.text != self._given:
            self._given = ""
        self.post_message(self.Completing(*self.word()))

    def word(self) -> tuple[str, str]:
        """The mark (`@`, `/`) and the letters at the cursor that may be completed."""
        if self._given and self.text == self._given:
            return "", ""
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        if row == 0 and before.startswith("/") and " " not in before:
            return "/", before[1:]
        start = max(before.rfind(" "), before.rfind("\t")) + 1
        if before[start : start + 1] == "@":
            return "@", before[start + 1 :]
        return "", ""

    def complete(self, mark: str, word: str, chosen: str) -> None:
        """Put the chosen word in the place of what was typed."""
        row, column = self.cursor_location
        begin = (row, column - len(word) - len(mark))
        chosen = _written(chosen)
        shown = f'@"{chosen}"' if mark == "@" and " " in chosen else f"{mark}{chosen}"
        self.replace(f"{shown} ", begin, (row, column), maintain_selection_offset=False)


def _written(text: str) -> str:
    """Text from elsewhere as one could have typed it: what steers a terminal is left out."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return harmless(text).replace("\N{REPLACEMENT CHARACTER}", "")


def _is_path(text: str) -> bool:
    """A dropped file comes as its path."""
    import os

    word = text.strip().strip("'\"")
    return (
        "\n" not in word
        and word.startswith(("/", "~", "file://"))
        and os.path.isfile(os.path.expanduser(word.removeprefix("file://")))
    )
