"""What is drawn without a terminal: `rows`, `strips`, `prose`, `paint`."""

import random
import subprocess
import sys
from typing import Any

import pytest
from rich.text import Text

from dragoman.engine.content import Diff, PlanEntry
from dragoman.tui import paint, prose
from dragoman.tui.paint import Look
from dragoman.tui.piece import Piece
from dragoman.tui.rows import Row, _even, _wrapped, beside, cut, safe, wrap
from dragoman.tui.strips import strip


def shown(rows: list[Row]) -> list[str]:
    return [row.shown.plain for row in rows]


# --- rows ---


@pytest.mark.parametrize("text", ["one two three four", "x" * 25, "a  b   c", "wörter über länge"])
def test_rows_wrap_keeps_every_letter_within_the_width(text: str) -> None:
    rows = wrap(Text(text), 8)
    assert all(row.shown.cell_len <= 8 for row in rows)
    assert "".join("".join(row.copy.split()) for row in rows) == "".join(text.split())
    assert [row.joins is not None for row in rows] == [False, *[True] * (len(rows) - 1)]


def test_rows_wrap_says_the_same_for_plain_and_styled_text() -> None:
    text = "some words that are wrapped, and a_very_long_word_here"
    styled = Text(text)
    styled.stylize("bold", 0, 4)
    assert shown(wrap(Text(text), 12)) == shown(wrap(styled, 12))
    assert shown(wrap(Text("a\n\nb"), 12)) == ["a", "", "b"]


def test_rows_beside_marks_the_first_and_copies_without_decoration() -> None:
    rows = beside(wrap(Text("aaaa bbbb\ncc"), 5), Text("> "), Text("  "), ("- ", "  "))
    assert shown(rows) == ["> aaaa", "  bbbb", "  cc"]
    assert [row.copy for row in rows] == ["- aaaa", "bbbb", "  cc"]  # the second goes on a line


def test_rows_cut_counts_columns_not_letters() -> None:
    assert cut("short", 5) == "short"
    assert cut("longer", 5) == "long…"
    assert cut("日本語", 5) == "日本…"
    assert cut("x", 0) == "…"


def test_rows_safe_takes_the_power_to_steer() -> None:
    assert safe("a\x1b[2Jb\x07\r\n\tc") == "a\ufffd[2Jb\ufffd\n    c"
    assert safe("👩\u200d💻\u202e") == "👩\u200d💻\ufffd"


# --- strips ---


def test_strips_give_every_part_a_style_and_leave_nothing_empty() -> None:
    whole = strip(Text("all of it", "bold"))
    assert [(one.text, bool(one.style and one.style.bold)) for one in whole] == [
        ("all of it", True)
    ]
    assert strip(Text("")).cell_length == 0 and not list(strip(Text("")))
    mixed = strip(Text.assemble(("a", "red"), "b"))
    assert "".join(one.text for one in mixed) == "ab"
    assert all(one.style is not None for one in mixed)


# --- prose ---


def test_prose_draws_lists_with_their_numbers_and_depth() -> None:
    assert shown(prose.rows("9. nine\n10. ten", 30)) == [" 9. nine", "10. ten"]
    assert shown(prose.rows("- a\n  - b\n    - c\n      - d", 30)) == [
        "• a", "  ◦ b", "    ▪ c", "      ▪ d",
    ]  # fmt: skip


def test_prose_shows_where_a_link_leads() -> None:
    (row,) = prose.rows("see [the bank](http://evil.example)", 80)
    assert row.shown.plain == "see the bank (http://evil.example)"
    (same,) = prose.rows("<http://x.example>", 80)
    assert same.shown.plain == "http://x.example"


def test_prose_goes_on_inside_of_a_fence() -> None:
    rows = prose.rows("def f():\n\treturn 1\n", 40, opener="```python")
    assert shown(rows) == ["  def f():", "      return 1"]
    assert [row.copy for row in rows] == ["def f():", "    return 1"]


