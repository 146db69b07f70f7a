"""The rows on the screen are those of the story, whatever moved them since they were painted."""

import random

import pytest
from tests.tui.test_snapshots import Shown

from dragoman.tui.begin import Wish
from dragoman.tui.conversation import Conversation
from dragoman.tui.piece import Piece


def _piece(chance: random.Random, number: int) -> Piece:
    """A piece whose height is guessed wrongly more often than not; every row names it."""
    kind = chance.randrange(3)
    if kind == 0:
        return Piece("note", f"note {number}", name="info")
    if kind == 1:
        rows = chance.randrange(1, 25)
        return Piece("said", "\n\n".join(f"said {number}.{at}" for at in range(rows)))
    return Piece("said", "\n".join(f"word {number}.{at}" for at in range(chance.randrange(1, 25))))


def _screen(view: Conversation) -> list[str]:
    return [view.render_line(y).text[:-1].rstrip() for y in range(view.size.height)]


def _truth(view: Conversation) -> list[str]:
    return [
        row.shown.plain.rstrip()
        for at in range(len(view.story.pieces))
        for row in view._rows(at).rows
    ]


def _part_of(shown: list[str], whole: list[str]) -> bool:
    return any(whole[at : at + len(shown)] == shown for at in range(len(whole) - len(shown) + 1))


@pytest.mark.parametrize("seed", range(8))
async def test_scrolling_adding_and_reading_older_repeat_and_lose_no_row(seed: int) -> None:
    chance = random.Random(seed)
    app = Shown(Wish("/"))
    async with app.run_test(size=(60, 30)) as pilot:
        view = app.view
        for number in range(1_000, 1_060):
            view.story.put(_piece(chance, number))
        view.show(view.story)
        await pilot.pause()
        for step in range(60):
            act = chance.randrange(8)
            before = _screen(view)
            if act < 3:
                view.scroll_page(-1)
                shown = _screen(view)
                if view.top:
                    assert shown[-2:] == before[:2], "a page up goes on where the reader was"
            elif act < 5:
                view.scroll_page(1)
            elif act == 5:
                view.story.put(Piece("note", f"later {step}", name="info"))
                view.update_story()
            elif act == 6:
                older = [_piece(chance, step * 10 + at) for at in range(5)]
                view.story.prepend(older)
                view.prepended(len(older))
            else:
                chance.choice([view.to_start, view.to_end, view.redraw])()
            assert _part_of(_screen(view), _truth(view)), f"step {step}, act {act}"


async def test_a_piece_is_not_taken_for_one_that_was_there_before() -> None:
    app = Shown(Wish("/"))
    async with app.run_test(size=(60, 30)):
        view = app.view
        for number in range(50):
            view.story.pieces[:] = [Piece("note", f"note {number}", name="info")]
            view.story.dirty = 0
            view.update_story()
            assert f"note {number}" in "\n".join(_screen(view))


async def test_the_beginning_is_shown_from_its_first_row() -> None:
    app = Shown(Wish("/"))
    async with app.run_test(size=(60, 30)):
        view = app.view
        for number in range(40):
            view.story.put(Piece("said", "\n\n".join(f"{number}.{at}" for at in range(9))))
        view.show(view.story)
        view.to_start()
        assert "0.0" in "\n".join(_screen(view)[:3])
