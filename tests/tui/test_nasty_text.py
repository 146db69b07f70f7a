"""What models, tools, files and clipboards may hold: shown whole, in its place, with no power."""

import random
import unicodedata
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text
from tests.tui.stage import Stage, said, until
from textual.events import Paste
from textual.geometry import Offset, Region
from textual.selection import Selection

from dragoman.engine import events as ev
from dragoman.engine.content import Diff, ToolCall
from dragoman.engine.visible import harmless
from dragoman.tui import paint, prose
from dragoman.tui.chunks import split
from dragoman.tui.piece import Kind, Piece
from dragoman.tui.rows import console, safe, wrap

_PARTS = [
    "# ", "## h\n", "- ", "  - ", "1. ", "   ", "\n", "\n\n", "> ", "| a | b |\n|---|:-:|\n",
    "| x | y | z |\n", "|", "```py\n", "```\n", "~~~\n", "`c`", "**b**", "~~s~~", "![i](p.png)",
    f"[l](http://x/{'y' * 70})", "日本語" * 9, "👩\u200d👩\u200d👧", "❤\ufe0f", "e\u0301", "שלום",
    "\x1b[31m", "\x1b]0;t\x07", "\x9b2J", "\u202e", "\x00", "\t", "\r", "word ", "w" * 130, "&amp;",
    "<b>", "\\", "---\n", "===\n", "\u200b", "\ufeff", "  \n", "\U000e0041", "\u00a0", "\u3000",
]  # fmt: skip
_KINDS: tuple[Kind, ...] = ("said", "you", "note", "call", "shell", "thought")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return Stage(str(tmp_path))


def _pieces(chance: random.Random, kind: Kind, text: str) -> list[Piece]:
    chunks = split(text) if kind == "said" else []
    found = [Piece(kind, chunk.text) for chunk in chunks] or [Piece(kind, text, name=text[:50])]
    for piece, chunk in zip(found, chunks, strict=False):
        piece.opener, piece.tight, piece.grows = chunk.opener, chunk.tight, chance.random() < 0.5
    for piece in found:
        piece.args = {"command": text}
        piece.outcome = chance.choice(["", "running", "done", "failed"])
    return found


@pytest.mark.parametrize("seed", range(4))
def test_no_row_is_wider_than_the_screen_or_steers_it(seed: int) -> None:
    chance = random.Random(seed)
    look = paint.Look()
    for _ in range(30):
        text = "".join(chance.choice(_PARTS) for _ in range(chance.randint(1, 80)))
        width = chance.choice([12, 20, 40, 59, 99, 199])
        look.open_thoughts = look.open_all = chance.random() < 0.5
        for kind in _KINDS:
            for piece in _pieces(chance, kind, text):
                for row in paint.rows(piece, width, look):
                    shown = row.shown.plain
                    assert cell_len(shown) <= width, (kind, width, shown)
                    kinds = {unicodedata.category(c) for c in shown if c != "\u200d"}
                    assert not kinds & {"Cc", "Cf", "Cs"}, (kind, shown)


def test_signs_of_every_language_stay_and_what_steers_goes() -> None:
    kept = "fr\u00a0: 日\u3000本 \U0001fa77 👩\u200d👧 \u0645\u06cc\u200c\u062e \ue0b0"
    assert safe(kept) == harmless(kept) == kept
    assert safe("a\x1b[2J\x9b\x07\u202eb\u2066\x7f") == "a�[2J���b��"
    assert safe("soft\u00adhyphen\u200b \ufeffbom\r\n\tx") == "softhyphen bom\n    x"
    assert harmless("a\tb\nc\x1b") == "a\tb\nc�"


@pytest.mark.parametrize("styled", [False, True])
def test_rows_that_were_wrapped_are_copied_as_what_was_wrapped(styled: bool) -> None:
    chance = random.Random(styled)
    for _ in range(300):
        words = [
            chance.choice(["a", "bb", "x" * chance.randint(1, 60), "日本語" * 5, "  ", "-"])
            for _ in range(chance.randint(1, 12))
        ]
        line = " ".join(words).rstrip()
        text = Text(line)
        if styled:
            text.stylize("bold", 0, 3)
        rows = wrap(text, chance.randint(4, 40))
        assert "".join((row.joins or "") + row.copy for row in rows) == line