def test_prose_table_is_never_wider_than_the_screen() -> None:
    text = "| a | b |\n|--:|:-:|\n| 1 | " + "many words " * 8 + "|\n"
    for width in (80, 30, 12, 8):
        rows = prose.rows(text, width)
        assert all(row.shown.cell_len <= width for row in rows)
    assert rows[0].copy == "a\tb" and rows[1].copy == "---\t---"


def test_prose_of_an_unknown_language_and_of_nothing() -> None:
    assert shown(prose.code("x = 1", "no-such-language", 20)) == ["  x = 1"]
    assert shown(prose.code("", "", 20)) == ["  "]
    assert prose.rows("", 20) == wrap(Text(""), 20)


@pytest.mark.parametrize("depth", [3, 25, 120, 700])
def test_prose_shows_the_words_however_deep_they_are(depth: int) -> None:
    for text in (">" * depth + " inmost", "**" * depth + "inmost" + "**" * depth):
        assert "inmost" in "".join(shown(prose.rows(text, 40))).replace("▎", "").replace(" ", "")


def test_prose_keeps_lines_of_code_apart() -> None:
    lines = prose.highlighted('a = """\nb\n"""\nc', "python")
    assert [line.plain for line in lines] == ['a = """', "b", '"""', "c"]


# --- paint ---


def painted(piece: Piece, width: int = 60, **look: Any) -> list[str]:
    wanted = Look()
    for name, value in look.items():
        setattr(wanted, name, value)
    return shown(paint.rows(piece, width, wanted))


def test_paint_cuts_long_output_at_its_beginning_or_its_end() -> None:
    piece = Piece("call", "\n".join(f"line {n}" for n in range(9)), name="bash")
    piece.outcome = "running"
    assert painted(piece)[2:4] == ["│ … 3 more lines, ctrl+o opens", "│ line 3"]
    piece.outcome = "done"
    assert painted(piece)[-2:] == ["│ line 5", "│ … 3 more lines, ctrl+o opens"]
    assert painted(piece, open_all=True)[-1] == "│ line 8"


def test_paint_shows_the_end_of_what_failed_and_says_the_command_once() -> None:
    text = "$ make\n\n" + "".join(f"line {n}\n" for n in range(9)) + "\n[exit 2]  Took 0.1s"
    piece = Piece("call", text, name="bash")
    piece.args, piece.outcome = {"command": "make"}, "failed"
    assert painted(piece)[1:3] == ["✗ bash make", "│ … 5 more lines, ctrl+o opens"]
    assert painted(piece)[-1] == "│ [exit 2]  Took 0.1s"
    piece.outcome = "done"
    assert painted(piece)[2] == "│ line 0" and painted(piece, open_all=True)[2] == "│ line 0"
    piece.args = {"command": "mak"}
    assert painted(piece)[2] == "│ $ make"


def test_paint_cuts_a_long_head_and_opens_it() -> None:
    piece = Piece("call", name="mcp__x__y")
    piece.args = {"data": "word " * 10_000}
    closed, whole = painted(piece), painted(piece, open_all=True)
    assert len(closed) < 12 and closed[-1].endswith(" more characters, ctrl+o opens")
    assert len(whole) > 800 and whole[-1].endswith('"}')
    assert len(painted(piece, width=20)) < 20
    piece.args = {"command": "x" * 1_000_000}
    assert len(painted(piece, open_all=True)) < 2_100


