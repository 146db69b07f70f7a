"""Where prompts are typed, in a screen without a terminal: `editor`, `vi`, `choices`, `writing`,
and the line below, `status`.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.events import Key
from textual.message import Message
from textual.pilot import Pilot

from dragoman.engine.content import Image, Text
from dragoman.tui.choices import Choice
from dragoman.tui.editor import _is_path
from dragoman.tui.status import Status
from dragoman.tui.vi import Vi
from dragoman.tui.writing import Writing

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 8


class Screen(App[None]):
    """The part of the terminal that is typed into; keeps what it tells."""

    def __init__(self, folder: Path, vi: bool) -> None:
        super().__init__()
        self.writing = Writing(str(folder), str(folder / "config"), vi=vi)
        self.status = Status()
        self.said: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.writing
        yield self.status

    def on_mount(self) -> None:
        self.writing.editor.focus()

    def on_writing_said(self, event: Writing.Said) -> None:
        self.said.append(event)

    def on_writing_trouble(self, event: Writing.Trouble) -> None:
        self.said.append(event)


@asynccontextmanager
async def screen(folder: Path, *, vi: bool = False) -> AsyncIterator[tuple[Screen, Pilot[None]]]:
    app = Screen(folder, vi)
    async with app.run_test(size=(60, 20)) as pilot:
        yield app, pilot


def said(app: Screen) -> list[Any]:
    return [getattr(one, "text", "") for one in app.said]


async def test_editor_sends_breaks_lines_and_walks_through_the_past(tmp_path: Path) -> None:
    async with screen(tmp_path) as (app, pilot):
        editor = app.writing.editor
        editor.put("ab\\")
        await pilot.press("enter", "c", "ctrl+j", "e")
        assert editor.text == "ab\nc\ne"
        await pilot.press("enter")
        assert said(app) == ["ab\nc\ne"] and editor.text == ""
        await pilot.press("enter")  # nothing is not sent
        await pilot.press("tab")  # no turn runs: nothing to queue behind
        await pilot.press("up")
        assert editor.text == "ab\nc\ne" and len(app.said) == 1
        await pilot.press("down", "x")
        assert editor.text == "x"
        editor.busy = True
        await pilot.press("tab")
        assert said(app)[-1] == "x" and app.said[-1].queued  # type: ignore[attr-defined]


async def test_editor_completes_commands_and_files(tmp_path: Path) -> None:
    (tmp_path / "some file.txt").write_text("")
    async with screen(tmp_path) as (app, pilot):
        editor, choices = app.writing.editor, app.writing.choices
        editor.put("/mo")
        await pilot.press("d")
        assert [one.value for one in choices.found][:2] == ["model", "mode"]
        await pilot.press("down")
        assert choices.chosen == "mode"
        await pilot.press("tab")
        assert editor.text == "/mode " and not editor.choosing
        editor.put("see @som")
        await pilot.press("e")
        await app.workers.wait_for_complete()
        assert choices.chosen == "some file.txt"
        await pilot.press("tab")
        assert editor.text == 'see @"some file.txt" '
        assert editor.word() == ("", "")
        await pilot.press("escape")


async def test_editor_keeps_long_pastes_beside_the_text(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(PNG)
    async with screen(tmp_path) as (app, pilot):
        writing = app.writing
        from textual.events import Paste

        writing.editor.post_message(Paste("short\r\ntext"))
        await pilot.pause()
        assert writing.editor.text == "short\ntext" and writing.bag.things == []
        writing.editor.post_message(Paste("line\n" * 30))
        writing.editor.post_message(Paste(f"'{picture}'"))
        await pilot.pause()
        names = [name for name, _ in writing.bag.things]
        assert names == ["31 pasted lines", "a.png"]
        assert isinstance(writing.bag.things[1][1], Image)
        writing.editor.put("")
        await pilot.press("backspace")
        assert [name for name, _ in writing.bag.things] == ["31 pasted lines"]


def test_editor_knows_a_dropped_file(tmp_path: Path) -> None:
    there = tmp_path / "x.txt"
    there.write_text("")
    assert _is_path(f"{there}\n") and _is_path(f"file://{there}")
    assert not _is_path(f"{there}x") and not _is_path("words") and not _is_path(f"{there}\n/etc")


async def test_vi_moves_deletes_yanks_and_counts(tmp_path: Path) -> None:
    async with screen(tmp_path, vi=True) as (app, _):
        editor = app.writing.editor
        vi = editor.vi
        assert isinstance(vi, Vi) and vi.shown == "insert"
        assert not vi.take(editor, "x", "x")  # it is typed

        def press(*keys: str) -> None:
            for key in keys:
                vi.take(editor, key, None if key == "escape" else key)

        editor.put("one two three\nsecond\nthird")
        press("escape", "g", "g", "d", "w")
        assert editor.text.startswith("two three")
        press("2", "d")
        assert vi.shown == "normal 2d"
        press("d")
        assert editor.text == "third" and vi.yanked == "two three\nsecond\n"
        press("p")
        assert editor.text == "third\ntwo three\nsecond"
        press("g", "g", "D", "j", "0", "x", "x")
        assert editor.text == "\no three\nsecond"
        press("u", "G", "o")
        assert editor.text.endswith("\nsecond\n") and vi.inserting
        press("escape", "3", "escape")
        assert vi.count == "" and vi.shown == "normal"
        assert not vi.take(editor, "escape", None)  # nothing was half typed: it is the turn's
        press("k", "c", "c")
        assert editor.text.endswith("\n\n") and vi.inserting
        vi.inserting = False
        assert not vi.take(editor, "ctrl+s", None)


@pytest.mark.parametrize("char", ["²", "٣"])
async def test_vi_counts_with_plain_digits_only(tmp_path: Path, char: str) -> None:
    async with screen(tmp_path, vi=True) as (app, pilot):
        vi = app.writing.editor.vi
        assert vi is not None
        vi.inserting = False
        assert vi.take(app.writing.editor, char, char) and vi.count == ""


async def test_commands_that_become_known_while_one_is_typed_are_offered_at_once(
    tmp_path: Path,
) -> None:
    async with screen(tmp_path) as (app, pilot):
        await pilot.press("slash", "g", "r", "e")
        assert not app.writing.choices.found
        app.writing.know([Choice("greet", "says hello")])
        assert app.writing.choices.chosen == "greet" and app.writing.editor.choosing


async def test_choices_scroll_so_that_the_chosen_one_is_in_sight(tmp_path: Path) -> None:
    async with screen(tmp_path) as (app, pilot):
        choices = app.writing.choices
        choices.put([Choice(f"n{number}\n\x1b") for number in range(20)], "@")
        await pilot.pause()
        choices.move(-1)
        assert choices.chosen == "n19\n\x1b"
        assert "▸ @n19 \ufffd" in choices.render_line(7).text
        assert choices.render_line(0).text.strip() == "@n12 \ufffd"
        picked: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(choices, "post_message", lambda event: picked.append(event.value))
            choices.on_click(SimpleNamespace(y=0))
            choices.on_click(SimpleNamespace(y=30))
        assert picked == ["n12\n\x1b"]
        choices.put([])
        assert choices.chosen == "" and not choices.display
        choices.move(1)


async def test_writing_gives_back_what_could_not_be_sent(tmp_path: Path) -> None:
    async with screen(tmp_path) as (app, pilot):
        writing = app.writing
        writing.give_back("words")
        assert writing.editor.text == "words"
        writing.give_back("others")
        assert writing.editor.text == "words"  # what was typed meanwhile stays
        writing.attach_file("nowhere.txt")
        await pilot.pause()
        assert "nowhere.txt" in said(app)[-1]
        assert writing.toggle_vi() is True and writing.toggle_vi() is False


async def test_writing_offers_what_a_command_is_to_be_given(tmp_path: Path) -> None:
    async with screen(tmp_path) as (app, pilot):
        app.writing.offer("mode", [Choice("readonly"), Choice("full")])
        await pilot.press("down", "enter")
        assert said(app) == ["/mode full"]
        app.writing.carry("x", Text("y"))
        app.writing.editor.past.add("earlier prompt")
        app.writing.editor.put("draft")
        app.writing.search()
        await pilot.pause()
        app.writing.editor.insert("earl")
        await pilot.pause()
        assert app.writing.choices.chosen == "earlier prompt"
        await pilot.press("escape")
        assert app.writing.editor.text == "draft"


async def test_status_leaves_the_least_important_out_first() -> None:
    status = Status()
    status.state = ""
    assert status.line(30).plain == "● ready" + " " * 23
    status.model, status.mode, status.folder, status.cost = "p/m", "full", "/w" * 30, 0.5
    status.window, status.context, status.inbox = 100, 90, 1
    wide = status.line(200).plain
    assert wide.index("▲ 1 waits (ctrl+n)") < wide.index("p/m") < wide.index("▰▰▰▰▱ 90%")
    assert "$0.5000" in wide and "…" in wide
    narrow = status.line(45).plain
    assert "▲ 1 waits" in narrow and "/w" not in narrow and "full" not in narrow
    assert status.line(5).plain.endswith("…") and len(status.line(5)) == 5


async def test_status_says_what_is_waited_for() -> None:
    status = Status()
    assert status.line(40).plain.startswith("◌ connecting")
    status.state, status.waits, status.began, status.queued = "", "bash", time.time() - 65, 2
    assert "waits for bash 1 min 5 s, 2 queued · esc stops" in status.line(80).plain
    status.waits = "thinking"
    assert "waits for" not in status.line(80).plain
    status.asking = True
    assert "waits for your answer" in status.line(80).plain
    status.notice, status.below = "renamed", True
    assert status.line(80).plain.startswith("renamed  ↓ more below")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("ctrl+u",), "xyz"),
        (("backspace",), "abxyz"),
        (("ctrl+w",), "xyz"),
        (("home",), "xyzabc"),
        (("left", "left"), "axyzbc"),
        (("left", "delete"), "abxyz"),
        (("home", "right", "ctrl+k"), "axyz"),
        (("shift+left",), "abxyz"),
        (("backspace", "ctrl+z", "end"), "abcxyz"),
    ],
)
async def test_keys_are_taken_in_the_order_in_which_they_were_typed(
    tmp_path: Path, keys: tuple[str, ...], text: str
) -> None:
    """All at once, as after a pause of the terminal."""
    async with screen(tmp_path) as (app, pilot):
        app.writing.editor.put("abc")
        await pilot.pause()
        for key in keys:
            app.post_message(Key(key, None))
        for letter in "xyz":
            app.post_message(Key(letter, letter))
        await pilot.pause()
        assert app.writing.editor.text == text
