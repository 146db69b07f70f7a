"""The board: every session of every client, live."""

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from dragoman.client.answers import Board as Answer
from dragoman.client.answers import BoardRow
from dragoman.engine.events import ACTIVE, Event
from dragoman.engine.faults import Fault, UnknownAgent

from .begin import Wish
from .boarding import columns, doing, line, needs, order
from .conversation import Conversation
from .desk import ShownSession
from .editor import acts_of
from .inbox import Inbox
from .link import ScreenLink
from .rows import safe
from .strips import strip

_FRAME = 0.1  # seconds between two drawings of the session that is watched
_SOON = 0.3  # seconds in which changes are gathered
_AGAIN = 2.0  # seconds after which it is read again: who is attached is told to nobody else
_WIDE = 140


class Rows(Widget, can_focus=True):
    """The list of sessions."""

    DEFAULT_CSS = "Rows { height: 1fr; width: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[BoardRow] = []
        self.at = 0
        self.here = ""

    @property
    def chosen(self) -> BoardRow | None:
        return self.rows[self.at] if self.at < len(self.rows) else None

    def put(self, rows: list[BoardRow]) -> None:
        """Show these; the cursor stays with its session."""
        now = self.chosen.session.id if self.chosen is not None else self.here
        self.rows = rows
        self.at = next((n for n, row in enumerate(rows) if row.session.id == now), 0)
        self.refresh()

    def move(self, by: int) -> None:
        self.at = min(max(self.at + by, 0), max(len(self.rows) - 1, 0))
        self.refresh()

    def _start(self) -> int:
        room = max(self.size.height - 1, 1)
        return min(max(self.at - room + 1, 0), max(len(self.rows) - room, 0))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return strip(columns(width))
        at = self._start() + y - 1
        if at >= len(self.rows):
            empty = "  no sessions yet" if not self.rows and y == 1 else ""
            return strip(Text(empty, "dim"))
        row = self.rows[at]
        text = line(row, width, chosen=at == self.at, here=row.session.id == self.here)
        return strip(text)

    def on_click(self, event: events.Click) -> None:
        if 0 < event.y <= len(self.rows):
            at = self._start() + event.y - 1
            if at == self.at and event.chain == 2:
                self.screen.action_open()  # type: ignore[attr-defined]
            self.at = min(at, len(self.rows) - 1)
            self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.move(-1)