def test_paint_opens_one_card_or_all_but_one() -> None:
    piece, look = Piece("call"), Look()
    assert not look.opened(piece)
    look.open_calls.add(id(piece))
    assert look.opened(piece)
    look.open_all = True
    assert not look.opened(piece)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (None, ""),
        ({}, ""),
        ({"command": "ls -l"}, "ls -l"),
        ({"pattern": "x", "path": "src"}, "x in src"),
        ({"pattern": "x"}, "x"),
        ({"pattern": "x", "path": 5}, "x"),
        ({"n": 1}, '{"n":1}'),
        ({"": '{"path": "a'}, '{"path": "a'),  # no JSON: as it was written
    ],
)
def test_paint_tells_a_call_in_few_words(args: dict[str, Any] | None, said: str) -> None:
    assert paint.told("tool", args) == said


def test_paint_counts_what_a_difference_adds_and_removes() -> None:
    rows = shown(paint.diff_rows(Diff("a.txt", "1\n2\n3\n", "1\n2b\n3\n"), 40))
    assert rows[0] == "a.txt  +1 −1"
    assert rows[1:] == ["   1  1", "   2 -2", "   2 +2b", "   3  3"]
    assert shown(paint.diff_rows(Diff("b", None, "x"), 40))[0] == "b  new file"
    many = paint.diff_rows(Diff("c", "", "x\n" * 100), 40, most=10)
    assert len(many) == 12 and "90 more lines" in many[-1].shown.plain


def test_paint_draws_plans_ends_and_prompts() -> None:
    plan = Piece("plan")
    plan.plan = (PlanEntry("one", status="completed"), PlanEntry("two", status="in_progress"))
    assert painted(plan) == ["", "☰ plan 1/2", "  ✓ one", "  ▸ two"]
    assert painted(Piece("ended", "no key", name="failed")) == ["", "✗ failed: no key"]
    assert painted(Piece("ended", name="cancelled")) == ["", "■ cancelled"]
    you = Piece("you", "go on", name="phone (acp)")
    you.outcome = "steered"
    assert painted(you)[1:] == ["› go on", "  from phone (acp), into the running turn"]


def test_paint_folds_thoughts_until_they_are_wanted() -> None:
    piece = Piece("thought", "one two three")
    assert painted(piece) == ["", "∴ thinking, 3 words"]
    assert painted(piece, open_thoughts=True) == ["", "∴ one two three"]


@pytest.mark.parametrize("kind", ["you", "said", "thought", "call", "plan", "note", "ended"])
def test_paint_estimates_some_rows_for_every_kind(kind: Any) -> None:
    assert 1 <= paint.estimate(Piece(kind, "a\nb"), 40) <= 6


def test_plain_words_need_no_parser_and_prepared_ones_load_nothing() -> None:
    program = """
import sys
from dragoman.tui import prose
prose.rows("some plain words", 80)
print("markdown_it" in sys.modules, "pygments.lexers" in sys.modules)
prose.prepare()
before = set(sys.modules)
prose.rows("# a title", 80)
print(sorted(set(sys.modules) - before))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout.splitlines() == ["False False", "[]"], said.stderr


def test_signs_of_one_column_are_wrapped_the_quick_way_and_alike() -> None:
    chance = random.Random(5)
    for _ in range(300):
        words = ["".join(chance.choices("aé—“ßж’", k=chance.randint(1, 14))) for _ in range(40)]
        text = " ".join(words)
        width = chance.randint(15, 60)
        assert _even(text)
        quick = wrap(Text(text), width)
        slow = _wrapped(Text(text), width) if len(text) > width else quick
        assert [row.shown.plain for row in quick] == [row.shown.plain for row in slow]
        assert "".join((row.joins or "") + row.copy for row in quick) == text
    assert not _even("一") and not _even("e\u0301") and not _even("\u200d")


def test_what_stands_beside_keeps_its_looks() -> None:
    plain, styled = Row(Text("a"), "a"), Row(Text("b", "bold"), "b")
    first, second, third = beside([plain, styled, plain], Text("› ", "cyan"), Text("  "))
    assert first.shown.plain == "› a" and first.shown.spans
    assert second.shown.plain == "  b" and second.shown.spans[0].start == 2
    assert third.shown.plain == "  a" and not third.shown.spans
