"""`dragoman run` and `dragoman sessions` as daily tools, in a real terminal."""

from tests.tui.panes import Home


def test_markdown_is_drawn_thoughts_stand_apart_and_the_end_says_what_it_took(home: Home) -> None:
    pane = home.open('dragoman run "think about rain then say **bold** and \\`code\\`"')
    shown = pane.wait(
        "bold and code", "demo/demo · ", "no cost", "tokens in context", "left with 0"
    )
    assert "**" not in shown
    lines = [line.strip() for line in shown.splitlines()]
    assert "bold and code" in lines, "the answer begins a line of its own"
    assert not any("bold and code" in line and "think" in line for line in lines)


def test_an_answer_streams_and_output_of_a_command_is_live(home: Home) -> None:
    pane = home.open('dragoman run "count slowly to 300"')
    pane.wait("1 2 3")
    pane.press("C-c")
    pane.wait("cancelled", "left with 130")
    slow = home.open('dragoman run --mode full "run echo begin; sleep 4; echo end"')
    shown = slow.wait("  begin")
    assert "left with" not in shown
    slow.wait("waits for bash")
    shown = slow.wait("  end", "left with 0")
    assert "waits for" not in shown, "the spinner leaves nothing behind"


def test_standard_input_is_context_and_files_and_pictures_are_given_along(home: Home) -> None:
    (home.work / "n.txt").write_text("from the file")
    (home.work / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    pane = home.open(
        'echo piped words | dragoman run --image p.png "say see @n.txt" --json', height=60
    )
    pane.wait('"type":"turn_began"', "left with 0")
    shown = pane.screen(past=True).replace("\n", "")
    assert "piped words" in shown and "from the file" in shown and "image/png" in shown


def test_continue_goes_on_and_sessions_fit_80_columns_with_names_and_limits(home: Home) -> None:
    first = home.open('dragoman run "say one"; dragoman run -c "fail with an auth error"', width=80)
    first.wait("failed:", "left with 1")
    more = home.open("for n in 1 2 3; do dragoman run say $n; done; clear; dragoman sessions", 80)
    shown = more.wait("SESSION", "left with 0")
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "dragoman run" in shown, "who began it, by its own name"
    assert "failed" in shown
    few = home.open("dragoman sessions --limit 2", 80)
    few.wait("only the newest 2 are shown", "left with 0")
