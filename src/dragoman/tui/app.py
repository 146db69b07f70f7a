"""The terminal itself: its screen, its keys, and what they set in motion."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, ClassVar

import msgspec
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding

from dragoman.client import attachments
from dragoman.engine.events import Ask
from dragoman.engine.faults import Fault

from . import commands
from .choices import Choice
from .conversation import Conversation
from .desk import Desk, Wish
from .inbox import Inbox
from .link import Link
from .question import Question
from .rows import Row
from .status import Status
from .story import Piece
from .writing import Writing

_FRAME = 1 / 20  # seconds between two drawings while text streams
_TWICE = 2.0  # seconds in which a second ctrl+c leaves
_TYPING = 1.0  # a question does not take the keys of somebody who has typed just now


class Terminal(App[int]):
    """`dragoman` in a terminal."""

    ENABLE_COMMAND_PALETTE = False
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
    ]

    def __init__(self, wish: Wish, *, light: bool = False) -> None:
        super().__init__()
        self.theme = "ansi-light" if light else "ansi-dark"
        self.wish = wish
        self.link = Link(wish.config_dir, self._link_told)
        self.desk = Desk(self.link, wish, self._changed)
        self.inbox = Inbox(self.link, self._inbox_changed)
        self.view = Conversation(self.desk.story, id="story")
        self.writing = Writing(wish.cwd, wish.config_dir, vi=wish.vi)
        self.editor = self.writing.editor
        self.status = Status(id="status")
        self.question = Question(id="question")
        self.failed = ""
        self._jobs: set[asyncio.Task[Any]] = set()
        self._due = False
        self._last_leave = 0.0
        self._typed_at = 0.0
        self._windows: dict[str, int] = {}
        self._wording: Ask | None = None  # the question that the editor's words go to
        self._spin: Any = None

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.question
        yield self.writing
        yield self.status

    def on_mount(self) -> None:
        self.status.folder = self.wish.cwd
        self.view.welcome = _welcome(self.wish)
        self.editor.focus()
        self.job(self.link.keep())
        self.job(self.inbox.keep())
        self.job(self._begin())

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
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._handle_exception(problem)  # type: ignore[arg-type]

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
            await self._send(wish.prompt, queued=True)
        rows = await host.commands(self.desk.cwd)
        self.writing.offered = [Choice(row.name, row.description) for row in rows]

    async def _facts(self) -> None:
        """The model of the next session, and how much each model can hold."""
        host = await self.link.ready()
        self._windows = {
            r.ref: int(r.model.get("context_window") or 0) for r in await host.models()
        }
        if not self.desk.session:
            rows = await host.agents()
            known = next((r for r in rows if r.alias == self.wish.agent), rows[0] if rows else None)
            if known is not None:
                self.desk.story.model = self.wish.model or known.model
                self.desk.story.mode = self.wish.mode or known.mode
        self._changed()

    # --- drawing ---

    def _changed(self) -> None:
        if not self._due:
            self._due = True
            self.set_timer(_FRAME, self._draw)

    def _draw(self) -> None:
        self._due = False
        self.view.update_story()
        self._show_facts()

    def _show_facts(self) -> None:
        story, status = self.desk.story, self.status
        status.waits = story.waits or "the model" if story.turn else ""
        status.began = story.turn_at / 1000
        status.model, status.mode = story.model, story.mode
        status.context, status.window = story.usage.context, self._windows.get(story.model, 0)
        status.cost = story.cost
        status.folder = self.desk.cwd
        status.queued = self.desk.waiting
        status.others = max(len(story.present) - 1, 0)
        status.below = not self.view.follow
        self.editor.busy = bool(story.turn)
        if bool(story.turn) != (self._spin is not None):
            if self._spin is None:
                self._spin = self.set_interval(0.25, status.refresh)
            else:
                self._spin.stop()
                self._spin = None
        self._show_question()
        status.refresh()

    def _show_question(self) -> None:
        asks = list(self.desk.story.asks.values())
        self.status.asking = bool(asks)
        self.status.inbox = self.inbox.count(besides=self.desk.session)
        shown = self.question.ask
        if shown is not None and shown.id not in self.desk.story.asks:
            shown = self.inbox.asks.get(shown.id)
        if shown is None and asks:
            self._put_question(asks[0], "", len(asks))
        elif shown is None and self.question.display:
            self.question.put(None)
            self._wording = None
            self.editor.focus()

    def _put_question(self, ask: Ask, where: str, waiting: int = 1) -> None:
        cwd = self.desk.cwd if not where else self.inbox.folders.get(ask.session, "")
        self.question.put(ask, cwd, where, waiting)
        idle = time.monotonic() - self._typed_at > _TYPING
        if idle and not self.editor.text and self._wording is None:
            self.question.focus()

    def say(self, text: str, level: str = "info") -> None:
        """A word of the terminal's own in the conversation."""
        self.desk.story.put(Piece("note", text, name=level))
        self._changed()

    def notice(self, text: str) -> None:
        """A word in the status line, for a moment."""
        self.status.notice = text
        self.status.refresh()

        def clear() -> None:
            if self.status.notice == text:
                self.status.notice = ""
                self.status.refresh()

        self.set_timer(4.0, clear)

    def _link_told(self, state: str, words: str) -> None:
        self.status.state = "" if state == "up" else words
        if state == "starting":
            self.say("no daemon runs: starting one; it goes on when you leave", "info")
        elif state == "down":
            self.say("the daemon went away; what you typed is kept", "warning")
        elif state == "up" and words:
            self.say("connected again", "info")
            self.job(self._facts())
        elif state == "trouble":
            self.failed = words
        self.status.refresh()

    def _inbox_changed(self) -> None:
        self._changed()

    # --- sessions ---

    async def open_session(self, session_id: str) -> None:
        await self.desk.open(session_id)
        self.show_session()

    def show_session(self) -> None:
        """The desk has another session."""
        self.view.show(self.desk.story)
        self.writing.place(self.desk.cwd)
        self.question.put(None)
        self.editor.focus()
        self.job(self._facts())

    async def set_wish(self, **changes: Any) -> None:
        """Another choice for the session that begins next."""
        self.wish = self.desk.wish = msgspec.structs.replace(self.wish, **changes)
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

    def on_key(self) -> None:
        self._typed_at = time.monotonic()

    def on_writing_trouble(self, event: Writing.Trouble) -> None:
        self.say(event.text, "error")

    def on_writing_said(self, event: Writing.Said) -> None:
        ask, self._wording = self._wording, None
        if ask is not None:
            self.writing.words_for("")
            self._answer_in_words(ask, event.text)
            return
        self.view.to_end()
        self.job(self._taken(event.text, event.queued))

    async def _taken(self, text: str, queued: bool) -> None:
        """Do what was typed; what could not be done stands in the editor again."""
        try:
            if text.startswith("!") and text[1:].strip():
                await self._shell(text[1:].strip())
                return
            name, _, words = text[1:].partition(" ")
            if text.startswith("/") and (own := commands.OWN.get(name.strip())) is not None:
                await own.act(self, words.strip())
                return
            await self._send(text, queued)
        except Fault:
            self.writing.give_back(text)
            raise

    async def _send(self, text: str, queued: bool) -> None:
        bag = self.writing.bag
        content = attachments.prompt(text, self.desk.cwd, *bag.blocks())
        simple = len(content) == 1 and not text.startswith("/")
        if self.desk.story.turn and not queued and simple and await self.desk.steer(text):
            return
        before = self.desk.story
        await self.desk.send(content)
        bag.clear()
        self.writing.show_bag()
        if self.desk.story is not before:
            self.show_session()
        self._changed()

    async def _shell(self, command: str) -> None:
        from .shell import run

        story = self.desk.story
        piece = story.put(Piece("shell", name=command, at=int(time.time() * 1000)))
        piece.outcome = "running"

        def changed() -> None:
            story.touched(piece)
            self._changed()

        changed()
        await run(command, self.desk.cwd, piece, changed)
        self.writing.carry(f"output of {command}", attachments.context(f"$ {command}", piece.text))

    # --- questions ---

    def on_question_answered(self, event: Question.Answered) -> None:
        self.job(self._answer(event.ask, event.verdict, event.text, "", event.scope))

    def on_question_words(self, event: Question.Words) -> None:
        self._wording = event.ask
        asks = event.ask.kind == "question"
        self.writing.words_for("your answer" if asks else "no, because … (tell the agent)")
        self.editor.focus()

    def on_question_left(self) -> None:
        self.editor.focus()

    def _answer_in_words(self, ask: Ask, text: str) -> None:
        if ask.kind == "question":
            self.job(self._answer(ask, "answer", text, ""))
        else:
            self.job(self._answer(ask, "deny", "", text))

    async def _answer(
        self, ask: Ask, verdict: Any, text: str, comment: str, scope: Any = None
    ) -> None:
        try:
            await self.desk.answer(ask.id, verdict, text=text, comment=comment, scope=scope)
        finally:
            self.inbox.asks.pop(ask.id, None)
            self.desk.story.asks.pop(ask.id, None)
            self._changed()

    # --- keys ---

    def action_leave(self) -> None:
        """ctrl+c: copy what is selected, else empty the editor, else leave at the second time."""
        if selected := self.screen.get_selected_text():
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            self.notice("copied")
            return
        if self.editor.text:
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
        """esc: back from a question's words, else stop the turn."""
        if self._wording is not None:
            self._wording = None
            self.writing.words_for("")
            self.question.focus()
        elif self.desk.story.turn:
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
        self.job(self.writing.paste_image())

    def action_page(self, pages: int) -> None:
        self.view.scroll_page(pages)

    def action_top(self) -> None:
        self.view.to_start()

    def action_bottom(self) -> None:
        self.view.to_end()

    def action_redraw(self) -> None:
        self.refresh(repaint=True, layout=True)

    def action_board(self) -> None:
        self.notice("no board yet")

    def action_inbox(self) -> None:
        self.notice("no inbox yet")

    def action_next_asked(self) -> None:
        """Show the oldest question, of whatever session."""
        mine = list(self.desk.story.asks.values())
        others = self.inbox.others(self.desk.session)
        if self.question.has_focus and others:
            shown = self.question.ask
            at = next((n for n, a in enumerate(others) if shown and a.id == shown.id), -1)
            self._put_question(
                others[(at + 1) % len(others)],
                self.inbox.names.get(others[0].session, "another session"),
            )
        elif mine:
            self._put_question(mine[0], "", len(mine))
        elif others:
            self._put_question(
                others[0], self.inbox.names.get(others[0].session, "another session"), len(others)
            )
        else:
            self.notice("nothing waits for you")
            return
        self.question.focus()

    async def on_conversation_needs_older(self) -> None:
        count = await self.desk.older()
        if count:
            self.view.prepended(count)

    def on_conversation_scrolled(self) -> None:
        self.status.below = not self.view.follow
        self.status.refresh()


def _welcome(wish: Wish) -> list[Row]:
    lines = [
        Text(""),
        Text.assemble(("  dragoman", "bold"), ("  one host for every agent and client", "dim")),
        Text(""),
        Text("  type what the agent is to do, or", "dim"),
        Text.assemble(
            ("  @", "cyan"),
            (" a file   ", "dim"),
            ("/", "cyan"),
            (" a command   ", "dim"),
            ("!", "cyan"),
            (" a shell command   ", "dim"),
            ("ctrl+s", "cyan"),
            (" all sessions", "dim"),
        ),
    ]
    return [Row(line, line.plain) for line in lines]
