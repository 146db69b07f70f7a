"""The conversation: what is shown of a turn while it runs and after, and how it is scrolled."""

import os
import signal

from tests.tui.panes import Home

_MARKDOWN = r"""say # A title\n\nSome **bold** `code`.\n\n- one\n  - nested\n\n| a | b |"""


def test_tools_are_cards_thinking_is_folded_and_the_plan_is_shown(home: Home) -> None:
    (home.work / "a.txt").write_text("hello\n")
    pane = home.open()
    pane.wait("● ready")
    pane.say("list the files then think about the weather")
    shown = pane.wait("● ls .", "│ a.txt", "∴ thought,", "● ready")
    assert "You asked me to think" not in shown, "thinking is folded"
    pane.press("C-t")
    pane.wait("You asked me to think")
    pane.press("C-t")
    pane.wait("∴ thought,")
    pane.say("plan: read the notes, write a summary")
    pane.wait("☰ plan", "read the notes", "write a summary")


def test_output_of_a_running_command_is_live_and_opens_whole(home: Home) -> None:
    pane = home.open("dragoman --mode full")
    pane.wait("● ready")
    pane.say("run echo begin; sleep 3; seq 1 40")
    pane.wait("◐ bash", "│ begin", "waits for bash")
    pane.wait("more lines, ctrl+o opens", "● ready")
    pane.press("C-o")
    pane.wait("│ 40")


def test_a_turn_can_be_stopped_and_the_reason_of_a_failed_one_is_shown(home: Home) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("count slowly to 500")
    pane.wait("1 2 3", "writing", "esc stops")
    pane.press("Escape")
    pane.wait("■ cancelled", "● ready")
    pane.say("fail with an auth error")
    pane.wait("✗ failed:", "● ready")


def test_a_long_session_scrolls_to_its_beginning_and_back_without_losing_the_place(
    home: Home,
) -> None:
    pane = home.open('dragoman "say the very first"')
    pane.wait("  the very first", "● ready")
    with home.host() as host:
        session = host.call("dragoman/sessions", {})["sessions"][0]["id"]
        for number in range(400):
            params = {"session_id": session, "text": f"say number {number} of many"}
            host.call("dragoman/prompt", params)
    pane.wait("number 399 of many", "● ready")
    pane.press("PageUp")
    pane.wait("more below (ctrl+end)")
    for _ in range(8):  # older pages are read when the reader comes near
        pane.press("C-Home")
    long = home.open(f"dragoman -r {session}")
    long.wait("number 399 of many")
    for _ in range(60):
        long.press("C-Home")
        if "the very first" in long.screen():
            break
    long.wait("› say the very first")
    long.press("C-End")
    long.wait("number 399 of many", gone="more below")


def test_a_session_opened_again_is_the_same_after_pages_up_and_down_and_a_crash(
    home: Home,
) -> None:
    pane = home.open()
    pane.wait("● ready")
    pane.say("say begin")
    pane.wait("  begin", "● ready")
    with home.host() as host:
        session = host.call("dragoman/sessions", {})["sessions"][0]["id"]
        for number in range(25):
            said = "\n\n".join(f"- point {number}.{at}" for at in range(number % 7 + 1))
            host.call("dragoman/prompt", {"session_id": session, "text": f"say {said}"})
    pane.wait("point 24.3", "● ready")
    again = home.open(f"dragoman -r {session}", height=24)
    before = again.wait("point 24.3", "● ready")
    for _ in range(4):
        again.press("PageUp")
    again.wait("more below", gone="point 24.3")
    for _ in range(6):
        again.press("PageDown")
    assert _points(again.wait("point 24.3", gone="more below")) == _points(before)
    os.kill(home.pid(), signal.SIGKILL)
    again.wait("connected again", "● ready")
    again.press("PageUp")
    again.wait("more below")
    again.press("PageDown")
    shown = again.wait("connected again", gone="more below")
    assert shown.count("connected again") == shown.count("what you typed is kept") == 1


def _points(shown: str) -> list[str]:
    return [line.rstrip() for line in shown.splitlines() if "point" in line]


def test_what_other_clients_say_appears_with_their_name(home: Home) -> None:
    pane = home.open('dragoman "say hello"')
    pane.wait("  hello", "● ready")
    with home.host() as host:
        session = host.call("dragoman/sessions", {})["sessions"][0]["id"]
        host.call("dragoman/prompt", {"session_id": session, "text": "say from elsewhere"})
    pane.wait("› say from elsewhere", "from a test (", "  from elsewhere")
    second = home.open("dragoman -c")
    second.wait("from elsewhere", "+1 here")


def test_files_named_with_an_at_and_pictures_go_along(home: Home) -> None:
    (home.work / "notes.txt").write_text("remember the milk\n")
    (home.work / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    pane = home.open()
    pane.wait("● ready")
    pane.say("say hello, see @notes.txt please")  # a short answer: both stay on the screen
    pane.wait("≡ notes.txt (1 line)", "● ready")
    pane.say("/image p.png")
    pane.wait("▣ p.png")
    pane.say("what is this")
    pane.wait("▣ picture", "I got your picture")
