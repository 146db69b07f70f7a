"""The terminal itself: its screen, its keys, and what they set in motion."""

import asyncio
import gc
import os
import signal
import time
from collections.abc import Coroutine
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding

from dragoman.engine.faults import Fault

from . import prose
from .asking import Asking
from .begin import WELCOME, Wish
from .choices import Choice
from .conversation import Conversation
from .desk import ShownSession, mistake
from .foreground import has_shell
from .hangup import when_hung_up
from .inbox import Inbox
from .link import ScreenLink
from .piece import SUMMARY, Piece, said_by
from .question import Question
from .rows import Row
from .saying import anywhere, send, taken
from .status import Status
from .writing import Writing

_FRAME = 0.1  # seconds between two drawings while text streams
_LATEST = 0.3  # the same while somebody types, at most
_TYPING = 0.25  # seconds after a key in which the next one is expected
_TWICE = 2.0  # seconds in which a second ctrl+c leaves
_OF_THE_CONVERSATION = frozenset(
    ("end", "stop", "board", "thoughts", "open_all", "edit", "search", "paste_image", "page",
     "top", "bottom")
)  # fmt: skip


class Terminal(App[int]):
    """`dragoman` in a terminal."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#editor"  # what is typed before the first frame goes there
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    """
    BINDINGS: ClassVar = [
        Binding("ctrl+c", "leave", priority=True, show=False),
        Binding("ctrl+d", "end", priority=True, show=False),
        Binding("escape", "stop", show=False),
        Binding("ctrl+s,f2", "board", priority=True, show=False),
        Binding("ctrl+n,f3", "next_asked", priority=True, show=False),
        Binding("ctrl+t", "thoughts", priority=True, show=False),
        Binding("ctrl+o", "open_all", priority=True, show=False),
        Binding("ctrl+g", "edit", priority=True, show=False),
        Binding("ctrl+r", "search", priority=True, show=False),
        Binding("ctrl+v", "paste_image", priority=True, show=False),
        Binding("pageup", "page(-1)", priority=True, show=False),
        Binding("pagedown", "page(1)", priority=True, show=False),
        Binding("ctrl+home", "top", priority=True, show=False),
        Binding("ctrl+end", "bottom", priority=True, show=False),
        Binding("ctrl+l", "redraw", priority=True, show=False),
        Binding("ctrl+z", "rest", priority=True, show=False),
    ]

    def __init__(self, wish: Wish, *, light: bool = False) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-light" if light else "ansi-dark"
        self.wish = wish
        self.link = ScreenLink(wish.config_dir, self._link_told)
        self.desk = ShownSession(self.link, wish, self.changed)
        self.inbox = Inbox(self.link, self.changed)
        self.view = Conversation(self.desk.story, id="story")
        self.writing = Writing(wish.cwd, wish.config_dir, vi=wish.vi)
        self.editor = self.writing.editor
        self.status = Status(id="status")
        self.question = Question(id="question")
        self.asking = Asking(self, self.question)
        self.failed = ""
        self.shells: list[asyncio.Task[None]] = []  # commands of the user's own that run
        self._begun = asyncio.Event()  # the session that was asked for is there
        self._astray = False  # it could not be opened
        self._jobs: set[asyncio.Task[Any]] = set()
        self._due = False
        self._drawn_at = 0.0
        self._typed_at = 0.0
        self._last_leave = 0.0
        self._windows: dict[str, int] = {}
        self._spin: Any = None

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.question
        yield self.writing
        yield self.status

    def on_mount(self) -> None:
        self.status.folder = self.wish.cwd
        self.view.welcome = _welcome()
        self.editor.focus()
        self.job(self.link.keep())
        self.job(self.inbox.keep())
        self.job(self._start())
        self.call_after_refresh(_collect)
        if not self.is_headless:
            self._heed_signals()

    def _heed_signals(self) -> None:
        """The terminal was closed, or we are told to end: no command of the user's goes on."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        when_hung_up(self._hang_up)  # under sudo, su or setsid no signal comes
        loop.add_signal_handler(signal.SIGTERM, lambda: self.exit(return_code=143))

    def _hang_up(self) -> None:
        self.job(self._hung_up())

    async def _hung_up(self) -> None:
        if running := list(self.shells):
            for shell in running:
                shell.cancel()
            await asyncio.wait(running)
        # Nothing can be drawn or put back any more: end as everybody does.
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)

    def job(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something beside; a fault of the host is shown."""

        async def run() -> None:
            try:
                await work
            except Fault as fault:
                self.say(str(fault), "error")

        task = asyncio.get_running_loop().create_task(run())
        self._jobs.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._jobs.discard(task)
        try:
            if not task.cancelled():
                task.result()
        except Exception as problem:
            if self.is_headless:  # a test is to fail
                self._handle_exception(problem)
            else:  # nothing that somebody writes or reads is worth losing for it
                self.say(mistake("what was begun did not come to its end", problem), "error")

    async def _start(self) -> None:
        """Begin; what is typed meanwhile waits for it."""
        try:
            await self._begin()
        except Fault:
            self._astray = not self._begun.is_set()
            raise
        finally:
            self._begun.set()

    async def _begin(self) -> None:
        host = await self.link.ready()
        wish = self.wish
        if wish.pick:
            self.action_board()
        elif wish.session:
            await self.open_session(await self.desk.find(wish.session))
        elif wish.newest:
            newest = await self.desk.newest()
            if newest:
                await self.open_session(newest)
            else:
                self.notice("no session in this folder yet: a new one begins")
        await self._facts()
        if wish.prompt:
            await send(self, wish.prompt, queued=True)
        self._begun.set()
        rows = await host.commands(self.desk.cwd)
        self.writing.know([Choice(row.name, row.description) for row in rows])
        await asyncio.to_thread(prose.prepare)

    async def _facts(self) -> None:
        """The model of the next session, and how much each model can hold."""
        host = await self.link.ready()
        self._windows = {
            r.ref: int(r.model.get("context_window") or 0) for r in await host.models()
        }
        if not self.desk.session:
            rows = await host.agents()
            known = next((r for r in rows if r.alias == self.wish.agent), None)
            if known is None and self.wish.agent:  # not only when the first prompt is refused
                names = ", ".join(row.alias for row in rows) or "none"
                there = f"There is no agent {self.wish.agent}. Configured: {names}."
                self.say(f"{there} Leave with ctrl+c twice, and name one of them.", "error")
            known = known or (rows[0] if rows else None)
            if known is not None:
                self.desk.story.model = self.wish.model or known.model
                self.desk.story.mode = self.wish.mode or known.mode
        if told := await self.link.unused_keys(self.desk.story.model):
            self.say(told, "warning")
        self.changed()

    # --- drawing ---

    def changed(self) -> None:
        if not self._due:
            self._due = True
            loop = asyncio.get_running_loop()
            loop.call_at(max(loop.time(), self._drawn_at + _FRAME), self._ripe)

    def _ripe(self) -> None:
        """Draw what is due; while somebody types, after the next key, which would wait for it."""
        loop = asyncio.get_running_loop()
        latest = min(self._typed_at + _TYPING, self._drawn_at + _LATEST)
        if self._due and loop.time() < latest:
            loop.call_at(latest, self._ripe)
        else:
            self._draw_due()

    def _draw_due(self) -> None:
        if self._due:
            self._draw()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self._typed_at = asyncio.get_running_loop().time()
            self.asking.typed(event.key)
        await super().on_event(event)
        if (
            isinstance(event, events.Key)
            and self._due
            and self._typed_at >= self._drawn_at + _FRAME
        ):
            # Behind the key, which waits for whoever has the focus.
            (self.focused or self).call_after_refresh(self._draw_due)

    def _draw(self) -> None:
        self._due = False
        if not self.is_running:
            return
        self._drawn_at = asyncio.get_running_loop().time()
        self.view.update_story()
        self._show_facts()

    def _show_facts(self) -> None:
        story, status = self.desk.story, self.status
        busy = bool(story.turn or story.summary_at)
        if story.turn:
            status.waits, status.began = story.waits or "the model", story.turn_at / 1000
        else:
            status.waits, status.began = SUMMARY if busy else "", story.summary_at / 1000
        status.model, status.mode = story.model, story.mode
        status.context, status.window = story.usage.context, self._windows.get(story.model, 0)
        status.cost = story.cost
        status.folder = self.desk.cwd
        status.queued = self.desk.waiting
        self.writing.show_waiting(
            [
                (said_by(one.content, "", 0).text, "at its next step" if one.steers else "queued")
                for one in story.queued.values()
            ]
        )
        status.others = max(len(story.present) - 1, 0)
        status.below = not self.view.follow
        status.keys = self.editor.vi.shown if self.editor.vi is not None else ""
        self.editor.busy = bool(story.turn)
        if busy != (self._spin is not None):
            if self._spin is None:
                self._spin = self.set_interval(0.25, status.show)
            else:
                self._spin.stop()
                self._spin = None
        self.asking.show()
        status.show()

    def say(self, text: str, level: str = "info") -> None:
        """A word of the terminal's own in the conversation."""
        self.desk.story.put(Piece("note", text, name=level))
        self.changed()

    def notice(self, text: str) -> None:
        """A word in the status line, for a moment; the board has a line of its own."""
        if len(self.screen_stack) > 1:
            from .board import Board

            if isinstance(self.screen, Board):
                self.screen.tell(text)
        self.status.notice = text
        self.status.refresh()

        def clear() -> None:
            if self.status.notice == text:
                self.status.notice = ""
                self.status.refresh()

        self.set_timer(4.0, clear)

    def _link_told(self, state: str, words: str) -> None:
        self.status.state = "" if state in ("up", "answers") else words
        if state == "starting":
            self.say("no daemon runs: starting one; it goes on when you leave", "info")
        elif state == "down":
            self.say("the daemon went away; what you typed is kept", "warning")
        elif state == "up" and words:
            self.say("connected again", "info")
            self.job(self._facts())
        elif state in ("late", "answers", "stopped"):
            self.say(words, "warning" if state == "late" else "info")
        elif state == "trouble":
            if words != self.failed:
                self.say(words, "warning")
            self.failed = words
        self.status.refresh()

    # --- sessions ---

    async def open_session(self, session_id: str) -> None:
        await self.desk.open(session_id)
        self.show_session()

    def show_session(self) -> None:
        """The desk has another session."""
        self.view.show(self.desk.story)
        self.writing.place(self.desk.cwd)
        self.asking.close()
        self.job(self._facts())

    async def set_wish(self, **changes: Any) -> None:
        """Another choice for the session that begins next."""
        self.wish = self.desk.wish = self.wish._replace(**changes)
        await self._facts()

    def last_answer(self) -> str:
        """The Markdown of the last answer."""
        found: list[str] = []
        for piece in reversed(self.desk.story.pieces):
            if piece.kind == "said":
                found.append(piece.text)
            elif found:
                break
        return "".join(reversed(found)).strip()

    # --- what was said ---

    def on_editor_vi_changed(self) -> None:
        self._show_facts()

    def on_writing_trouble(self, event: Writing.Trouble) -> None:
        self.say(event.text, "error")

    def on_writing_said(self, event: Writing.Said) -> None:
        if not self.asking.takes(event.text):
            self.view.to_end()
            self.job(self._taken(event.text, event.queued))

    async def _taken(self, text: str, queued: bool) -> None:
        """Do what was typed, in the session that was asked for."""
        if not self._begun.is_set() and not anywhere(text):
            self.link.want()
            await self._begun.wait()
            if self._astray:  # it was meant for a session that there is not
                self.writing.give_back(text)
                return
        await taken(self, text, queued)

    def on_question_answered(self, event: Question.Answered) -> None:
        self.asking.answered(event)

    def on_question_words(self, event: Question.Words) -> None:
        self.asking.in_words(event.ask)

    def on_question_keys_moved(self) -> None:
        self._show_facts()

    def on_question_left(self) -> None:
        self.asking.put_off()

    # --- keys ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the conversation mean nothing on the board, which has its own."""
        return len(self.screen_stack) <= 1 or action not in _OF_THE_CONVERSATION

    def action_leave(self) -> None:
        """ctrl+c: copy what is selected, else empty the editor, else leave at the second time."""
        if selected := self.screen.get_selected_text():
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            self.notice("copied")
            return
        if self.editor.text and len(self.screen_stack) <= 1:
            self.editor.put("")
            self._last_leave = 0.0
            return
        now = time.monotonic()
        if now - self._last_leave < _TWICE:
            self.exit(0)
        self._last_leave = now
        runs = "; the turn goes on without you" if self.desk.story.turn else ""
        self.notice(f"ctrl+c again leaves{runs}")

    def action_end(self) -> None:
        if self.editor.text:
            self.editor.action_delete_right()
        else:
            self.exit(0)

    def action_stop(self) -> None:
        """esc: back from a question's words, else stop the user's own command, else the turn."""
        if self.asking.back():
            return
        if self.shells:
            self.shells.pop().cancel()
        elif self.desk.story.turn or self.desk.story.summary_at:
            self.job(self._interrupt())

    async def _interrupt(self) -> None:
        if await self.desk.interrupt():
            self.notice("stopped")

    def action_thoughts(self) -> None:
        self.view.look.open_thoughts = not self.view.look.open_thoughts
        self.view.redraw()

    def action_open_all(self) -> None:
        self.view.look.open_all = not self.view.look.open_all
        self.view.look.open_calls.clear()
        self.view.redraw()

    def action_edit(self) -> None:
        self.writing.edit_outside()

    def action_search(self) -> None:
        self.writing.search()

    def action_paste_image(self) -> None:
        self.job(self.writing.paste_clipboard())

    def action_page(self, pages: int) -> None:
        if self.question.has_focus and not self.question.read:
            self.question.page(pages)
        else:
            self.view.scroll_page(pages)

    def action_top(self) -> None:
        self.view.to_start()

    def action_bottom(self) -> None:
        self.view.to_end()

    def action_rest(self) -> None:
        """ctrl+z: to the shell, until it says `fg`."""
        if not has_shell():
            self.notice("no shell waits here that could come back with fg")
            return
        with self.suspend():
            os.killpg(os.getpgrp(), signal.SIGSTOP)  # all of the job, as the terminal would
        self.action_redraw()

    def action_redraw(self) -> None:
        self.view.redraw()
        self.refresh(repaint=True, layout=True)

    def action_board(self) -> None:
        from .board import Board

        if not isinstance(self.screen, Board):
            self.push_screen(Board(self.link, self.inbox, self.desk.session), self._board_left)

    def _board_left(self, chosen: str | None) -> None:
        if chosen:
            self.job(self.open_session(chosen))
        self.editor.focus()

    def action_next_asked(self) -> None:
        if len(self.screen_stack) > 1:
            self.pop_screen()
        if not self.asking.next():
            self.notice("nothing waits for you")

    async def on_conversation_needs_older(self) -> None:
        count = await self.desk.older()
        if count and self.view.story is self.desk.story:
            self.view.prepended(count)

    def on_conversation_scrolled(self) -> None:
        self.status.below = not self.view.follow
        self.status.refresh()


def _welcome() -> list[Row]:
    lines = [Text.assemble(*line) for line in WELCOME]
    return [Row(line, line.plain) for line in lines]


def _collect() -> None:
    """What was loaded stays: the garbage collector need not look at it again."""
    gc.freeze()
    gc.enable()
