"""Which question is shown, and what becomes of the answer."""

import time
from typing import TYPE_CHECKING, Any

from dragoman.client.problems import ConnectionGone, NotRunning
from dragoman.engine.events import Ask
from dragoman.engine.faults import Fault

from .question import Question

if TYPE_CHECKING:
    from textual.events import Key

    from .app import Terminal

_TYPING = 1.0  # a question does not take the keys of somebody who has typed just now
_MEANT = 1.0  # seconds in which words that were sent were still meant for a question that is gone


class Asking:
    """The session's own questions come up by themselves, those of others when asked for."""

    def __init__(self, app: "Terminal", panel: Question) -> None:
        self.panel = panel
        panel.spelled = self._spell
        self.typed_at = 0.0
        self._app = app
        self._wording: Ask | None = None  # the question that the editor's words go to
        self._lost_at = 0.0  # the question was answered elsewhere while words were written for it
        self._later = ""  # the question that the user has put off

    def typed(self, key: str) -> None:
        """A key was pressed; enter ends what was written."""
        if not self.panel.has_focus:
            self.typed_at = 0.0 if key == "enter" else time.monotonic()

    def show(self) -> None:
        """Bring the panel up to date."""
        app = self._app
        asks = app.desk.story.asks
        shown = self.panel.ask
        if shown is not None and shown.id not in asks and shown.id not in app.inbox.asks:
            self._gone(shown)
            self.panel.typed = None
            shown = None
        if shown is None and asks:
            self._put(next(iter(asks.values())), len(asks))
        elif shown is None and self.panel.display:
            self.close()
        elif shown is not None and shown.id in asks:
            self._put(shown, len(asks))
        self._take_keys()
        app.status.asking = bool(asks)
        app.status.put_off = bool(asks) and not self.panel.has_focus
        app.status.inbox = app.inbox.count(besides=app.desk.session)

    def _take_keys(self) -> None:
        """Give the keys to a question of this session, unless somebody is writing."""
        app, panel = self._app, self.panel
        ask = panel.ask
        if ask is None or ask.session != app.desk.session or ask.id == self._later:
            return
        if panel.has_focus or app.editor.text or self._wording is not None:
            return
        left = self.typed_at + _TYPING - time.monotonic()
        if left > 0:
            app.set_timer(left, app.changed)
        else:
            panel.typed = self._write
            panel.focus()

    def _write(self, character: str) -> None:
        """Somebody was about to write: the letter is the first of a prompt."""
        self._app.editor.focus()
        self._app.editor.insert(character)

    def _spell(self, event: "Key") -> None:
        """A key of words for a question, before the editor had the focus."""
        self._app.editor.post_message(type(event)(event.key, event.character))

    def _gone(self, ask: Ask) -> None:
        if self._wording is not None and self._wording.id == ask.id:
            self._end_words()
            self._lost_at = time.monotonic()
            self._app.notice("that was answered elsewhere; what you wrote is kept")

    def put_off(self) -> None:
        """esc: the user goes back to the editor, and the question waits."""
        self._later = self.panel.ask.id if self.panel.ask is not None else ""
        self._app.editor.focus()
        self._app.changed()

    def close(self) -> None:
        self.panel.put(None)
        self._end_words()
        self._app.editor.focus()

    def _put(self, ask: Ask, waiting: int) -> None:
        app = self._app
        other = ask.session != app.desk.session
        where = app.inbox.names.get(ask.session, "another session") if other else ""
        self.panel.put(ask, where, waiting)

    def next(self) -> bool:
        """Show the next question of any session and let it take the keys; False: there is none."""
        app = self._app
        every = [*app.desk.story.asks.values(), *app.inbox.others(app.desk.session)]
        if not every:
            return False
        shown = self.panel.ask
        at = next((n for n, ask in enumerate(every) if shown and ask.id == shown.id), -1)
        if at < 0 or self.panel.has_focus:
            at = (at + 1) % len(every)
        self._put(every[at], len(every))
        self._later = ""
        self.panel.typed = None
        self.panel.focus()
        return True

    # --- answers ---

    def answered(self, event: Question.Answered) -> None:
        self.panel.typed = None  # keys after an answer are no prompt
        self._app.job(
            self._answer(
                event.ask, event.verdict, text=event.text, scope=event.scope, lasts=event.lasts
            )
        )

    def in_words(self, ask: Ask) -> None:
        """The next words in the editor are for this question."""
        self._wording = ask
        asks = ask.kind == "question"
        self._app.writing.words_for("your answer" if asks else "no, because … (tell the agent)")
        self._app.editor.focus()

    def _end_words(self) -> None:
        self._wording = None
        self._app.writing.words_for("")

    def takes(self, text: str) -> bool:
        """Whether the words were for a question."""
        ask = self._wording
        if ask is None:
            lost = time.monotonic() - self._lost_at < _MEANT
            if lost:
                self._app.writing.give_back(text)
            return lost
        self._end_words()
        if ask.kind == "question":
            self._app.job(self._answer(ask, "answer", words=text, text=text))
        else:
            self._app.job(self._answer(ask, "deny", words=text, comment=text))
        return True

    def back(self) -> bool:
        """esc while words are written for a question: back to it."""
        if self._wording is None:
            return False
        self._end_words()
        self.panel.focus()
        return True

    async def _answer(self, ask: Ask, verdict: Any, words: str = "", **more: str) -> None:
        """Answer what was seen; a question that has changed since is asked again.

        `words` were written for it: they are given back if they do not arrive.
        """
        app = self._app
        try:
            await app.link.host.answer(ask.id, verdict, digest=ask.digest, **more)
        except (ConnectionGone, NotRunning):
            app.writing.give_back(words)
            if self.panel.ask is not None and self.panel.ask.id == ask.id:
                self.panel.again()  # the question stands
            raise
        except Fault:
            app.writing.give_back(words)
            self._drop(ask)
            raise
        self._drop(ask)

    def _drop(self, ask: Ask) -> None:
        self._app.inbox.asks.pop(ask.id, None)
        self._app.desk.story.asks.pop(ask.id, None)
        self._app.changed()
