"""A question to the user: all that is asked about, and one key per answer."""

import os
import time
from typing import Any

from rich.console import Group
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from dragoman.engine.content import Diff
from dragoman.engine.events import Ask

from . import paint, prose
from .rows import Row, visible, wrap

_RISKS = {"high": "bold red", "medium": "yellow", "low": "green"}


class Question(Widget, can_focus=True):
    """Shows one question. `Answered` carries what was chosen; words are typed elsewhere."""

    DEFAULT_CSS = """
    Question {
        height: auto; max-height: 70%; width: 1fr; display: none; padding: 0 1;
        border: round ansi_yellow;
        & #asked { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
        & Static { height: auto; }
    }
    Question:focus { border: heavy ansi_yellow; }
    """

    class Answered(Message):
        def __init__(self, ask: Ask, verdict: str, text: str = "", scope: Any = None) -> None:
            super().__init__()
            self.ask = ask
            self.verdict = verdict
            self.text = text
            self.scope = scope

    class Words(Message):
        """The user wants to say something with the answer."""

        def __init__(self, ask: Ask) -> None:
            super().__init__()
            self.ask = ask

    class Left(Message):
        """The user goes back to the editor without an answer."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.ask: Ask | None = None
        self.cwd = ""
        self.where = ""
        self._at = 0.0
        self._head = Static()
        self._body = Static()
        self._keys = Static()

    def compose(self) -> ComposeResult:
        yield self._head
        yield VerticalScroll(self._body, id="asked", can_focus=False)
        yield self._keys

    def put(self, ask: Ask | None, cwd: str = "", where: str = "", waiting: int = 1) -> None:
        """Show a question, or none. `where` names another session."""
        if ask is not None and self.ask is not None and ask.id == self.ask.id:
            return
        self.ask, self.cwd, self.where = ask, cwd, where
        self._at = time.monotonic()
        self.display = ask is not None
        if ask is not None:
            self._draw(waiting)

    def on_resize(self, event: events.Resize) -> None:
        if self.ask is not None:
            self._draw(1)

    def _draw(self, waiting: int) -> None:
        ask = self.ask
        assert ask is not None
        width = max((self.size.width or self.app.size.width) - 4, 20)
        head = Text(no_wrap=False)
        head.append("? ", "bold yellow")
        head.append(visible(ask.title), "bold")
        if self.where:
            head.append(f"  in {visible(self.where)}", "cyan")
        if ask.risk:
            head.append(f"  {ask.risk} risk", _RISKS.get(ask.risk, "dim"))
        if waiting > 1:
            head.append(f"  (1 of {waiting})", "dim")
        if ask.reason:
            head.append(f"\n  {visible(ask.reason)}", "dim")
        self._head.update(head)
        self._body.update(Group(*(row.shown for row in ask_rows(ask, self.cwd, width))))
        self._keys.update(self._choices(ask))

    def _choices(self, ask: Ask) -> Text:
        found = Text()
        if ask.kind == "question":
            for number, choice in enumerate(ask.choices, 1):
                _key(found, str(number), visible(choice))
            _key(found, "w", "write an answer")
        else:
            for key, _, _, words in answers(ask):
                _key(found, key, words)
            _key(found, "w", "no, and say why")
        _key(found, "esc", "later")
        return found

    def on_key(self, event: events.Key) -> None:
        ask = self.ask
        if ask is None:
            return
        key = event.character or event.key
        scroll = self.query_one("#asked", VerticalScroll)
        if event.key in ("up", "down", "pageup", "pagedown"):
            getattr(scroll, f"scroll_{event.key.replace('page', 'page_')}")(animate=False)
        elif event.key == "escape":
            self.post_message(self.Left())
        elif key == "w":
            self.post_message(self.Words(ask))
        elif ask.kind == "question" and key.isdigit() and 0 < int(key) <= len(ask.choices):
            self.post_message(self.Answered(ask, "answer", ask.choices[int(key) - 1]))
        elif ask.kind == "tool":
            for letter, verdict, scope, _ in answers(ask):
                if key == letter:
                    self.post_message(self.Answered(ask, verdict, scope=scope))
                    break
            else:
                return
        else:
            return
        event.stop()


def _key(text: Text, key: str, words: str) -> None:
    if text:
        text.append("   ")
    text.append(f" {key} ", "reverse")
    text.append(f" {words}")


def answers(ask: Ask) -> list[tuple[str, str, Any, str]]:
    """(key, verdict, scope, words) of what may be answered about a tool call."""
    return [
        ("y", "allow", None, "yes"),
        ("a", "allow_always", None, f"always {ask.tool} in this session"),
        ("n", "deny", None, "no"),
    ]


def ask_rows(ask: Ask, cwd: str, width: int) -> list[Row]:
    """All that is asked about: the whole command, the real difference, or every argument."""
    if ask.kind == "question":
        return wrap(Text(visible(ask.summary)), width) if ask.summary != ask.title else []
    args = ask.args or {}
    command = args.get("command")
    if isinstance(command, str):
        found = prose.code(visible(command), "", width)
        rest = {name: value for name, value in args.items() if name != "command"}
        return found + _arguments(rest, width)
    diff = _difference(args, cwd)
    if diff is not None:
        return paint.diff_rows(diff, width)
    return _arguments(args, width) or wrap(Text(visible(ask.summary)), width)


def _arguments(args: dict[str, Any], width: int) -> list[Row]:
    found: list[Row] = []
    for name, value in args.items():
        said = value if isinstance(value, str) else _json(value)
        found += wrap(Text.assemble((f"{visible(name)}: ", "dim"), visible(said)), width)
    return found


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


def _difference(args: dict[str, Any], cwd: str) -> Diff | None:
    """What a call of a file tool would change, against the file as it is now."""
    name = args.get("path")
    if not isinstance(name, str) or not name:
        return None
    path = os.path.join(cwd, os.path.expanduser(name))
    content = args.get("content")
    old_text, new_text = (
        args.get("old_text", args.get("old")),
        args.get("new_text", args.get("new")),
    )
    if not isinstance(content, str) and not isinstance(new_text, str):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            now: str | None = file.read(4 * 1024 * 1024)
    except OSError:
        now = None
    if isinstance(content, str):
        return Diff(path, _shown(now), visible(content))
    if isinstance(old_text, str) and isinstance(new_text, str) and now is not None:
        return Diff(path, _shown(now), visible(now.replace(old_text, new_text, 1)))
    return None


def _shown(text: str | None) -> str | None:
    return None if text is None else visible(text)
