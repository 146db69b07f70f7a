"""When text that streams is drawn: ten times a second, and never just before a key."""

import asyncio

import pytest
from tests.tui.test_snapshots import Shown

from dragoman.tui import app as tui
from dragoman.tui.begin import Wish


async def test_while_somebody_types_what_is_due_is_drawn_after_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Shown(Wish("/"))
    async with app.run_test() as pilot:
        drawn: list[str] = []

        def update_story() -> bool:
            drawn.append(app.editor.text)
            return True

        monkeypatch.setattr(app.view, "update_story", update_story)
        loop = asyncio.get_running_loop()
        with monkeypatch.context() as slow:  # a busy machine takes longer than people type
            slow.setattr(tui, "_TYPING", 3600.0)
            slow.setattr(tui, "_LATEST", 3600.0)
            app._typed_at, app._drawn_at, app._due = loop.time(), loop.time() - 0.2, True
            app._ripe()  # its time has come, and the next key is near
            assert drawn == []
            await pilot.press("x")
            await pilot.pause()
            assert drawn == ["x"]  # the key first

        app._typed_at, app._drawn_at, app._due = loop.time(), loop.time() - 0.31, True
        app._ripe()  # nobody waits longer than that, not even for keys
        app._typed_at, app._due = loop.time() - 0.26, True
        app._ripe()  # and nobody types any more
        assert drawn == ["x", "x", "x"]