class Line(Input):
    """Takes its keys in their order."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key not in _ACTS:
            await super()._on_key(event)
            return
        event.prevent_default()
        event.stop()
        await self.run_action(_ACTS[event.key])


_ACTS = acts_of(Input.BINDINGS)


class Board(Screen[str]):
    """Gives the id of the session to open, or nothing."""

    CSS = """
    Board { background: ansi_default; color: ansi_default; }
    Board #both { layout: vertical; height: 1fr; }
    Board #both.wide { layout: horizontal; }
    Board #watched { display: none; height: 1fr; width: 1fr; border-top: solid ansi_bright_black; }
    Board #both.wide #watched { border-top: none; border-left: solid ansi_bright_black; }
    Board #top { height: 1; }
    Board #keys { height: auto; max-height: 2; }
    Board Input { display: none; height: 1; border: none; padding: 0; background: transparent; }
    """
    BINDINGS: ClassVar = [
        Binding("escape,ctrl+s,f2,q", "back", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
        Binding("enter", "open", show=False),
        Binding("space", "watch", show=False),
        Binding("f", "fork", show=False),
        Binding("r", "rename", show=False),
        Binding("x", "interrupt", show=False),
        Binding("h", "hand_over", show=False),
        Binding("n,tab", "next", show=False),
        Binding("slash", "filter", show=False),
    ]

    def __init__(self, link: ScreenLink, inbox: Inbox, here: str) -> None:
        super().__init__()
        self._link = link
        self._inbox = inbox
        self._list = Rows()
        self._list.here = here
        self._top = Static(id="top")
        self._keys = Static(_KEYS, id="keys")
        self._input = Line(compact=True)
        self._asked = ""  # what the input is for
        self._desk = ShownSession(link, Wish(cwd=""), self._told)
        self._view = Conversation(self._desk.story)
        self._words = ""
        self._answer: Answer | None = None
        self._due = False
        self._stale = False  # the watched session has something that is not drawn
        self._tasks: set[asyncio.Task[None]] = set()

    def compose(self) -> ComposeResult:
        yield self._top
        with Container(id="both"):
            yield self._list
            with Container(id="watched"):
                yield self._view
        yield self._input
        yield self._keys

    def on_mount(self) -> None:
        self._inbox.listeners.append(self._heard)
        self._list.focus()
        self._do(self._read())
        self.set_interval(_AGAIN, self._soon)

    def on_unmount(self) -> None:
        self._inbox.listeners.remove(self._heard)
        self._desk.leave()

    def on_resize(self, event: events.Resize) -> None:
        self.query_one("#both").set_class(event.size.width >= _WIDE, "wide")

    @property
    def _watched(self) -> Container:
        return self.query_one("#watched", Container)

    # --- what is shown ---

    def _heard(self, event: Event) -> None:
        if not self._due:
            self._due = True
            self.set_timer(_SOON, self._soon)

    def _soon(self) -> None:
        self._due = False
        self._do(self._read())

    async def _read(self) -> None:
        self._answer = await (await self._link.ready()).board()
        self._show()

    def _show(self) -> None:
        answer = self._answer
        if answer is None:
            return
        words = self._words.lower().split()
        rows = [row for row in answer.rows if all(word in _said(row) for word in words)]
        self._list.put(sorted(rows, key=order))
        active = sum(row.session.status in ACTIVE for row in answer.rows)
        waiting = sum(row.asks for row in answer.rows)
        top = Text.assemble((" sessions", "bold"), (f"  {len(answer.rows)}", "dim"))
        top.append("+" if answer.more else "", "dim")
        top.append(f"   {active} at work", "green" if active else "dim")
        top.append(f"   {waiting} waiting for you", "bold yellow" if waiting else "dim")
        top.append(f"   ${answer.spent_today:.4f} in 24 h", "dim")
        if self._words:
            top.append(f"   only: {safe(self._words)}", "cyan")
        self._top.update(top)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        async def run() -> None:
            try:
                await work
            except Fault as fault:
                self._keys.update(Text(f" {safe(str(fault))}", "red"))

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _told(self) -> None:
        """Something new in the session that is watched: drawn soon, with what else comes."""
        if not self._stale:
            self._stale = True
            self.set_timer(_FRAME, self._draw_watched)

    def _draw_watched(self) -> None:
        self._stale = False
        self._view.update_story()

    async def on_conversation_needs_older(self, event: Conversation.NeedsOlder) -> None:
        event.stop()
        if count := await self._desk.older():
            self._view.prepended(count)

    def on_conversation_scrolled(self, event: Conversation.Scrolled) -> None:
        event.stop()

    def tell(self, words: str) -> None:
        self._keys.update(Text(f" {safe(words)}", "bold"))

    # --- keys ---

    def action_back(self) -> None:
        if self._input.display:
            self._close_input()
        elif self._watched.display:
            self._desk.leave()
            self._watched.display = False
        else:
            self.dismiss(None)

    def action_move(self, by: int) -> None:
        self._list.move(by)
        if self._watched.display:
            self.action_watch()

    def action_open(self) -> None:
        if (row := self._list.chosen) is not None:
            self.dismiss(row.session.id)

    def action_watch(self) -> None:
        """Look on while it works, without leaving the board."""
        row = self._list.chosen
        if row is not None and row.session.id != self._desk.session:
            self._do(self._watch(row.session.id))

    async def _watch(self, session: str) -> None:
        await self._desk.open(session)
        self._watched.display = True
        self._view.show(self._desk.story)

    def action_next(self) -> None:
        """The cursor to the next session that needs somebody."""
        rows = self._list.rows
        for step in range(1, len(rows) + 1):
            at = (self._list.at + step) % len(rows)
            if needs(rows[at]):
                self._list.move(at - self._list.at)
                return

    def action_interrupt(self) -> None:
        if (row := self._list.chosen) is not None:
            self._do(self._interrupt(row.session.id))

    async def _interrupt(self, session: str) -> None:
        await self._link.host.cancel(session)
        self.tell("stopped")

    def action_fork(self) -> None:
        if (row := self._list.chosen) is not None:
            self._do(self._fork(row.session.id))

    async def _fork(self, session: str) -> None:
        self.dismiss((await self._link.host.fork(session)).id)

    async def _hand_over(self, session: str, alias: str) -> None:
        """The other agent goes on with its own model and its own mode."""
        rows = await self._link.host.agents()
        agent = next((row for row in rows if row.alias == alias), None)
        if agent is None:
            raise UnknownAgent(f"There is no agent {alias}.")
        made = await self._link.host.fork(session, agent=alias, model=agent.model, mode=agent.mode)
        self.dismiss(made.id)

    def action_rename(self) -> None:
        if (row := self._list.chosen) is not None:
            self._ask("rename", "title: ", row.session.title)

    def action_filter(self) -> None:
        self._ask("filter", "only sessions with: ", self._words)

    def action_hand_over(self) -> None:
        """Let another agent go on with it, in a session of its own."""
        if self._list.chosen is not None:
            self._do(self._offer_agents())

    async def _offer_agents(self) -> None:
        names = ", ".join(row.alias for row in await self._link.host.agents())
        self._ask("hand over", f"to which agent ({names}): ", "")

    def _ask(self, what: str, label: str, value: str) -> None:
        self._asked = what
        self._keys.update(Text(f" {safe(label)}", "bold"))
        self._input.display = True
        self._input.value = value
        self._input.focus()

    def _close_input(self) -> None:
        self._input.display = False
        self._keys.update(_KEYS)
        self._list.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        value, row = event.value.strip(), self._list.chosen
        self._close_input()
        if self._asked == "filter":
            self._words = value
            self._show()
        elif row is not None and value and self._asked == "rename":
            self._do(self._rename(row.session.id, value))
        elif row is not None and value:
            self._do(self._hand_over(row.session.id, value))

    async def _rename(self, session: str, title: str) -> None:
        await self._link.host.rename(session, title)
        await self._read()


def _said(row: BoardRow) -> str:
    info = row.session
    return f"{info.title} {info.query} {info.cwd} {info.agent} {info.id} {doing(row)}".lower()


_KEYS = Text.assemble(
    *(
        part
        for key, words in (
            ("enter", "open"), ("space", "watch"), ("n", "next that waits"), ("f", "fork"),
            ("r", "rename"), ("x", "stop"), ("h", "hand over"), ("/", "filter"), ("esc", "back"),
        )
        for part in ((f" {key}", "cyan"), (f" {words} ", "dim"))
    )
)  # fmt: skip
