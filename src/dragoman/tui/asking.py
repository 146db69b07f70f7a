"""Which question is shown, and what becomes of the answer."""

import time
from typing import TYPE_CHECKING, Any

from dragoman.engine.events import Ask

from .question import Question

if TYPE_CHECKING:
    from .app import Terminal

_TYPING = 1.0  # a question does not take the keys of somebody who has typed just now


class Asking:
    """The session's own questions come up by themselves, those of others when asked for."""

    def __init__(self, app: "Terminal", panel: Question) -> None:
        self.panel = panel
        self.typed_at = 0.0
        self._app = app
        self._wording: Ask | None = None  # the question that the editor's words go to

    def show(self) -> None:
        """Bring the panel up to date."""
        app = self._app
        asks = app.desk.story.asks
        app.status.asking = bool(asks)
        app.status.inbox = app.inbox.count(besides=app.desk.session)
        shown = self.panel.ask
        if shown is not None and shown.id not in asks and shown.id not in app.inbox.asks:
            shown = None
        if shown is None and asks:
            self._put(next(iter(asks.values())), len(asks))
            idle = time.monotonic() - self.typed_at > _TYPING
            if idle and not app.editor.text and self._wording is None:
                self.panel.focus()
        elif shown is None and self.panel.display:
            self.close()

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
        self.panel.focus()
        return True

    # --- answers ---

    def answered(self, event: Question.Answered) -> None:
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
            return False
        self._end_words()
        if ask.kind == "question":
            self._app.job(self._answer(ask, "answer", text=text))
        else:
            self._app.job(self._answer(ask, "deny", comment=text))
        return True

    def back(self) -> bool:
        """esc while words are written for a question: back to it."""
        if self._wording is None:
            return False
        self._end_words()
        self.panel.focus()
        return True

    async def _answer(self, ask: Ask, verdict: Any, **more: str) -> None:
        """Answer what was seen; a question that has changed since is asked again."""
        app = self._app
        try:
            await app.link.host.answer(ask.id, verdict, digest=ask.digest, **more)
        finally:
            app.inbox.asks.pop(ask.id, None)
            app.desk.story.asks.pop(ask.id, None)
            app.changed()
