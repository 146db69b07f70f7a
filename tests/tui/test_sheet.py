"""Rows that are scrolled: only those in view are painted."""

import pytest
from textual.app import App, ComposeResult

from dragoman.tui import strips
from dragoman.tui.rows import plain
from dragoman.tui.strips import Sheet


class _App(App[None]):
    def compose(self) -> ComposeResult:
        yield Sheet(id="sheet")


async def test_only_what_is_in_view_is_painted_and_the_last_row_can_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    painted: list[str] = []
    draw = strips.strip

    def strip(text: object) -> object:
        painted.append(str(text))
        return draw(text)  # type: ignore[arg-type]

    monkeypatch.setattr(strips, "strip", strip)
    app = _App()
    async with app.run_test(size=(20, 5)) as pilot:
        rows = app.query_one(Sheet)
        rows.styles.max_height = 5
        rows.put([plain(f"row {n}") for n in range(10_000)])
        await pilot.pause()
        assert rows.max_scroll_y == 9_995 and "row 0" in painted and "row 9999" not in painted
        rows.scroll_end(animate=False, immediate=True)
        await pilot.pause()
        assert "row 9999" in painted and len(painted) < 100
        rows.put([plain("one")])
        await pilot.pause()
        assert rows.max_scroll_y == 0 and rows.size.height == 1
