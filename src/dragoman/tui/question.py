"""A question to the user: all that is asked about, and one key per answer.

Nothing can be allowed before its end was on the screen, and an answer for always names its scope.
A key that was on its way when a question came up does not answer it: for a moment none does.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from dragoman.engine import shown
from dragoman.engine.ask import Ask, Lasts, Scope
from dragoman.engine.visible import many, on_a_line, visible

from .rows import Row, beside, wrap
from .strips import Sheet

_RISKS = {"high": "bold red", "medium": "yellow", "low": "green"}
_LONGEST_MENU = 9  # answers by one digit
_LOOK = 0.4  # seconds without a key before one counts as an answer
_MOVES = ("up", "down", "pageup", "pagedown", "space")


class Question(Widget, can_focus=True):
    """Shows one question. `Answered` carries what was chosen; words are typed elsewhere."""

    DEFAULT_CSS = """
    Question {
        height: auto; max-height: 70%; width: 1fr; display: none; padding: 0 1;
        border: round ansi_yellow;
        & Static { height: auto; }
    }
    Question:focus { border: heavy ansi_yellow; }
    """

    @dataclass
    class Answered(Message):
        ask: Ask
        verdict: str
        text: str = ""
        scope: str = ""
        lasts: str = ""

    @dataclass
    class Words(Message):
        """The user wants to say something with the answer."""

        ask: Ask

    class KeysMoved(Message):
        """The keys go to the question now, or no longer."""

    class Left(Message):
        """The user goes back to the editor without an answer."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.ask: Ask | None = None
        self.where = ""
        self.waiting = 1
        self._choosing = False  # the menu of scopes is open
        self._tight = False  # and takes the place of the question, which there is no room for
        self._listens = False  # a key answers
        self._soon: Timer | None = None
        self._sent = False  # an answer is on its way
        # A letter of somebody who was about to write a prompt when the question came up.
        self.typed: Callable[[str], None] | None = None
        self.spelled: Callable[[events.Key], None] = lambda event: None  # a key of such words
        self._worded = False  # they have begun, and the editor does not have the focus yet
        self._head = Static()
        self._keys = Static()
        self._scroll = Sheet(id="asked")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._scroll
        yield self._keys

    def put(self, ask: Ask | None, where: str = "", waiting: int = 1) -> None:
        """Show a question, or none. `where` names another session."""
        same = ask is not None and self.ask is not None and ask.id == self.ask.id
        if same and waiting == self.waiting:
            return
        self.ask, self.where, self.waiting = ask, where, waiting
        self.display = ask is not None
        if not same:
            self._choosing = self._sent = False
        if ask is not None:
            if not same:
                self._scroll.scroll_home(animate=False)
                self._hush()
            self._draw()

    def again(self) -> None:
        """The answer did not arrive: another one can be given."""
        self._sent = False
        self._hush()

    def _hush(self) -> None:
        """No key answers for a moment: the question came up, or a key came too early."""
        self._listens = False
        if self._soon is not None:
            self._soon.stop()
        self._soon = self.set_timer(_LOOK, self._listen)

    def _listen(self) -> None:
        self._listens = True
        self._draw_keys()

    def on_focus(self) -> None:
        self.post_message(self.KeysMoved())

    def on_blur(self) -> None:
        self._worded = False
        self.post_message(self.KeysMoved())

    def on_resize(self, event: events.Resize) -> None:
        if self.ask is not None:
            self._draw()

    def _draw(self) -> None:
        ask = self.ask
        assert ask is not None
        size = self.app.size
        width = max((self.size.width or size.width) - 4, 20)
        head = Text(no_wrap=False)
        head.append("? ", "bold yellow")
        head.append(visible(ask.title), "bold")
        if self.where:
            head.append(f"  in: {on_a_line(self.where)}", "cyan")
        if ask.risk:
            head.append(f"  {ask.risk} risk", _RISKS.get(ask.risk, "dim"))
        if self.waiting > 1:
            head.append(f"  (1 of {self.waiting})", "dim")
        self._head.update(head)
        rows, below = ask_rows(ask, width), 1
        room = size.height * 7 // 10 - 5
        menu = wrap(self._menu(ask), width) if self._choosing else []
        tight, self._tight = self._tight, bool(menu) and len(menu) > room - 3
        if self._tight:
            rows = menu
            if not tight:
                self._scroll.scroll_home(animate=False, immediate=True)
        elif menu:
            below = len(menu)
        self._scroll.styles.max_height = max(room - below, 3)
        self._scroll.put(rows)
        self._keys.update(self._lines_below(ask, width))
        self.call_after_refresh(self._draw_keys)

    def _draw_keys(self) -> None:
        if self.ask is not None:
            self._keys.update(self._lines_below(self.ask, self.size.width))

    def _lines_below(self, ask: Ask, width: int) -> Text:
        if not self._choosing:
            return self._choices(ask, width)
        return self._read_on() if self._tight else self._menu(ask)

    def _read_on(self) -> Text:
        """How much is below, and how to get there; nothing at the end."""
        found = Text()
        if not self.read:
            left = self._scroll.max_scroll_y - self._scroll.scroll_offset.y
            found.append(f"↓ {many(left, 'more line')}, read on: ", "bold yellow")
            _key(found, "space", "next page")
        return found

    @property
    def read(self) -> bool:
        """Whether the end of the question was on the screen."""
        return self._scroll.scroll_offset.y >= self._scroll.max_scroll_y

    def _choices(self, ask: Ask, width: int) -> Text:
        if self._sent:
            return Text("answered …", "dim")
        if not self._listens:
            return Text("… in a moment a key answers", "dim")
        found = self._read_on()
        if ask.kind == "question":
            for number, choice in enumerate(ask.choices, 1):
                _key(found, str(number), on_a_line(choice))
            _key(found, "w", "write an answer")
        else:
            if self.read:
                _key(found, "y", "yes")
                if ask.scopes and not ask.firm:
                    _key(found, "a", "always …")
            _key(found, "n", "no")
            _key(found, "w", "no, and say why")
        _key(found, "esc", "later")
        return found

    def _menu(self, ask: Ask) -> Text:
        found = Text("always:", "bold")
        for number, (words, _, _) in enumerate(self._options(ask), 1):
            found.append(f"\n {number} ", "reverse")
            found.append(f" {words}")
        found.append("\n esc ", "reverse")
        found.append(" back")
        return found

    def _options(self, ask: Ask) -> list[tuple[str, Scope, Lasts]]:
        return shown.options(ask)[:_LONGEST_MENU]

    # --- keys ---

    def on_key(self, event: events.Key) -> None:
        ask = self.ask
        if ask is None:
            return
        key = event.character or event.key
        if self._worded:  # keys that came together with the one that began the words
            self.spelled(event)
        elif event.key in _MOVES and (self._tight or not self._choosing):
            self._move(event.key)
        elif event.key == "escape" and not self._choosing:
            self.post_message(self.Left())
        elif not self._listens:
            self._too_early(event)
        elif self._choosing:
            self._choose(ask, key, event.key)
        elif key == "w":
            self._worded = True
            self.post_message(self.Words(ask))
        elif ask.kind == "question" and key.isdecimal() and 0 < int(key) <= len(ask.choices):
            self._answer(self.Answered(ask, "answer", ask.choices[int(key) - 1]))
        elif ask.kind == "tool" and key == "n":
            self._answer(self.Answered(ask, "deny"))
        elif ask.kind == "tool" and key == "y" and self.read:
            self._answer(self.Answered(ask, "allow"))
        elif ask.kind == "tool" and key == "a" and self.read and ask.scopes and not ask.firm:
            self._choosing = True
            self._draw()
        else:
            return
        event.stop()

    def _answer(self, answered: "Question.Answered") -> None:
        self._sent, self._listens = True, False
        self._draw_keys()
        self.post_message(answered)

    def _too_early(self, event: events.Key) -> None:
        """The key was meant for what was here before: a prompt, or the question before this one."""
        if self._sent:
            return
        if self.typed is not None and event.is_printable and event.character:
            self.typed(event.character)
        else:
            self._hush()

    def _move(self, key: str) -> None:
        page = max(self._scroll.size.height - 1, 1)
        by = {"up": -1, "down": 1, "pageup": -page, "end": self._scroll.max_scroll_y}.get(key, page)
        self._scroll.scroll_relative(y=by, animate=False, immediate=True)
        self._draw_keys()

    def page(self, pages: int) -> None:
        self._move("pageup" if pages < 0 else "pagedown")

    def _choose(self, ask: Ask, key: str, name: str) -> None:
        found = self._options(ask)
        if key.isdecimal() and 0 < int(key) <= len(found):
            _, scope, lasts = found[int(key) - 1]
            self._answer(self.Answered(ask, "allow_always", scope=scope.id, lasts=lasts))
        elif name == "escape":
            self._choosing = False
            self._draw()
            self.call_after_refresh(self._move, "end")  # its end was read before


def _key(text: Text, key: str, words: str) -> None:
    if text:
        text.append("   ")
    text.append(f" {key} ", "reverse")
    text.append(f" {words}")


def ask_rows(ask: Ask, width: int) -> list[Row]:
    """All that is asked about: the whole command, the real difference, every argument."""
    found: list[Row] = []
    for kind, label, text in shown.parts(ask):
        if kind == "diff":
            found += wrap(Text(label, "bold"), width)
            for line in text.split("\n"):
                style = {"+": "green", "-": "red"}.get(line[:1], "")
                found += wrap(Text(line.expandtabs(4), style), width)
        elif kind == "command":
            body = wrap(Text(text.expandtabs(4), "bold"), width - 2)
            found += beside(body, Text("$ ", "cyan"), Text("  "))
        elif kind == "note":
            found += wrap(Text(f"{label}: {text}", "dim"), width)
        else:
            said = Text.assemble((f"{label}: " if label else "", "dim"), text.expandtabs(4))
            found += wrap(said, width)
    return found
