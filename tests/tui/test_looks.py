"""How it looks: narrow and wide, resized, without colours, in lines only; what is copied."""

import subprocess
import sys
from pathlib import Path

from tests.tui.panes import Home


def test_60_columns_200_columns_and_a_resize_in_between(home: Home) -> None:
    # Both variables are of another terminal, as when somebody exports them.
    pane = home.open('COLUMNS=80 LINES=24 dragoman "list the files"', width=60, height=20)
    shown = pane.wait("● ls .", "● ready")
    assert max(len(line) for line in shown.splitlines()) <= 60
    pane.resize(200, 40)
    pane.match(r"● ready {60,}")
    pane.wait("supervised", "● ls .")
    pane.resize(60, 20)
    shown = pane.wait("● ls .", "● ready")
    assert max(len(line) for line in shown.splitlines()) <= 60


def test_no_color_writes_no_colours_and_otherwise_only_the_16(home: Home) -> None:
    pane = home.open('NO_COLOR=1 dragoman "list the files"')
    pane.wait("● ls .", "● ready")
    assert _colours(pane.screen(colours=True)) <= {39, 49}, "nothing but the terminal's own"
    other = home.open('dragoman "list the files"')
    other.wait("● ls .", "● ready")
    found = _colours(other.screen(colours=True))
    assert found and found <= {*range(30, 38), *range(90, 98), 39, 49, *range(40, 48)}


def _colours(screen: str) -> set[int]:
    import re

    codes: set[int] = set()
    for sequence in re.findall(r"\x1b\[([0-9;]*)m", screen):
        numbers = [int(one or 0) for one in sequence.split(";")]
        codes |= {one for one in numbers if one >= 30}
    return codes


def test_lines_only_for_screen_readers(home: Home) -> None:
    pane = home.open("dragoman --plain")
    pane.wait("dragoman in", "/help tells the commands")
    pane.type("say a plain word")
    pane.press("Enter")
    pane.wait("agent: a plain word", "turn completed")
    pane.type("run touch plain.txt")
    pane.press("Enter")
    pane.wait("question: ", "touch plain.txt", "answer: y, n")
    pane.type("y")
    pane.press("Enter")
    pane.wait("tool: bash done")
    assert (home.work / "plain.txt").exists()
    raw = pane.screen(colours=True)
    assert "\x1b[" not in raw, "nothing is drawn, only said"
    pane.type("/sesions")
    pane.press("Enter")
    pane.wait("problem: There is no command /sesions; did you mean /sessions?")
    pane.type("/quit")
    pane.press("Enter")
    pane.wait("left with 0")


def test_lines_only_ctrl_c_stops_the_turn_and_leaves_at_the_second_time(home: Home) -> None:
    pane = home.open("dragoman --plain")
    pane.wait("/help tells the commands")
    pane.type("count slowly to 3000")
    pane.press("Enter")
    pane.wait("agent: 1 2 3")
    pane.press("C-c")
    pane.wait("the turn is stopped; ctrl+c again leaves", "turn cancelled")
    pane.type("say still here")
    pane.press("Enter")
    pane.wait("agent: still here", "turn completed")
    pane.press("C-c")  # a line was typed: this is a first one again
    pane.wait("completed\n^C\nctrl+c again leaves")
    pane.press("C-c")
    pane.wait("come back with: dragoman -r ", "left with 0")


def test_a_mouse_selection_copies_text_and_no_gutters(home: Home) -> None:
    pane = home.open('dragoman "list the files"')
    (home.work / "x").write_text("")
    pane.wait("● ls .", "● ready")
    row = next(n for n, line in enumerate(pane.screen().splitlines(), 1) if "● ls ." in line)
    pane._tmux("set-option", "-s", "set-clipboard", "on")
    _mouse(pane, f"\x1b[<0;1;{row}M", f"\x1b[<32;40;{row + 1}M", f"\x1b[<0;40;{row + 1}m")
    pane.press("C-c")
    pane.wait("copied")
    copied = subprocess.run(
        ["tmux", "-L", pane.name, "show-buffer"], capture_output=True, text=True
    ).stdout
    assert "ls ." in copied and "│" not in copied and "●" not in copied


def _mouse(pane: object, *sequences: str) -> None:
    for one in sequences:
        pane.type(one)  # type: ignore[attr-defined]


def test_nothing_flickers_over_a_slow_line_while_an_answer_streams(home: Home) -> None:
    """Frames arrive in pieces there; whatever was drawn stays until something else stands there."""
    line = f"{sys.executable} {Path(__file__).parent / 'slow_line.py'}"
    pane = home.open(f"{line} dragoman --mode full")
    pane.wait("● ready")
    pane.say("say that this line stays")
    pane.wait("that this line stays", "● ready")
    pane.say("count slowly to 60")
    pane.wait("1 2 3")
    seen = 0
    while "59 60" not in (shown := pane.screen()):
        rows = shown.splitlines()
        assert "say that this line stays" in shown, shown
        assert rows[-2].startswith("──") and "demo/demo" in rows[-1], shown
        assert any(row.startswith("› ") for row in rows), shown
        seen += 1
    assert seen > 10