async def test_an_address_over_several_rows_is_copied_whole(stage: Stage) -> None:
    address = f"https://example.org/{'x' * 150}/end"
    async with stage.run_test(size=(60, 20)):
        stage.tell(said("where?"), ev.TextDelta("t1", f"see {address} there"))
        copied = stage.view.get_selection(Selection(Offset(0, 0), Offset(59, stage.view.total)))
        assert copied is not None and f"see {address} there" in copied[0]


async def test_what_is_pasted_or_put_into_the_editor_cannot_steer(stage: Stage) -> None:
    async with stage.run_test() as pilot:
        stage.editor.post_message(Paste("a\x1b[31mb\x00c\x9bd\u202ee\r\nf\u00a0g"))
        await until(pilot, lambda: stage.editor.text)
        assert stage.editor.text == "a[31mbcde\nf\u00a0g"
        stage.editor.put("x\x1b]0;t\x07y")
        assert stage.editor.text == "x]0;ty"
        stage.notice("went \x1b[2J wrong")
        await pilot.pause()
        assert "\x1b" not in stage.shown()


async def test_output_that_came_while_something_beside_was_drawn_is_painted(stage: Stage) -> None:
    async with stage.run_test(size=(60, 20)) as pilot:
        call = ToolCall("c1", "bash", {"command": "make"})
        stage.tell(said("go"), ev.Spoke("t1", 1, (call,), "tool_use"))
        stage.tell(ev.CallStarted("t1", "c1", "bash"))
        await pilot.pause()
        stage.desk.story.take(ev.Event("s", 1, ev.Progress("t1", "c1", "first line\n"), 1, 1))
        stage.view.render_lines(Region(0, 0, 60, 15))  # a key, or the status line
        painted: list[Region] = []
        stage.view.refresh = lambda *regions, **more: painted.extend(regions)  # type: ignore[method-assign, assignment, misc]
        stage.view.update_story()
        row = next(y for y in range(15) if "first line" in stage.view.render_line(y).text)
        assert any(region.y <= row < region.bottom for region in painted)


def test_output_is_shown_as_a_terminal_would_leave_it() -> None:
    piece = Piece("shell", "\x1b[31mred\x1b[0m\n10%\r20%\r30%\n\x1b]0;t\x07done\r\n", name="make")
    shown = [row.copy for row in paint.rows(piece, 60, paint.Look())]
    assert shown[-3:] == ["red", "30%", "done"]


def test_large_changes_and_long_thoughts_are_drawn_without_looking_at_all_of_them() -> None:
    chance = random.Random(1)
    old = ["}" if chance.random() < 0.5 else f"x{chance.randint(0, 50)}" for _ in range(4_000)]
    new = ["new" if chance.random() < 0.05 else line for line in old]
    rows = paint.diff_rows(Diff("f", "\n".join(old), "\n".join(new)), 80, 40)
    assert 40 <= len(rows) <= 43 and "more lines" in rows[-1].copy
    thought = Piece("thought", "word " * 200_000)
    thought.grows = True
    look = paint.Look()
    look.open_thoughts = True
    assert len(paint.rows(thought, 80, look)) < 100


@pytest.mark.parametrize("language", ["python", "bash", "js", "html", "nonsense", ""])
def test_code_that_grows_has_the_same_lines_as_the_whole(language: str) -> None:
    text = 'def f():\n    """doc\n    more"""\n    return 1  # so\n\n' * 8 + "cat <<E\nx\nE\n"
    for end in range(0, len(text), 7):
        part = text[:end].rstrip("\n")
        grown = prose.coloured_so_far(part, language)
        assert [line.plain for line in grown] == part.split("\n")
    whole = prose.highlighted(text.rstrip("\n"), "python")
    grown = prose.coloured_so_far(text.rstrip("\n"), "python")
    assert [_styles(line) for line in grown] == [_styles(line) for line in whole]


def _styles(line: Text) -> list[str]:
    return [str(line.get_style_at_offset(console, at)) for at in range(len(line))]


async def test_a_thought_is_counted_word_by_word_however_it_is_cut(stage: Stage) -> None:
    async with stage.run_test() as pilot:
        stage.tell(said("think"))
        for part in ("I th", "ink ", "so", " ther", "efore", " I am"):
            stage.tell(ev.ThoughtDelta("t1", part))
        await pilot.pause()
        assert "thinking, 6 words" in stage.shown()
        stage.tell(ev.TextDelta("t1", "yes"), ev.ThoughtDelta("t1", "more"))
        kinds = [(piece.kind, piece.text) for piece in stage.desk.story.pieces[1:]]
        assert kinds == [
            ("thought", "I think so therefore I am"),
            ("said", "yes"),
            ("thought", "more"),
        ]
