"""Screens at 60, 100 and 200 columns, on light and dark terminals, as they were looked at once.

The files hold the screen with its colours; `cat` shows them. After a wanted change:
WRITE_SNAPSHOTS=1 python -m pytest tests/tui/test_snapshots.py
"""

import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from textual.app import App

from dragoman.client.answers import Board as BoardAnswer
from dragoman.client.answers import BoardRow
from dragoman.engine import events as ev
from dragoman.engine.ask import Ask, Change, Scope, Who
from dragoman.engine.content import (
    Detail,
    Diff,
    PlanEntry,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from dragoman.engine.info import SessionInfo
from dragoman.tui import boarding, question
from dragoman.tui.app import Terminal
from dragoman.tui.begin import Wish
from dragoman.tui.board import Board, Rows

KEPT = Path(__file__).parent / "snapshots"
NOW = 1_700_000_000
_ANSWER = """# What I found

Some **bold** words, `code`, *stress* and a [link](https://example.org/a).

1. first
   - nested, with a line that is long enough to be wrapped at sixty columns at least once
2. second

| file | lines | what it does |
|:-----|------:|:-------------|
| main.py | 120 | starts everything |
| a_rather_long_name.py | 7 | nearly nothing |

```python
def answer(x: int) -> str:
    return f"{x} is it"  # done
```

> quoted words
"""


class Shown(Terminal):
    """The terminal as it is, with events from here instead of a daemon."""

    def job(self, work: Coroutine[Any, Any, Any]) -> None:
        work.close()  # nothing is asked of a daemon

    def on_mount(self) -> None:
        self.editor.focus()
        self.status.state = ""
        self.desk.session = "s"
        self.desk.cwd = "/home/ada/project"
        self._windows = {"anthropic/claude": 200_000}


def _events() -> list[ev.Body]:
    call = ToolCall("c1", "bash", {"command": "make test"})
    edit = ToolCall("c2", "edit", {"path": "main.py"})
    change = Diff("main.py", "a\nold line\nc\n", "a\nnew line\nc\n")
    said = (Thinking("I should look first."), Text("I will run the tests."), call, edit)
    usage = Usage(30_000, 400)
    plan = (PlanEntry("run the tests", status="completed"), PlanEntry("mend them"))
    return [
        ev.TurnBegan("t1", (Text("run the tests and mend what fails"),), Who("terminal", "", "me")),
        ev.Spoke("t1", 1, said, "tool_use", usage, 0.0123, "anthropic/claude"),
        ev.CallStarted("t1", "c1", "bash"),
        ev.CallEnded("t1", "c1", "bash", "done", (Text("\n".join(f"ok {n}" for n in range(9))),)),
        ev.CallStarted("t1", "c2", "edit"),
        ev.CallEnded("t1", "c2", "edit", "done", (Text("ok"),), False, Detail((change,))),
        ev.Planned(plan),
        ev.Spoke("t1", 2, (Text(_ANSWER),), "end_turn", usage, 0.02, "anthropic/claude"),
        ev.TurnEnded("t1", "completed", "end_turn"),
        ev.TurnBegan("t2", (Text("and now?"),), Who("acp", "", "an editor")),
        ev.TurnEnded("t2", "failed", "error", "", "the provider is overloaded"),
    ]


def _ask() -> Ask:
    return Ask(
        "ask_1", "s", "tool", "Approve edit?", NOW * 1000, tool="edit", risk="medium",
        args={"path": "main.py"}, reason="edit needs your approval.", cwd="/home/ada/project",
        changes=(Change("main.py", "a\nold line\nc", "a\nnew\u202e line\nc"),),
        scopes=(Scope("file", "file", "changes of main.py"),),
    )  # fmt: skip


def _board() -> BoardAnswer:
    def row(name: str, status: str, asks: int, *who: Who) -> BoardRow:
        info = SessionInfo(
            name, "default", "/srv/work", "anthropic/claude", "supervised", status,  # type: ignore[arg-type]
            NOW * 1000, (NOW - 90) * 1000, title=f"the session {name}", origin="acp", cost=0.5,
        )  # fmt: skip
        return BoardRow(info, True, 0, who, asks)

    rows = [
        row("one", "waiting_input", 1, Who("acp", "", "an editor"), Who("zeroclaw", "", "tty 1")),
        row("two", "running", 0, Who("humanlayer", "", "CodeLayer")),
        row("three", "failed", 0),
        row("four", "idle", 0),
    ]
    return BoardAnswer(rows, False, 1.25)


def _drawn(app: "App[int]") -> str:
    width = app.size.width
    console = Console(width=width, force_terminal=True, color_system="standard")
    lines = [strip.render(console) for strip in app.screen._compositor.render_strips()]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _compare(name: str, shown: str) -> None:
    file = KEPT / f"{name}.ansi"
    if os.environ.get("WRITE_SNAPSHOTS") == "1":
        KEPT.mkdir(exist_ok=True)
        file.write_text(shown, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == shown, f"{name} looks different"


SIZES = pytest.mark.parametrize("width", [60, 100, 200])
THEMES = pytest.mark.parametrize("light", [False, True], ids=["dark", "light"])


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NO_COLOR", "COLORFGBG", "DRAGOMAN_CONFIG_DIR", "DRAGOMAN_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(boarding.time, "time", lambda: NOW)
    monkeypatch.setattr(question, "_LOOK", 0.001)  # keys answer at once


def _app(light: bool) -> Shown:
    return Shown(Wish("/home/ada/project"), light=light)


def _tell(app: Shown, *bodies: ev.Body) -> None:
    for seq, body in enumerate(bodies, 1):
        app.desk.story.take(ev.Event("s", NOW * 1000, body, seq, seq))
    app.desk.story.mode = "supervised"
    app._draw()


@SIZES
@THEMES
async def test_a_conversation(width: int, light: bool) -> None:
    app = _app(light)
    async with app.run_test(size=(width, 60)) as pilot:
        _tell(app, *_events())
        await pilot.pause()
        shown = _drawn(app)
    _compare(f"conversation-{width}-{'light' if light else 'dark'}", shown)


@SIZES
@THEMES
async def test_a_question(width: int, light: bool) -> None:
    app = _app(light)
    async with app.run_test(size=(width, 30)) as pilot:
        _tell(app, *_events()[:2], ev.Asked(_ask()))
        app.question.focus()
        await pilot.pause()
        await pilot.pause()
        shown = _drawn(app)
    assert "<U+202E>" in shown, "what hides is made visible"
    _compare(f"question-{width}-{'light' if light else 'dark'}", shown)


@SIZES
@THEMES
async def test_the_board(width: int, light: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    app = _app(light)

    async def read(board: Board) -> None:
        board._answer = _board()
        board._show()

    monkeypatch.setattr(Board, "_read", read)
    async with app.run_test(size=(width, 20)) as pilot:
        board = Board(app.link, app.inbox, "four")
        await app.push_screen(board)
        await read(board)
        await pilot.pause()
        assert len(board.query_one(Rows).rows) == 4
        shown = _drawn(app)
    _compare(f"board-{width}-{'light' if light else 'dark'}", shown)
