"""Keys on the board are the board's: nothing behind it hears them."""

from pathlib import Path

import pytest
from tests.tui.stage import Stage, until
from textual.app import App, ComposeResult
from textual.events import Key

from dragoman.client.answers import Board as Answer
from dragoman.client.answers import BoardRow
from dragoman.engine import events as ev
from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionInfo
from dragoman.tui.board import Board, Line, Rows
from dragoman.tui.piece import Piece


def _rows() -> list[BoardRow]:
    return [
        BoardRow(
            SessionInfo(
                f"s{n}", "default", "/srv", "demo/demo", "supervised", "idle", 1_000, 2_000 - n,
                title=f"the session {n}", origin="acp",
            ), True, 0, (), 0,
        )
        for n in range(30)
    ]  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    async def read(board: Board) -> None:
        board._answer = Answer(_rows(), False, 0.0)
        board._show()

    monkeypatch.setattr(Board, "_read", read)
    return Stage(str(tmp_path))


async def _open(stage: Stage, pilot: object) -> Board:
    await pilot.press("ctrl+s")  # type: ignore[attr-defined]
    await until(pilot, lambda: isinstance(stage.screen, Board) and stage.screen._answer)  # type: ignore[arg-type]
    assert isinstance(stage.screen, Board)
    return stage.screen


async def test_pages_and_letters_move_on_the_board_and_not_behind_it(stage: Stage) -> None:
    async with stage.run_test(size=(80, 20)) as pilot:
        for number in range(100):
            stage.desk.story.put(Piece("note", f"note {number}", name="info"))
        stage._draw()
        stage.editor.put("a draft")
        before = stage.view.top, stage.view.look.open_thoughts
        board = await _open(stage, pilot)
        await pilot.press("pagedown", "pagedown")
        assert board.query_one(Rows).at == 20
        await pilot.press("pageup", "ctrl+t", "ctrl+d", "ctrl+c")
        assert board.query_one(Rows).at == 10
        assert stage.screen is board and (stage.view.top, stage.view.look.open_thoughts) == before
        assert "ctrl+c again leaves" in stage.shown(), "and it says so where it can be read"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: stage.screen is not board)
        assert stage.editor.text == "a draft"


async def test_a_filter_is_typed_and_a_fault_shows_no_escape(stage: Stage) -> None:
    async with stage.run_test(size=(80, 20)) as pilot:
        board = await _open(stage, pilot)
        await pilot.press("slash", *"session 29", "enter")
        await until(pilot, lambda: len(board.query_one(Rows).rows) == 1)
        stage.host.refuse = BadInput("gone \x1b[2J wrong")
        await pilot.press("x")
        await until(pilot, lambda: "wrong" in stage.shown())
        assert "\x1b" not in stage.shown()


async def test_a_session_that_is_watched_is_drawn_in_beats(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.run_test(size=(80, 20)) as pilot:
        board = await _open(stage, pilot)
        drawn: list[int] = []
        monkeypatch.setattr(board._view, "update_story", lambda: drawn.append(1))
        for _ in range(200):
            board._desk.story.take(ev.Event("s1", 1, ev.TextDelta("t1", "word ")))
            board._told()
        await until(pilot, lambda: drawn)
        await pilot.pause()
        assert drawn == [1]


async def test_the_line_takes_its_keys_in_their_order() -> None:
    class Typed(App[None]):
        def compose(self) -> ComposeResult:
            yield Line("abc", select_on_focus=False)

    app = Typed()
    async with app.run_test() as pilot:
        for key in ("backspace", "home"):
            app.post_message(Key(key, None))
        for letter in "xyz":
            app.post_message(Key(letter, letter))
        await pilot.pause()
        assert app.query_one(Line).value == "xyzab"
